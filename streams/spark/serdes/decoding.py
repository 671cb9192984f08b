"""Decode bytes into Arrow arrays with each serde: a batch at once, or one by one where that fails.

A `ColumnDecoder` belongs to one column. It is made where it is used, in each Python process, from a
`ColumnSerde`, which is sent there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
)

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Field
from streams.spark.serdes.arrow_numbers import from_big_endian
from streams.spark.serdes.avro_values import avro_reader, avro_type
from streams.spark.serdes.ddl import parse_type
from streams.spark.serdes.json_values import json_reader, many_reader
from streams.spark.source.options import Serde, Serdes

_PLAIN: Mapping[Serde, DataType] = {
    Serde.BYTES: BinaryType(),
    Serde.STRING: StringType(),
    Serde.INT32: IntegerType(),
    Serde.INT64: LongType(),
    Serde.FLOAT64: DoubleType(),
}


@dataclass(frozen=True, slots=True)
class ColumnSerde:
    """Says how the keys or the values (`field`) of `topic` are written.

    `schema`: Spark's, as DDL, of `json`; Avro's, as JSON, of `avro`, which needs a `registry` too.
    """

    serde: Serde
    field: Field
    schema: str | None = None
    registry: str | None = None
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Decoder:
    """Decodes the bytes of one column into Arrow.

    `decode_many` takes a batch, nulls included, and raises an exception if any of it can't be read;
    `decode_one` tells which value that is, and returns a value that `pyarrow.array` takes.
    """

    name: str
    type: DataType
    arrow: Any
    many: Callable[[Sequence[bytes | None]], Any]
    one: Callable[[bytes], Any]
    fails: bool = True
    """Whether there are bytes that it can't read."""


def of_column(given: Serdes, field: Field, topic: str) -> ColumnSerde:
    """Return the serde that the options give for the keys or for the values."""
    if field == "key":
        return ColumnSerde(given.key, field, given.key_schema, given.schema_registry, topic)
    return ColumnSerde(given.value, field, given.value_schema, given.schema_registry, topic)


@cache
def decoder_of(column: ColumnSerde) -> Decoder:
    """Return the decoder of a column's serde. Raises ConfigError for a schema that can't be."""
    name = column.serde.value
    match column.serde:
        case Serde.JSON:
            return _json(column)
        case Serde.AVRO:
            kind = avro_type(column.schema or "")
            one = avro_reader(
                column.schema or "", column.registry or "", column.topic, column.field
            )
            arrow = arrow_of(kind)
            return Decoder(name, kind, arrow, _one_by_one(one, arrow), one)
    kind = _PLAIN[column.serde]
    arrow = arrow_of(kind)

    def decode_numbers(values: Sequence[bytes | None]) -> Any:
        return from_big_endian(values, arrow)

    match column.serde:
        case Serde.BYTES:
            return Decoder(name, kind, arrow, _binary, bytes, fails=False)
        case Serde.STRING:
            return Decoder(name, kind, arrow, _text, bytes.decode)
        case Serde.INT32:
            return Decoder(name, kind, arrow, decode_numbers, serdes.int32.deserialize)
        case Serde.INT64:
            return Decoder(name, kind, arrow, decode_numbers, serdes.int64.deserialize)
        case Serde.FLOAT64:
            return Decoder(name, kind, arrow, decode_numbers, serdes.float64.deserialize)


def arrow_of(kind: DataType) -> Any:
    """Return the Arrow type that Spark takes for one of its own types."""
    return to_arrow_type(kind, timezone="UTC")


def _json(column: ColumnSerde) -> Decoder:
    """Return the decoder of a column of JSON. Raises ConfigError for a schema that can't be."""
    kind = parse_type(column.schema or "")
    try:
        one = json_reader(kind)
    except ValueError as error:
        raise ConfigError(f"option {column.field}_schema: {error}") from error
    arrow = arrow_of(kind)
    many = many_reader(kind, arrow) or _one_by_one(one, arrow)
    return Decoder(column.serde.value, kind, arrow, many, one)


def _binary(values: Sequence[bytes | None]) -> Any:
    return pa.array(values, pa.binary())


def _text(values: Sequence[bytes | None]) -> Any:
    return pa.array(values, pa.binary()).cast(pa.string())  # The cast checks that it is UTF-8.


def _one_by_one(one: Callable[[bytes], Any], arrow: Any) -> Callable[[Sequence[bytes | None]], Any]:
    """Return a function that decodes a batch into an Arrow array, value by value."""

    def decode_many(values: Sequence[bytes | None]) -> Any:
        return pa.array([None if each is None else one(each) for each in values], arrow)

    return decode_many
