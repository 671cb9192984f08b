"""Encode Arrow arrays as bytes with the serde of a write's options, the inverse of `decoding`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streams.errors import ConfigError, UserError
from streams.spark.serdes.arrow_numbers import encode_big_endian_numbers
from streams.spark.serdes.avro_values import create_avro_serde
from streams.spark.serdes.avro_writing import create_spark_converter
from streams.spark.serdes.decoding import ColumnSerde
from streams.spark.serdes.json_writing import encode_json_column
from streams.spark.serdes.python_values import to_python_values
from streams.spark.source.options import SerdeName

_NUMBER_TYPES = {
    SerdeName.INT32: pa.int32(),
    SerdeName.INT64: pa.int64(),
    SerdeName.FLOAT64: pa.float64(),
}


def encode_column(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Encode each value of a pyarrow array as bytes; null is None.

    Raises ConfigError where the column's type is none of the serde's, UserError where a value can't
    be written.
    """
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    match serde.serde:
        case SerdeName.BYTES | SerdeName.STRING:
            is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
            fits = is_text or (is_bytes and serde.serde is SerdeName.BYTES)
            _check_column_type(fits, column, serde)
            return _encode_bytes(column, serde)
        case SerdeName.JSON:
            return encode_json_column(column, serde.field)
        case SerdeName.AVRO:
            return _encode_avro(column, serde)
    is_float = serde.serde is SerdeName.FLOAT64 and pa.types.is_floating(kind)
    _check_column_type(pa.types.is_integer(kind) or is_float, column, serde)
    try:
        return encode_big_endian_numbers(column.cast(_NUMBER_TYPES[serde.serde]))
    except pa.ArrowInvalid as error:
        raise UserError(
            f"column {serde.field} can't be written as {serde.serde.value}: {error}"
        ) from error


def _encode_bytes(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Return the bytes of texts and of binary values. Raises UserError for text that is no UTF-8.

    Spark's STRING may hold any bytes, as after a cast. BINARY columns are the way to write them.
    """
    found = column.cast(pa.binary())
    if serde.serde is SerdeName.STRING:
        try:
            found.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise UserError(
                f"column {serde.field} can't be written as string: it holds text that is no UTF-8 "
                f"({error}). Cast it to BINARY, with option {serde.field}=bytes"
            ) from error
    return found.to_pylist()  # type: ignore[no-any-return]


def _encode_avro(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Encode each value with Avro.

    Raises ConfigError without a registry, UserError for a value that can't be written.
    """
    if not serde.registry:
        raise ConfigError(f"option {serde.field}=avro needs schema_registry, the registry's URL")
    avro = create_avro_serde(serde.schema or "", serde.registry, serde.topic, serde.field)
    values = to_python_values(column, serde.field, "avro")
    try:
        convert = create_spark_converter(serde.schema or "")
        return [None if each is None else avro.serialize(convert(each)) for each in values]
    except ValueError as error:
        raise UserError(f"column {serde.field} can't be written as avro: {error}") from error


def _check_column_type(fits: bool, column: Any, serde: ColumnSerde) -> None:
    """Raise ConfigError unless the type of a column fits its serde."""
    if not fits:
        raise ConfigError(
            f"column {serde.field} is {column.type}, and option {serde.field}={serde.serde.value} "
            "writes none of that: cast the column, or name another serde"
        )
