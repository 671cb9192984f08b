"""Bytes as Arrow arrays and back, for the serdes that Kafka has."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from streams import serdes
from streams.errors import ConfigError, UserError
from streams.spark.serdes.decoding import ColumnSerde, Decoder, decoder_of
from streams.spark.serdes.encoding import encode
from streams.spark.serdes.malformed import decoded
from streams.spark.source.options import Serde

PLAIN: list[tuple[Serde, Any, list[Any]]] = [
    (Serde.BYTES, serdes.bytes, [b"", b"\xff\x00", None]),
    (Serde.STRING, serdes.string, ["", "grün 🙂", None]),
    (Serde.INT32, serdes.int32, [0, -(2**31), 2**31 - 1, None]),
    (Serde.INT64, serdes.int64, [0, -(2**63), 2**63 - 1, None]),
    (Serde.FLOAT64, serdes.float64, [0.5, -math.inf, 5e-324, None]),
]


def column(serde: Serde, schema: str | None = None) -> ColumnSerde:
    return ColumnSerde(serde, "value", schema)


def decoder(serde: Serde, schema: str | None = None) -> Decoder:
    return decoder_of(column(serde, schema))


@pytest.mark.parametrize(("serde", "own", "values"), PLAIN, ids=[str(each[0]) for each in PLAIN])
def test_what_the_applications_serde_writes_is_read_and_written_as_it_was(
    serde: Serde, own: Any, values: list[Any]
) -> None:
    written = [None if each is None else own.serialize(each) for each in values]
    read, causes = decoded(decoder(serde), written)
    read.validate(full=True)
    assert causes == {}
    assert read.type == decoder(serde).arrow
    assert read.to_pylist() == values
    assert encode(read, column(serde)) == written
    assert encode(read.slice(1), column(serde)) == written[1:]
    assert encode(pa.chunked_array([read, read]), column(serde)) == written * 2


@pytest.mark.parametrize("serde", [each[0] for each in PLAIN])
def test_no_values_and_only_nulls(serde: Serde) -> None:
    for values in ([], [None, None]):
        read, causes = decoded(decoder(serde), values)
        assert (read.to_pylist(), causes) == (values, {})
        assert encode(read, column(serde)) == values


@pytest.mark.parametrize(
    ("serde", "bad", "cause"),
    [
        (Serde.STRING, b"\xffab", "can't decode byte 0xff"),
        (Serde.INT32, b"12345", "needs 4 bytes, got 5"),
        (Serde.INT64, b"", "needs 8 bytes, got 0"),
        (Serde.FLOAT64, b"123456789", "needs 8 bytes, got 9"),
    ],
)
def test_only_what_cannot_be_read_is_null_and_has_a_cause(
    serde: Serde, bad: bytes, cause: str
) -> None:
    good = {Serde.STRING: b"abc", Serde.INT32: b"\0\0\0\1"}.get(serde, bytes(8))
    read, causes = decoded(decoder(serde), [good, bad, None])
    assert [each is None for each in read.to_pylist()] == [False, True, True]
    assert causes.keys() == {1}
    assert cause in causes[1]


def test_lengths_that_only_add_up_to_the_right_sum_are_not_numbers() -> None:
    read, causes = decoded(decoder(Serde.INT64), [bytes(4), bytes(12)])
    assert read.to_pylist() == [None, None]
    assert causes.keys() == {0, 1}


@pytest.mark.parametrize(
    ("array", "serde"),
    [
        (pa.array(["a"]), Serde.INT64),
        (pa.array([1.5]), Serde.INT64),
        (pa.array([1]), Serde.STRING),
        (pa.array([{"a": 1}]), Serde.BYTES),
        (pa.array([0], pa.timestamp("us")), Serde.INT64),
        (pa.array([True]), Serde.FLOAT64),
    ],
)
def test_a_column_of_another_type_is_refused(array: Any, serde: Serde) -> None:
    with pytest.raises(ConfigError, match=f"column value is .*value={serde.value}"):
        encode(array, column(serde))


def test_a_number_that_is_too_large_to_be_written_is_refused() -> None:
    with pytest.raises(UserError, match=r"can't be written as int32.*2147483648"):
        encode(pa.array([2**31]), column(Serde.INT32))
    assert encode(pa.array([1], pa.int32()), column(Serde.INT64)) == [serdes.int64.serialize(1)]
