"""Test that columns come back from bytes as they were, types included, or are refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types

from streams import serdes
from streams.errors import ConfigError, UserError
from streams.serdes import Serde
from streams.spark.serdes.decoding import ColumnSerde, create_column_decoder, find_arrow_type
from streams.spark.serdes.encoding import encode_column
from streams.spark.serdes.malformed import decode_column
from streams.spark.sink.writing import encode_rows
from streams.spark.source.options import SerdeName, parse_write_options
from tests import edge_values as edges

WRITE = parse_write_options(
    {"bootstrap_servers": "localhost:1", "topic": "t", "value": "bytes"}, is_stream=False
)
MB_10 = 10 << 20

PLAIN: dict[SerdeName, tuple[Serde[Any], pa.DataType, st.SearchStrategy[Any]]] = {
    SerdeName.BYTES: (serdes.bytes, pa.binary(), edges.binaries),
    SerdeName.STRING: (serdes.string, pa.string(), edges.texts),
    SerdeName.INT32: (serdes.int32, pa.int32(), edges.int32s),
    SerdeName.INT64: (serdes.int64, pa.int64(), edges.int64s),
    SerdeName.FLOAT64: (serdes.float64, pa.float64(), edges.any_floats),
}


def serde_of(name: SerdeName, schema: str | None = None) -> ColumnSerde:
    return ColumnSerde(name, "value", schema)


def read_back(written: list[bytes | None], serde: ColumnSerde) -> Any:
    decoder = create_column_decoder(serde)
    found, causes = decode_column(decoder, written)
    assert causes == {}
    found.validate(full=True)
    return found


@pytest.mark.parametrize("name", PLAIN)
@given(st.data())
def test_a_plain_column_is_written_as_the_application_does_and_read_back(
    name: SerdeName, data: st.DataObject
) -> None:
    own, kind, values = PLAIN[name]
    given_values = data.draw(st.lists(st.none() | values))
    written = encode_column(pa.array(given_values, kind), serde_of(name))
    assert written == [None if each is None else own.serialize(each) for each in given_values]
    assert edges.are_same(read_back(written, serde_of(name)).to_pylist(), given_values)


SCALARS: list[tuple[types.DataType, st.SearchStrategy[Any]]] = [
    (types.BooleanType(), st.booleans()),
    (types.ByteType(), st.integers(-128, 127)),
    (types.IntegerType(), edges.int32s),
    (types.LongType(), edges.int64s),
    (types.FloatType(), edges.single_floats),
    (types.DoubleType(), edges.any_floats),
    (types.StringType(), edges.texts),
    (types.BinaryType(), edges.binaries),
    (types.DateType(), edges.dates),
    (types.TimestampType(), edges.times_us | st.sampled_from(edges.TIMES_US_BEYOND)),
    (types.TimestampNTZType(), edges.times_us),
    (
        types.DecimalType(38, 9),
        st.decimals(-(10**28), 10**28, places=9) | st.just(Decimal("-0.000000001")),
    ),
]


@st.composite
def columns(draw: st.DrawFn) -> tuple[types.StructType, Any]:
    """Generate a struct of Spark, and an Arrow array of it with edge values and nulls."""
    scalars = draw(st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4))
    fields = []
    for number, (kind, values) in enumerate(scalars):
        match draw(st.sampled_from(["plain", "list", "map", "struct"])):
            case "list":
                kind, values = types.ArrayType(kind), st.lists(st.none() | values, max_size=3)
            case "map":
                kind, values = (
                    types.MapType(types.StringType(), kind),
                    st.dictionaries(edges.texts, st.none() | values, max_size=3).map(
                        lambda found: [*found.items()]
                    ),
                )
            case "struct":
                kind = types.StructType([types.StructField("ü", kind)])
                values = st.fixed_dictionaries({"ü": st.none() | values})
        fields.append((f"f{number}", kind, values))
    whole = types.StructType([types.StructField(name, kind) for name, kind, _ in fields])
    row = st.fixed_dictionaries({name: st.none() | values for name, _, values in fields})
    rows = draw(st.lists(st.none() | row, max_size=4))
    return whole, pa.array(rows, find_arrow_type(whole))


def raw(array: Any) -> Any:
    """Return an array as objects, with its times and dates as numbers."""
    return array.cast(_numbers(array.type)).to_pylist()


def _numbers(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_numbers(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_numbers(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers(kind.value_type)))
    return kind


@given(columns())
def test_a_column_of_json_is_read_back_or_refused(column: tuple[types.StructType, Any]) -> None:
    kind, array = column
    serde = serde_of(SerdeName.JSON, kind.simpleString())
    values = raw(array)
    leaves = [*_iterate_leaves(values)]
    is_finite = all(math.isfinite(each) for each in leaves if isinstance(each, float))
    if not is_finite or any(each in edges.TIMES_US_BEYOND for each in leaves):
        with suppress(UserError):  # a large integer may only look like a time
            assert edges.are_same(raw(read_back(encode_column(array, serde), serde)), values)
            assert is_finite
    else:
        assert edges.are_same(raw(read_back(encode_column(array, serde), serde)), values)


def _iterate_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            yield from _iterate_leaves(each)
    else:
        yield value


@pytest.mark.parametrize(
    ("values", "place"),
    [
        (pa.array([1.0, float("nan")]), "value is nan"),
        (pa.array([{"a": [{"b": None}, {"b": float("-inf")}]}]), r"value\.a\[1\]\.b is -inf"),
        (
            pa.array([[("k", float("inf"))]], pa.map_(pa.string(), pa.float32())),
            r"value\.k is inf",
        ),
    ],
)
def test_a_number_that_is_not_finite_is_refused_with_its_place(values: Any, place: str) -> None:
    with pytest.raises(UserError, match=rf"column value can't be written as json: {place}, which"):
        encode_column(values, serde_of(SerdeName.JSON))


TWICE = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string())), "a map with keys of int32"),
        (pa.array([5], pa.duration("us")), r"JSON has no duration\[us\]"),
        (pa.array([{"a": [5]}], pa.struct({"a": pa.list_(pa.duration("us"))})), "no duration"),
        (TWICE, "a struct has two fields 'a'"),
    ],
)
def test_a_type_that_json_has_not_is_refused_before_any_row(values: Any, problem: str) -> None:
    for each in (values, values[:0]):
        with pytest.raises(ConfigError, match=problem):
            encode_column(each, serde_of(SerdeName.JSON))


def test_a_map_with_a_key_twice_is_refused() -> None:
    values = pa.array([[("k", 1), ("l", 2), ("k", 3)]], pa.map_(pa.string(), pa.int32()))
    with pytest.raises(UserError, match="a map has the key 'k' twice"):
        encode_column(values, serde_of(SerdeName.JSON))


def test_a_time_is_the_same_instant_whatever_the_zone_of_the_session() -> None:
    """Use a zone whose offset of then has seconds, as local mean times have."""
    value_us = -2_524_521_600_000_000
    berlin = pa.array([value_us], pa.timestamp("us", tz="Europe/Berlin"))
    for array in (berlin, pa.array([{"at": value_us}], pa.struct({"at": berlin.type}))):
        written = encode_column(array, serde_of(SerdeName.JSON))
        kind = "TIMESTAMP" if array is berlin else "at TIMESTAMP"
        found = raw(read_back(written, serde_of(SerdeName.JSON, kind)))
        assert found == raw(array)


def no_utf8(kind: Any = None) -> Any:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    return text if kind is None else pa.StructArray.from_arrays([text], names=["s"])


def test_text_that_is_no_utf8_is_refused_and_can_be_written_as_bytes() -> None:
    assert encode_column(no_utf8(), serde_of(SerdeName.BYTES)) == [b"\xff"]
    for array, name in (
        (no_utf8(), SerdeName.STRING),
        (no_utf8(), SerdeName.JSON),
        (no_utf8("struct"), SerdeName.JSON),
    ):
        with pytest.raises(
            UserError, match=f"column value can't be written as {name.value}: .*UTF-8"
        ):
            encode_column(array, serde_of(name))


def test_a_whole_number_that_no_double_is_is_refused() -> None:
    for number in (2**53, -(2**53)):
        (written,) = encode_column(pa.array([number]), serde_of(SerdeName.FLOAT64))
        assert serdes.float64.deserialize(written or b"") == number
    with pytest.raises(
        UserError, match="can't be written as float64: Integer value 9007199254740993"
    ):
        encode_column(pa.array([2**53 + 1]), serde_of(SerdeName.FLOAT64))


@given(st.lists(st.none() | st.lists(st.tuples(edges.texts, st.none() | edges.binaries))))
def test_headers_are_written_in_order_with_all_their_names(
    headers: list[list[tuple[str, bytes | None]] | None],
) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in headers]
    batch = pa.RecordBatch.from_pydict(
        {"value": pa.nulls(len(rows), pa.binary()), "headers": pa.array(rows, kind)}
    )
    assert encode_rows(WRITE, batch).headers == headers


def test_a_header_name_that_is_no_utf8_is_refused() -> None:
    names = pa.StructArray.from_arrays([no_utf8(), pa.array([b""])], names=["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), names)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"v"]), "headers": headers})
    with pytest.raises(UserError, match=r"column headers can't be written as headers: .*UTF-8"):
        encode_rows(WRITE, batch)


@pytest.mark.parametrize("name", [SerdeName.BYTES, SerdeName.STRING, SerdeName.JSON])
def test_values_of_10_mb_are_read_back(name: SerdeName) -> None:
    value = "ü" * (MB_10 // 2)
    array = pa.array([value, None, ""]).cast(
        pa.binary() if name is SerdeName.BYTES else pa.string()
    )
    schema = "STRING" if name is SerdeName.JSON else None
    written = encode_column(array, serde_of(name))
    assert read_back(written, serde_of(name, schema)).equals(array)
