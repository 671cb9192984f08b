"""Encode requests and decode responses with kio, as a client of a simulation does."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any, cast

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from coordinator.wire.codec import build_entity, to_ms
from streams.membership.response_schemas import RESPONSE_SCHEMAS


def encode(api_key: int, version: int, client_id: str, correlation_id: int, given: Any) -> bytes:
    """Encode a request as a frame without its length.

    `given`: fields by name, or a request as kio makes it.
    """
    kind, write, is_flexible = _request(api_key, version)
    out = BytesIO()
    name = client_id.encode()
    out.write(api_key.to_bytes(2, "big") + version.to_bytes(2, "big"))
    out.write(correlation_id.to_bytes(4, "big") + len(name).to_bytes(2, "big") + name)
    if is_flexible:
        out.write(b"\0")
    write(out, build_entity(kind, given) if isinstance(given, dict) else given)
    return out.getvalue()


def decode(api_key: int, version: int, correlation_id: int, answer: bytes) -> Any:
    """Parse a response and check that no byte of it is left over."""
    read, at = _response(api_key, version)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert int.from_bytes(answer[4:8], "big") == correlation_id
    response, size = read(answer, at)
    assert at + size == len(answer)
    return response


__all__ = ["decode", "encode", "to_ms"]


@cache
def _request(api_key: int, version: int) -> tuple[type, Any, bool]:
    kind = cast(Any, load_request_schema(api_key, version))
    return kind, entity_writer(kind), kind.__flexible__


@cache
def _response(api_key: int, version: int) -> tuple[Any, int]:
    kind = cast(
        Any, RESPONSE_SCHEMAS.get((api_key, version)) or load_response_schema(api_key, version)
    )
    return entity_reader(kind), 9 if kind.__header_schema__.__flexible__ else 8
