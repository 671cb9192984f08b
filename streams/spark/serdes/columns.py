"""Decode batches of records into Arrow batches with the columns of a topic or a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_type

from streams.spark.serdes.avro_values import fetch_latest_schema
from streams.spark.serdes.decoding import create_column_decoder, create_column_serde
from streams.spark.serdes.malformed import MalformedRows, decode_column
from streams.spark.serdes.times import find_time_column_type, to_record_times, to_time_column
from streams.spark.serdes.window_keys import choose_key_layout, split_windowed_keys
from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import ParseMode, SerdeName, SerdeOptions

CORRUPT_RECORD_COLUMN = "_corrupt_record"
CHANGELOG_SUFFIX = "-changelog"
"""The end of the names of changelogs, the topics that stores are restored from."""
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class RowKind(StrEnum):
    """Names the kinds of rows: records of a topic, rows of a store, or versions of its rows."""

    RECORDS = "records"
    TABLE = "table"
    VERSIONS = "versions"


class BatchDecoder:
    """Decodes raw batches of records into Arrow batches by the serdes that a read's options name.

    `topic` is where the records come from.
    """

    def __init__(
        self, serdes: SerdeOptions, topic: str = "", row_kind: RowKind = RowKind.RECORDS
    ) -> None:
        self._serdes = serdes
        self._row_kind = row_kind
        self._key_decoder = create_column_decoder(create_column_serde(serdes, "key", topic))
        self._value_decoder = create_column_decoder(create_column_serde(serdes, "value", topic))
        is_of_store = row_kind is not RowKind.RECORDS or topic.endswith(CHANGELOG_SUFFIX)
        self._layout = (
            None
            if serdes.windowed is None
            else choose_key_layout(serdes.windowed, is_of_store=is_of_store)
        )

    @cached_property
    def schema(self) -> types.StructType:
        """Return the names and types of the columns, as Spark has them, in order."""
        time = find_time_column_type(self._serdes.times)
        found = types.StructType().add("key", self._key_decoder.spark_type)
        if self._layout is not None:
            found.add("window_start", time).add("window_end", time)
        found.add("value", self._value_decoder.spark_type)
        if self._row_kind is RowKind.RECORDS:
            found.add("topic", types.StringType())
        found.add("partition", types.IntegerType()).add("offset", types.LongType())
        found.add("timestamp", time)
        if self._row_kind is RowKind.VERSIONS:
            found.add("valid_from", time).add("valid_to", time)
        if self._serdes.headers:
            found.add("headers", from_arrow_type(_HEADERS))
        can_fail = (
            self._layout is not None or self._key_decoder.can_fail or self._value_decoder.can_fail
        )
        if can_fail and self._serdes.mode is ParseMode.PERMISSIVE:
            found.add(CORRUPT_RECORD_COLUMN, types.StringType())
        return found

    def decode_batch(
        self, raw: RawBatch, validity_ms: tuple[Sequence[int], Sequence[int | None]] | None = None
    ) -> Any:
        """Decode a batch of records into a pyarrow.RecordBatch of the decoder's schema.

        `validity_ms`: of versions, from when and to when each holds. Raises UserError for a time
        that Spark doesn't have, and with FAILFAST for what can't be read.
        """
        count, times = len(raw), self._serdes.times
        malformed = MalformedRows(self._serdes.mode, raw.topic, raw.partition, raw.offsets)
        arrays: dict[str, Any] = {}
        keys: Sequence[bytes | None] = raw.keys
        if self._layout is not None:
            split_keys = split_windowed_keys(keys, self._layout, self._serdes.window_size_ms, times)
            malformed.add_causes("key", "windowed key", split_keys.causes, raw.keys)
            keys = split_keys.keys
            arrays["window_start"] = to_time_column(split_keys.starts_ms, times)
            arrays["window_end"] = to_time_column(split_keys.ends_ms, times)
        for name, decoder, values in (
            ("key", self._key_decoder, keys),
            ("value", self._value_decoder, raw.values),
        ):
            arrays[name], causes = decode_column(decoder, values)
            malformed.add_causes(name, decoder.name, causes, values)
        arrays["topic"] = pa.repeat(pa.scalar(raw.topic, pa.string()), count)
        arrays["partition"] = pa.repeat(pa.scalar(raw.partition, pa.int32()), count)
        arrays["offset"] = pa.array(raw.offsets, pa.int64())
        columns: dict[str, Sequence[int | None]] = {"timestamp": raw.timestamps_ms}
        if validity_ms is not None:
            columns["valid_from"], columns["valid_to"] = validity_ms
        for name, column in columns.items():
            arrays[name] = to_record_times(name, pa.array(column, pa.int64()), raw, times)
        if self._serdes.headers:
            rows = [[{"key": k, "value": v} for k, v in each] for each in raw.headers or ()]
            arrays["headers"] = pa.array(rows, _HEADERS)
        names = self.schema.names
        if CORRUPT_RECORD_COLUMN in names:
            arrays[CORRUPT_RECORD_COLUMN] = malformed.build_corrupt_record_column()
        batch = pa.RecordBatch.from_pydict({name: arrays[name] for name in names})
        mask = malformed.build_mask_if_malformed_are_dropped()
        return batch if mask is None else batch.filter(mask)


def pin_registry_schemas(serdes: SerdeOptions, topic: str) -> SerdeOptions:
    """Return the options with the registry's newest schemas, so that all tasks use the same ones.

    Raises ConfigError if the registry has none.
    """
    registry = serdes.schema_registry
    if registry is None:
        return serdes
    if serdes.key is SerdeName.AVRO and serdes.key_schema is None:
        serdes = replace(serdes, key_schema=fetch_latest_schema(registry, topic, "key"))
    if serdes.value is SerdeName.AVRO and serdes.value_schema is None:
        serdes = replace(serdes, value_schema=fetch_latest_schema(registry, topic, "value"))
    return serdes
