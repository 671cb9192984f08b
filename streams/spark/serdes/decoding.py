"""Decode bytes into Arrow arrays with each serde: whole batches, or value by value on failure.

A `ColumnDecoder` belongs to one column. It is made where it is used, in each Python process, from a
`ColumnSerde`, which is sent there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_type

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Field, Serde
from streams.spark.serdes.arrow_numbers import decode_big_endian_numbers
from streams.spark.serdes.avro_values import avro_to_spark_type, create_avro_reader
from streams.spark.serdes.ddl import parse_type
from streams.spark.serdes.json_values import create_json_batch_reader, create_json_reader
from streams.spark.source.options import SerdeName, SerdeOptions
from streams.spark.source.registry_access import RegistryAccess

_NUMBERS: Mapping[SerdeName, tuple[types.DataType, Serde[Any]]] = {
    SerdeName.INT32: (types.IntegerType(), serdes.int32),
    SerdeName.INT64: (types.LongType(), serdes.int64),
    SerdeName.FLOAT64: (types.DoubleType(), serdes.float64),
}


@dataclass(frozen=True, slots=True)
class ColumnSerde:
    """Describes the serde of the keys or the values (`field`) of `topic`.

    `schema`: Spark's, as DDL, of `json`; Avro's, as JSON, of `avro`, which needs a `registry` too.
    """

    serde: SerdeName
    field: Field
    schema: str | None = None
    registry: RegistryAccess | None = None
    topic: str = ""


@dataclass(frozen=True, slots=True)
class ColumnDecoder:
    """Decodes the bytes of one column into Arrow.

    `decode_many` takes a batch, nulls included, and raises an exception if any of it can't be read;
    `decode_one` tells which value that is, and returns a value that `pyarrow.array` takes.
    """

    name: str
    spark_type: types.DataType
    arrow_type: Any
    decode_many: Callable[[Sequence[bytes | None]], Any]
    decode_one: Callable[[bytes], Any]
    can_fail: bool
    """Whether there are bytes that it can't read."""


def create_column_serde(options: SerdeOptions, field: Field, topic: str) -> ColumnSerde:
    """Return the serde that the options give for the keys or for the values."""
    if field == "key":
        return ColumnSerde(options.key, field, options.key_schema, options.schema_registry, topic)
    return ColumnSerde(options.value, field, options.value_schema, options.schema_registry, topic)


@cache
def create_column_decoder(serde: ColumnSerde) -> ColumnDecoder:
    """Create the decoder of a column's serde. Raises ConfigError for an unsupported schema."""
    schema = serde.schema or ""
    many: Callable[[Sequence[bytes | None]], Any] | None = None
    match serde.serde:
        case SerdeName.JSON:
            kind = parse_type(schema)
            one = _create_json_reader(kind, serde.field)
            many = create_json_batch_reader(kind, find_arrow_type(kind))
        case SerdeName.AVRO:
            kind = avro_to_spark_type(schema)
            if serde.registry is None:
                raise ConfigError(f"option {serde.field}=avro needs schema_registry")
            one = create_avro_reader(schema, serde.registry, serde.topic, serde.field)
        case SerdeName.BYTES:
            kind, one, many = types.BinaryType(), bytes, _to_binary_array
        case SerdeName.STRING:
            kind, one, many = types.StringType(), bytes.decode, _to_string_array
        case _:
            kind, number_serde = _NUMBERS[serde.serde]
            one = number_serde.deserialize
            many = partial(decode_big_endian_numbers, arrow_type=find_arrow_type(kind))
    arrow = find_arrow_type(kind)
    many = many or _decode_one_by_one(one, arrow)
    can_fail = serde.serde is not SerdeName.BYTES
    return ColumnDecoder(serde.serde.value, kind, arrow, many, one, can_fail)


def find_arrow_type(spark_type: types.DataType) -> Any:
    """Return the Arrow type that Spark uses for one of its own types."""
    return to_arrow_type(spark_type, timezone="UTC")


def _create_json_reader(kind: types.DataType, field: Field) -> Callable[[bytes], Any]:
    """Create the reader of a JSON value. Raises ConfigError for a type that JSON can't have."""
    try:
        return create_json_reader(kind)
    except ValueError as error:
        raise ConfigError(f"option {field}_schema: {error}") from error


def _to_binary_array(values: Sequence[bytes | None]) -> Any:
    return pa.array(values, pa.binary())


def _to_string_array(values: Sequence[bytes | None]) -> Any:
    return pa.array(values, pa.binary()).cast(pa.string())  # The cast checks that it is UTF-8.


def _decode_one_by_one(
    decode_one: Callable[[bytes], Any], arrow_type: Any
) -> Callable[[Sequence[bytes | None]], Any]:
    """Create a function that decodes a batch value by value into an Arrow array."""

    def decode_many(values: Sequence[bytes | None]) -> Any:
        return pa.array([None if each is None else decode_one(each) for each in values], arrow_type)

    return decode_many
