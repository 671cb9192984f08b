"""Columns: what a batch of records is to Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streams.spark.fetching import RawBatch
from streams.spark.options import Serdes

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Columns:
    """The columns of a topic, keys and values as bytes."""

    def __init__(self, serdes: Serdes) -> None:
        self._headers = serdes.headers
        self.schema = StructType(
            [
                StructField("key", BinaryType()),
                StructField("value", BinaryType()),
                StructField("topic", StringType()),
                StructField("partition", IntegerType()),
                StructField("offset", LongType()),
                StructField("timestamp", TimestampType()),
            ]
        )
        if serdes.headers:
            header = StructType(
                [StructField("key", StringType()), StructField("value", BinaryType())]
            )
            self.schema.add("headers", ArrayType(header))

    def decode(self, raw: RawBatch) -> Any:
        """A pyarrow.RecordBatch of this schema."""
        count = len(raw)
        columns = {
            "key": pa.array(raw.keys, pa.binary()),
            "value": pa.array(raw.values, pa.binary()),
            "topic": pa.repeat(raw.topic, count),
            "partition": pa.repeat(pa.scalar(raw.partition, pa.int32()), count),
            "offset": pa.array(raw.offsets, pa.int64()),
            "timestamp": pa.array(raw.timestamps, pa.timestamp("ms", tz="UTC")).cast(_TIMESTAMP),
        }
        if self._headers:
            rows = [[{"key": k, "value": v} for k, v in each] for each in raw.headers or ()]
            columns["headers"] = pa.array(rows, _HEADERS)
        return pa.RecordBatch.from_pydict(columns)


def columns_of(serdes: Serdes) -> Columns:
    """The columns that records have, read with these serdes."""
    return Columns(serdes)
