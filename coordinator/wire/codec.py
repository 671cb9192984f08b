"""Decode requests from bytes to kio's entities and encode responses from plain fields to bytes.

kio has one dataclass for each version of each message. API files don't depend on them: they give
`build_entity` the fields of the newest version, as plain ints, strings, dicts and lists, and get
the entity of whichever version the client speaks. How the fields of an entity are converted from
plain values is worked out once for each entity type, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeVar

from kio.index import (
    UnknownAPIKey,
    UnknownEntity,
    load_request_schema,
    load_response_schema,
)
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from coordinator.wire.array_limits import ELEMENTS_MAX, create_array_limit_walk, find_element_type
from coordinator.wire.entity_writing import NO_TIME, create_writer
from coordinator.wire.error_codes import find_error_codes
from coordinator.wire.send_buffer import AnswerPieces, TransferableRecords, join_small_pieces
from coordinator.wire.tagged_fields import (
    FrameReplacement,
    UnknownTag,
    Walk,
    apply_replacements,
    create_collecting_tag_walks,
    skip_tags,
)

# Decoded requests that are cached for a version of an API, about a kilobyte each.
CACHED_REQUESTS_MAX = 4_096
CACHED_REQUEST_BYTES_MAX = 512

_ABSENT = object()
_HEADER = Struct(">hhih")  # API key, version, correlation id, length of the client id
API_BYTES = 4  # key and version, which a frame begins with
_CORRELATION_ID = Struct(">i")
_NO_CORRELATION_ID = bytes(_CORRELATION_ID.size)
_CLIENT_ID_AT = API_BYTES + _CORRELATION_ID.size
_FRAME_HEAD = Struct(">ii")  # length, correlation id
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)

Convert = Callable[[Any], Any]
Decoded = TypeVar("Decoded")


class MalformedRequest(Exception):
    """Signals bytes that are no request that this broker can read."""


class RequestHeader(NamedTuple):
    """Holds the fields of a request's header; the request itself starts at `body_start`."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body_start: int


@dataclass(frozen=True, slots=True)
class ApiSchema:
    """Holds kio's entity types and readers for one version of one API."""

    is_flexible: bool
    request_type: type
    check_arrays: Walk
    read_entity: Callable[[bytes, int], tuple[Any, int]]
    response_type: type


@cache
def load_schema(api_key: int, version: int) -> ApiSchema | None:
    """Return the schema of a version of an API, or None if kio has no such version."""
    try:
        request = load_request_schema(api_key, version)
        response = load_response_schema(api_key, version)
    except (UnknownAPIKey, UnknownEntity):
        return None
    walk, read = create_array_limit_walk(request), entity_reader(request)
    return ApiSchema(request.__flexible__, request, walk, read, response)


def read_request_header(frame: bytes) -> RequestHeader:
    """Read the header fields that all versions share.

    Bytes of the client id that are no UTF-8 are read as U+FFFD, as Kafka does: it is a label, and a
    client with one in another encoding must not be turned away.

    Raises: MalformedRequest for a frame that is too short.
    """
    if len(frame) < 10:
        raise MalformedRequest(f"{len(frame)} bytes are no request")
    api_key, version, correlation_id, length = _HEADER.unpack_from(frame)
    end = 10 + length if length > 0 else 10
    if end > len(frame):
        raise MalformedRequest(f"a client id of {length} bytes in {len(frame)} bytes")
    client_id = frame[10:end].decode(errors="replace")
    return RequestHeader(api_key, version, correlation_id, client_id, end)


def read_correlation_id(frame: bytes) -> int:
    """Return the correlation id of a frame whose header has been read."""
    correlation_id: int = _CORRELATION_ID.unpack_from(frame, API_BYTES)[0]
    return correlation_id


def create_cached_frame_reader(
    frame_start: bytes, read_frame: Callable[[bytes, str], Decoded]
) -> Callable[[bytes, str], Decoded]:
    """Return a function like `read_frame` that decodes small frames that are equal only once.

    They are the requests that begin with this API and version, and frames are equal if they differ
    in the correlation id only. For what a client sends again and again, such as a heartbeat.
    Decoded requests are immutable, so one can serve any number of frames.
    """

    @lru_cache(CACHED_REQUESTS_MAX)
    def read_once(frame_end: bytes, client_host: str) -> Decoded:
        return read_frame(frame_start + _NO_CORRELATION_ID + frame_end, client_host)

    def read_cached(frame: bytes, client_host: str) -> Decoded:
        if len(frame) <= CACHED_REQUEST_BYTES_MAX:
            return read_once(frame[_CLIENT_ID_AT:], client_host)
        return read_frame(frame, client_host)

    return read_cached


def read_request(schema: ApiSchema, frame: bytes, position: int) -> Any:
    """Decode the request whose header ends at `position`.

    Raises: MalformedRequest for bytes that are anything else.
    """
    try:
        if schema.is_flexible:
            position = skip_tags(frame, position)
        try:
            schema.check_arrays(frame, position, [ELEMENTS_MAX])
        except UnknownTag:
            frame, position = _remove_unknown_tags(schema.request_type, frame, position), 0
        return schema.read_entity(frame, position)[0]
    except Exception as error:  # kio raises many types, depending on where the bytes are wrong
        raise MalformedRequest(f"the body can't be read: {error!r}") from error


def _remove_unknown_tags(request_type: type, frame: bytes, position: int) -> bytes:
    """Return the body without tagged fields that kio doesn't know."""
    cuts: list[FrameReplacement] = []
    create_array_limit_walk(request_type, create_collecting_tag_walks(cuts))(
        frame, position, [ELEMENTS_MAX]
    )
    return apply_replacements(cuts, frame, position)


