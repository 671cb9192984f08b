"""Test that bytes become Arrow arrays and back, for the serdes that Kafka has."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from streams import serdes
from streams.errors import ConfigError, UserError
from streams.spark.serdes.decoding import ColumnDecoder, ColumnSerde, create_column_decoder
from streams.spark.serdes.encoding import encode_column
from streams.spark.serdes.malformed import decode_column
from streams.spark.source.options import SerdeName

PLAIN: list[tuple[SerdeName, Any, list[Any]]] = [
    (SerdeName.BYTES, serdes.bytes, [b"", b"\xff\x00", None]),
    (SerdeName.STRING, serdes.string, ["", "grün 🙂", None]),
    (SerdeName.INT32, serdes.int32, [0, -(2**31), 2**31 - 1, None]),
    (SerdeName.INT64, serdes.int64, [0, -(2**63), 2**63 - 1, None]),
    (SerdeName.FLOAT64, serdes.float64, [0.5, -math.inf, 5e-324, None]),
]


def column(serde: SerdeName, schema: str | None = None) -> ColumnSerde:
    return ColumnSerde(serde, "value", schema)


def decoder(serde: SerdeName, schema: str | None = None) -> ColumnDecoder:
    return create_column_decoder(column(serde, schema))


@pytest.mark.parametrize(("serde", "own", "values"), PLAIN, ids=[str(each[0]) for each in PLAIN])
def test_what_the_applications_serde_writes_is_read_and_written_as_it_was(
    serde: SerdeName, own: Any, values: list[Any]
) -> None:
    written = [None if each is None else own.serialize(each) for each in values]
    read, causes = decode_column(decoder(serde), written)
    read.validate(full=True)
    assert causes == {}
    assert read.type == decoder(serde).arrow_type
    assert read.to_pylist() == values
    assert encode_column(read, column(serde)) == written
    assert encode_column(read.slice(1), column(serde)) == written[1:]
    assert encode_column(pa.chunked_array([read, read]), column(serde)) == written * 2


@pytest.mark.parametrize("serde", [each[0] for each in PLAIN])
def test_no_values_and_only_nulls(serde: SerdeName) -> None:
    for values in ([], [None, None]):
        read, causes = decode_column(decoder(serde), values)
        assert (read.to_pylist(), causes) == (values, {})
        assert encode_column(read, column(serde)) == values


@pytest.mark.parametrize(
    ("serde", "bad", "cause"),
    [
        (SerdeName.STRING, b"\xffab", "can't decode byte 0xff"),
        (SerdeName.INT32, b"12345", "needs 4 bytes, got 5"),
        (SerdeName.INT64, b"", "needs 8 bytes, got 0"),
        (SerdeName.FLOAT64, b"123456789", "needs 8 bytes, got 9"),
    ],
)
def test_only_what_cannot_be_read_is_null_and_has_a_cause(
    serde: SerdeName, bad: bytes, cause: str
) -> None:
    good = {SerdeName.STRING: b"abc", SerdeName.INT32: b"\0\0\0\1"}.get(serde, bytes(8))
    read, causes = decode_column(decoder(serde), [good, bad, None])
    assert [each is None for each in read.to_pylist()] == [False, True, True]
    assert causes.keys() == {1}
    assert cause in causes[1]


def test_lengths_that_only_add_up_to_the_right_sum_are_not_numbers() -> None:
    read, causes = decode_column(decoder(SerdeName.INT64), [bytes(4), bytes(12)])
    assert read.to_pylist() == [None, None]
    assert causes.keys() == {0, 1}


@pytest.mark.parametrize(
    ("array", "serde"),
    [
        (pa.array(["a"]), SerdeName.INT64),
        (pa.array([1.5]), SerdeName.INT64),
        (pa.array([1]), SerdeName.STRING),
        (pa.array([{"a": 1}]), SerdeName.BYTES),
        (pa.array([0], pa.timestamp("us")), SerdeName.INT64),
        (pa.array([True]), SerdeName.FLOAT64),
    ],
)
def test_a_column_of_another_type_is_refused(array: Any, serde: SerdeName) -> None:
    with pytest.raises(ConfigError, match=f"column value is .*value={serde.value}"):
        encode_column(array, column(serde))


def test_a_number_that_is_too_large_to_be_written_is_refused() -> None:
    with pytest.raises(UserError, match=r"can't be written as int32.*2147483648"):
        encode_column(pa.array([2**31]), column(SerdeName.INT32))
    assert encode_column(pa.array([1], pa.int32()), column(SerdeName.INT64)) == [
        serdes.int64.serialize(1)
    ]
