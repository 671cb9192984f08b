"""Decode batches of records into Arrow batches with the columns of a topic or of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streams.spark.serdes.avro_values import latest_schema
from streams.spark.serdes.decoding import Decoder, decoder_of, of_column
from streams.spark.serdes.malformed import Causes, Malformed, decoded
from streams.spark.serdes.window_keys import Layout, as_timestamps, taken_apart
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import Mode, Serde, Serdes, Windowed

CORRUPT = "_corrupt_record"
CHANGELOG = "-changelog"
"""The end of the names of changelogs, the topics that stores are restored from."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_HEADERS_TYPE = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


class Shape(StrEnum):
    """Names the kinds of rows: records of a topic, rows of a store, or versions of its rows."""

    RECORDS = "records"
    TABLE = "table"
    VERSIONS = "versions"


class Columns:
    """Decodes raw batches with the serdes of a read into the columns that Spark is told of.

    `topic` is where the records come from.
    """

    def __init__(self, serdes: Serdes, topic: str = "", shape: Shape = Shape.RECORDS) -> None:
        self._serdes = serdes
        self._shape = shape
        self._topic = topic
        self._layout = _layout(serdes, topic, shape)

    @cached_property
    def schema(self) -> StructType:
        """Return the names and types of the columns, as Spark has them, in order."""
        return StructType([StructField(name, kind) for name, kind in self._fields()])

    def decode(
        self, raw: RawBatch, valid: tuple[Sequence[int], Sequence[int | None]] | None = None
    ) -> Any:
        """Decode a batch of records into a pyarrow.RecordBatch of this schema.

        `validity_ms`: of versions, from when and to when each holds. Raises UserError for what
        can't be read, with FAILFAST.
        """
        count = len(raw)
        malformed = Malformed(self._serdes.mode, raw.topic, raw.partition, raw.offsets)
        arrays: dict[str, Any] = {}
        keys: Sequence[bytes | None] = raw.keys
        if self._layout is not None:
            split_keys = taken_apart(keys, self._layout, self._serdes.window_size_ms)
            malformed.add("key", "windowed key", split_keys.causes, raw.keys)
            keys = split_keys.keys
            arrays["window_start"] = as_timestamps(split_keys.starts)
            arrays["window_end"] = as_timestamps(split_keys.ends)
        arrays["key"] = self._column("key", self._key, keys, malformed)
        arrays["value"] = self._column("value", self._value, raw.values, malformed)
        arrays["topic"] = pa.repeat(pa.scalar(raw.topic, pa.string()), count)
        arrays["partition"] = pa.repeat(pa.scalar(raw.partition, pa.int32()), count)
        arrays["offset"] = pa.array(raw.offsets, pa.int64())
        arrays["timestamp"] = as_timestamps(pa.array(raw.timestamps, pa.int64()))
        if valid is not None:
            arrays["valid_from"] = as_timestamps(pa.array(valid[0], pa.int64()))
            arrays["valid_to"] = as_timestamps(pa.array(valid[1], pa.int64()))
        if self._serdes.headers:
            rows = [[{"key": k, "value": v} for k, v in each] for each in raw.headers or ()]
            arrays["headers"] = pa.array(rows, _HEADERS)
        names = self.schema.names
        if CORRUPT in names:
            arrays[CORRUPT] = malformed.column()
        batch = pa.RecordBatch.from_pydict({name: arrays[name] for name in names})
        mask = malformed.kept()
        return batch if mask is None else batch.filter(mask)

    def _fields(self) -> list[tuple[str, DataType]]:
        """Return the names and Spark types of the columns in order."""
        fields: list[tuple[str, DataType]] = [("key", self._key.type)]
        if self._layout is not None:
            fields += [("window_start", TimestampType()), ("window_end", TimestampType())]
        fields.append(("value", self._value.type))
        if self._shape is Shape.RECORDS:
            fields.append(("topic", StringType()))
        fields += [("partition", IntegerType()), ("offset", LongType())]
        fields.append(("timestamp", TimestampType()))
        if self._shape is Shape.VERSIONS:
            fields += [("valid_from", TimestampType()), ("valid_to", TimestampType())]
        if self._serdes.headers:
            fields.append(("headers", _HEADERS_TYPE))
        can_fail = self._layout is not None or self._key.fails or self._value.fails
        if can_fail and self._serdes.mode is Mode.PERMISSIVE:
            fields.append((CORRUPT, StringType()))
        return fields

    @property
    def _key(self) -> Decoder:
        """Return the decoder of the column `key`."""
        return decoder_of(of_column(self._serdes, "key", self._topic))

    @property
    def _value(self) -> Decoder:
        """Return the decoder of the column `value`."""
        return decoder_of(of_column(self._serdes, "value", self._topic))

    @staticmethod
    def _column(
        name: str, decoder: Decoder, values: Sequence[bytes | None], malformed: Malformed
    ) -> Any:
        """Decode the keys or values of a batch, and hand what can't be read to `malformed`."""
        causes: Causes
        array, causes = decoded(decoder, values)
        if causes:
            malformed.add(name, decoder.name, causes, values)
        return array


def columns_of(serdes: Serdes, topic: str = "", shape: Shape = Shape.RECORDS) -> Columns:
    """Return a decoder of the records of `topic` that are written with these serdes."""
    return Columns(serdes, topic, shape)


def planned(serdes: Serdes, topic: str) -> Serdes:
    """Return the options with the newest schemas of a registry, which then stay for all of a read.

    Raises ConfigError if the registry has none.
    """
    registry = serdes.schema_registry or ""
    if serdes.key is Serde.AVRO and serdes.key_schema is None:
        serdes = replace(serdes, key_schema=latest_schema(registry, topic, "key"))
    if serdes.value is Serde.AVRO and serdes.value_schema is None:
        serdes = replace(serdes, value_schema=latest_schema(registry, topic, "value"))
    return serdes


def _layout(serdes: Serdes, topic: str, shape: Shape) -> Layout | None:
    """Return the layout of windowed keys in a topic or a store's changelog; None if none are."""
    match serdes.windowed:
        case None:
            return None
        case Windowed.SESSION:
            return Layout.SESSION
    is_of_store = shape is not Shape.RECORDS or topic.endswith(CHANGELOG)
    return Layout.SEQUENCED if is_of_store else Layout.TIME
