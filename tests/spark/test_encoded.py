"""Test that Spark decodes and encodes columns as the application's serdes do."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F  # noqa: N812

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Serde
from streams.spark.reconciliation.serde_columns import (
    to_bytes_column,
    to_number_or_text_column,
    to_text_column,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(3, by="test")

VALUES: list[tuple[Serde[Any], str, list[Any]]] = [
    (serdes.int64, "BIGINT", [0, 1, -1, 2**63 - 1, -(2**63)]),
    (serdes.int32, "INT", [0, 1, -1, 2**31 - 1, -(2**31)]),
    (serdes.string, "STRING", ["", "word", "Wörter"]),
    (serdes.float64, "DOUBLE", [0.0, -1.5, 1e300]),
    (serdes.json, "STRUCT<a: BIGINT, b: ARRAY<STRING>>", [{"a": 1, "b": ["x"]}]),
]


@pytest.mark.parametrize(("serde", "kind", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_a_column_becomes_what_the_serde_writes(
    spark: SparkSession, serde: Serde[Any], kind: str, values: list[Any]
) -> None:
    frame = spark.createDataFrame([(each,) for each in values], f"value {kind}")
    data = frame.select(
        to_bytes_column(F.col("value"), frame.schema["value"].dataType, serde, "value").alias(
            "data"
        )
    )
    assert [bytes(each.data) for each in data.collect()] == [serde.serialize(v) for v in values]


@pytest.mark.parametrize(("serde", "kind", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_bytes_become_what_they_say(
    spark: SparkSession, serde: Serde[Any], kind: str, values: list[Any]
) -> None:
    rows = [(serde.serialize(each),) for each in values]
    data = spark.createDataFrame(rows, "data BINARY").select(
        to_number_or_text_column(F.col("data"), serde).alias("typed"),
        to_text_column(F.col("data"), serde).alias("text"),
    )
    if serde is serdes.json:
        assert [each.text for each in data.collect()] == ['{"a":1,"b":["x"]}']
        return
    assert data.schema["typed"].dataType.simpleString() == kind.lower()
    assert [each.typed for each in data.collect()] == values
    assert [each.text for each in data.collect()] == [str(each) for each in values]


@pytest.mark.parametrize("serde", [serdes.int64, serdes.string, serdes.json, serdes.bytes])
def test_what_a_serde_cannot_read_is_shown_as_it_is(spark: SparkSession, serde: Serde[Any]) -> None:
    frame = spark.createDataFrame([(b"\xff\x00",)], "data BINARY")
    assert frame.select(to_text_column(F.col("data"), serde)).first() == ("0xff00",)


def test_a_serde_that_cannot_be_sent_leaves_bytes(spark: SparkSession) -> None:
    lock = Lock()

    def read(data: bytes) -> str:
        with lock:
            return data.decode()

    serde = serdes.of(str.encode, read, name="locked")
    frame = spark.createDataFrame([(b"a",)], "data BINARY")
    assert frame.select(to_text_column(F.col("data"), serde)).first() == ("0x61",)


def test_types_that_a_serde_does_not_take_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.5,)], "value DOUBLE")
    with pytest.raises(ConfigError, match=r"column 'value' is of type double.*int64.*cast it"):
        to_bytes_column(F.col("value"), frame.schema["value"].dataType, serdes.int64, "value")


def test_a_value_that_a_serde_refuses_is_told(spark: SparkSession) -> None:
    picky = serdes.of(lambda value: bytes([value]), lambda data: data[0], name="byte")
    frame = spark.createDataFrame([(300,)], "value INT")
    data = to_bytes_column(F.col("value"), frame.schema["value"].dataType, picky, "value")
    with pytest.raises(PythonException, match=r"serde byte: .*the value is 300"):
        frame.select(data).collect()