class _PieceList(list[bytes | TransferableRecords]):
    """Collects the pieces that kio writes, which are joined once at the end."""

    write = list.append


class EncodedResponse(NamedTuple):
    """Holds an encoded response without its correlation id, to be sent any number of times."""

    body: bytes
    error_codes: tuple[int, ...] = ()  # those that it has, without 0


def encode_for_reuse(response: Any) -> EncodedResponse:
    """Encode a response that is sent many times; it may hold no range of a file."""
    frame = encode_response(0, response)
    assert isinstance(frame, bytes)
    return EncodedResponse(frame[_FRAME_HEAD.size :], find_error_codes(response))


def encode_entity(entity: Any) -> bytes:
    """Encode an entity that is a part of responses, without anything around it."""
    pieces: Any = _PieceList()
    create_writer(entity.__class__)(pieces, entity)
    return b"".join(pieces)


def encode_response(correlation_id: int, response: Any) -> bytes | AnswerPieces:
    """Encode a response as a frame, with its length and header.

    In the place of bytes a response may have a range of a file (`TransferableRecords`), of which
    kio needs only the length. The frame is returned in pieces then.
    """
    if response.__class__ is EncodedResponse:
        body: bytes = response.body
        return _FRAME_HEAD.pack(len(body) + _CORRELATION_ID.size, correlation_id) + body
    pieces: Any = _PieceList()
    pieces.append(b"")
    pieces.append(_CORRELATION_ID.pack(correlation_id))
    if response.__header_schema__.__flexible__:
        pieces.append(b"\0")  # no tagged fields in the header
    create_writer(response.__class__)(pieces, response)
    size = sum(map(len, pieces))
    pieces[0] = size.to_bytes(4, "big")
    try:
        return b"".join(pieces)
    except TypeError:
        return join_small_pieces(pieces)


def build_entity(entity_type: type, values: Mapping[str, Any]) -> Any:
    """Build an entity of this type from plain values, given by field name.

    Fields that the type lacks are dropped; fields that aren't given take the schema's default.

    Raises: TypeError, which names a field that has neither.
    """
    return _create_builder(entity_type)(values)


@cache
def _create_builder(entity_type: Any) -> Convert:
    """Create a function that builds entities of this type from plain values.

    It sets each field's slot directly: through the `__init__` of these frozen dataclasses entities
    take three times as long to build.
    """
    plan = [
        (
            f.name,
            getattr(entity_type, f.name).__set__,
            _create_value_converter(f),
            _find_field_default(f),
        )
        for f in fields(entity_type)
    ]
    new = object.__new__

    def build_instance(values: Mapping[str, Any]) -> Any:
        entity = new(entity_type)
        get = values.get
        for name, put, make_value, default in plan:
            value = get(name, _ABSENT)
            if value is _ABSENT:
                if default is _ABSENT:
                    where = f"{entity_type.__module__}.{entity_type.__name__}"
                    raise TypeError(f"{where} needs {name!r}")
                value = default
            elif make_value is not None:
                value = make_value(value)
            put(entity, value)
        return entity

    return build_instance


def _find_field_default(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    if field.name == "throttle_time":
        return NO_TIME
    if field.metadata.get("kafka_type") == "error_code":
        return ErrorCode.none
    return _ABSENT


def _create_value_converter(field: Field[Any]) -> Convert | None:
    inner, is_array = find_element_type(field.type)
    if is_dataclass(inner):
        one = _create_entity_converter(inner)
        return _create_array_converter(one) if is_array else _create_optional_converter(one)
    if is_array:
        return _create_array_converter(None)
    one_value = _VALUE_CONVERTERS.get(field.metadata["kafka_type"])
    return None if one_value is None else one_value


def _create_entity_converter(entity_type: Any) -> Convert:
    build_one = _create_builder(entity_type)
    return lambda value: build_one(value) if isinstance(value, dict) else value


def _create_array_converter(convert_one: Convert | None) -> Convert:
    def convert_array(values: Iterable[Any] | None) -> Any:
        if values is None:
            return None
        return (
            tuple(values)
            if convert_one is None
            else tuple([convert_one(value) for value in values])
        )

    return convert_array


def _create_optional_converter(convert_one: Convert) -> Convert:
    return lambda value: None if value is None else convert_one(value)


def _convert_duration(value: Any) -> timedelta:
    return value if isinstance(value, timedelta) else _to_cached_timedelta(value)


@lru_cache(256)
def _to_cached_timedelta(ms: int) -> timedelta:
    """Convert milliseconds to a timedelta through a cache, as few intervals occur in responses."""
    return timedelta(milliseconds=ms)


def _convert_time(value: Any) -> datetime | None:
    """Convert milliseconds since the epoch to a datetime; -1 and None give None."""
    if value is None or isinstance(value, datetime):
        return value
    return None if value == -1 else _EPOCH + timedelta(milliseconds=value)


_ERROR_CODES = {int(code): code for code in ErrorCode}
_VALUE_CONVERTERS: dict[str, Convert] = {
    "error_code": _ERROR_CODES.__getitem__,
    "timedelta_i32": _convert_duration,
    "timedelta_i64": _convert_duration,
    "datetime_i64": _convert_time,
}


def to_ms(duration: timedelta) -> int:
    """Convert a duration of kio's to whole milliseconds."""
    return duration // _MS
