from __future__ import annotations

import struct
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from coordinator.api.router import APIS
from coordinator.wire.codec import build_entity
from coordinator.wire.entity_writing import create_writer

SERVED = [(api.API_KEY, version) for api in APIS for version in api.VERSIONS]
_INT = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_DURATIONS = st.integers(0, 2**31 - 1).map(lambda ms: timedelta(milliseconds=ms))
_TIMES = st.integers(0, 2**41).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(-(2**bits), 2**bits - 1) for kind, bits in _INT.items()},
    "uint16": st.integers(0, 2**16 - 1),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "error_code": st.sampled_from(ErrorCode),
    "string": st.one_of(st.text(max_size=5), st.just("x" * 200)),
    "bytes": st.one_of(st.binary(max_size=5), st.just(b"x" * 20_000)),
    "records": st.binary(max_size=150),
    "uuid": st.uuids(),
    "timedelta_i32": _DURATIONS,
    "timedelta_i64": _DURATIONS,
    "datetime_i64": _TIMES,
}


class Pieces(list[bytes]):
    write = list.append


def entities(entity_type: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for any entity of the type; tagged fields mostly have their defaults."""
    return st.builds(entity_type, **{field.name: values(field) for field in fields(entity_type)})


def values(field: Any) -> st.SearchStrategy[Any]:
    declared = field.type
    optional = get_origin(declared) is UnionType
    if optional:
        declared = next(kind for kind in get_args(declared) if kind is not NoneType)
    is_array = get_origin(declared) is tuple
    inner = get_args(declared)[0] if is_array else declared
    one = entities(inner) if is_dataclass(inner) else _VALUES[field.metadata["kafka_type"]]
    found = st.lists(one, max_size=3).map(tuple) if is_array else one
    if "tag" in field.metadata and field.default is not MISSING:
        default = st.just(field.default)
        return st.one_of(default, default, default, found)
    nullable = optional or (field.metadata.get("kafka_type") == "uuid" and not is_array)
    return st.one_of(st.none(), found) if nullable else found


@pytest.mark.parametrize(("api_key", "version"), SERVED)
def test_every_response_is_written_as_kio_writes_it(api_key: int, version: int) -> None:
    response_type: Any = load_response_schema(api_key, version)

    @settings(max_examples=5, database=None)
    @given(entities(response_type))
    def check(response: Any) -> None:
        by_kio: Any = Pieces()
        ours = Pieces()
        entity_writer(response_type)(by_kio, response)
        create_writer(response_type)(ours, response)
        assert b"".join(ours) == b"".join(by_kio)

    check()


@pytest.mark.parametrize(
    ("api_key", "version", "given"),
    [
        (3, 9, {"brokers": [{"node_id": 1, "host": None, "port": 1}], "topics": []}),
        (3, 0, {"brokers": [{"node_id": 1, "host": None, "port": 1}], "topics": []}),
        (3, 0, {"brokers": [{"node_id": 1 << 31, "host": "h", "port": 1}], "topics": []}),
    ],
)
def test_what_no_client_could_read_is_not_written(
    api_key: int, version: int, given: dict[str, Any]
) -> None:
    response_type: Any = load_response_schema(api_key, version)
    response = build_entity(response_type, given)
    with pytest.raises((TypeError, struct.error)):
        create_writer(response_type)(Pieces(), response)
