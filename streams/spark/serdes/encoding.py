"""Encode Arrow arrays as bytes with the serde of a write's options, the inverse of `decoding`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from streams.errors import ConfigError, UserError
from streams.spark.serdes.arrow_numbers import to_big_endian
from streams.spark.serdes.avro_values import create_avro_serde
from streams.spark.serdes.decoding import ColumnSerde
from streams.spark.source.options import SerdeName

_NUMBER_TYPES = {
    SerdeName.INT32: pa.int32(),
    SerdeName.INT64: pa.int64(),
    SerdeName.FLOAT64: pa.float64(),
}


def encode_column(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Encode each value of a pyarrow array as bytes; null is None.

    JSON has every field of a struct, null where it is null; binary is base64, times are ISO 8601.
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
            return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
        case SerdeName.JSON:
            return _encode_each(column, lambda value: orjson.dumps(value, default=_to_json))
        case SerdeName.AVRO:
            return _encode_avro(column, serde)
    is_float = serde.serde is SerdeName.FLOAT64 and pa.types.is_floating(kind)
    _check_column_type(pa.types.is_integer(kind) or is_float, column, serde)
    try:
        return to_big_endian(column.cast(_NUMBER_TYPES[serde.serde]))
    except pa.ArrowInvalid as error:
        raise UserError(
            f"column {serde.field} can't be written as {serde.serde.value}: {error}"
        ) from error


def _encode_avro(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Encode each value with Avro.

    Raises ConfigError without a registry, UserError for a value that can't be written.
    """
    if not serde.registry:
        raise ConfigError(f"option {serde.field}=avro needs schema_registry, the registry's URL")
    avro = create_avro_serde(serde.schema or "", serde.registry, serde.topic, serde.field)
    try:
        return _encode_each(column, avro.serialize)
    except ValueError as error:
        raise UserError(f"column {serde.field} can't be written as avro: {error}") from error


def _check_column_type(fits: bool, column: Any, serde: ColumnSerde) -> None:
    """Raise ConfigError unless the type of a column fits its serde."""
    if not fits:
        raise ConfigError(
            f"column {serde.field} is {column.type}, and option {serde.field}={serde.serde.value} "
            "writes none of that: cast the column, or name another serde"
        )


def _encode_each(column: Any, encode: Callable[[Any], bytes]) -> list[bytes | None]:
    """Encode each value of an array as Python has it, with dicts for maps; null is None."""
    convert = _create_map_converter(column.type)
    return [None if each is None else encode(convert(each)) for each in column.to_pylist()]


def _create_map_converter(kind: Any) -> Callable[[Any], Any]:
    """Create a converter of maps, nested ones too, from the lists of pairs of Arrow to dicts."""
    if pa.types.is_struct(kind):
        fields = [(each.name, _create_map_converter(each.type)) for each in kind]
        return _make_null_safe(lambda value: {name: of(value[name]) for name, of in fields})
    if pa.types.is_map(kind):
        of_value = _create_map_converter(kind.item_type)
        return _make_null_safe(lambda value: {name: of_value(each) for name, each in value})
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_element = _create_map_converter(kind.value_type)
        return _make_null_safe(lambda value: [of_element(each) for each in value])
    return lambda value: value


def _make_null_safe(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a converter so that it returns null for null."""
    return lambda value: None if value is None else convert(value)


def _to_json(value: object) -> Any:
    """Convert what orjson doesn't know: bytes to base64, a decimal to a number with all digits."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
