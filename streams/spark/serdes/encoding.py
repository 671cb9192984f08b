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
    match serde.serde:
        case SerdeName.BYTES:
            _check_column_type(_is_text(kind) or _is_bytes(kind), column, serde)
            return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
        case SerdeName.STRING:
            _check_column_type(_is_text(kind), column, serde)
            return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
        case SerdeName.JSON:
            convert = _json_converter(kind)
            values = column.to_pylist()
            return [None if each is None else orjson.dumps(convert(each)) for each in values]
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


def _is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: Any) -> bool:
    """Return whether an Arrow type is binary."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _encode_avro(column: Any, serde: ColumnSerde) -> list[bytes | None]:
    """Encode each value with Avro.

    Raises ConfigError without a registry, UserError for a value that can't be written.
    """
    if not serde.registry:
        raise ConfigError(f"option {serde.field}=avro needs schema_registry, the registry's URL")
    serialize = create_avro_serde(
        serde.schema or "", serde.registry, serde.topic, serde.field
    ).serialize
    convert = _avro_converter(column.type)
    try:
        return [None if each is None else serialize(convert(each)) for each in column.to_pylist()]
    except ValueError as error:
        raise UserError(f"column {serde.field} can't be written as avro: {error}") from error


def _check_column_type(fits: bool, column: Any, serde: ColumnSerde) -> None:
    """Raise ConfigError unless the type of a column fits its serde."""
    if not fits:
        raise ConfigError(
            f"column {serde.field} is {column.type}, and option {serde.field}={serde.serde.value} "
            "writes none of that: cast the column, or name another serde"
        )


def _json_converter(kind: Any) -> Callable[[Any], Any]:
    """Return a function that converts a value of an Arrow type to one that orjson writes."""
    if _is_bytes(kind):
        return _make_null_safe(lambda value: base64.b64encode(value).decode())
    if pa.types.is_decimal(kind):
        return _make_null_safe(_decimal_fragment)
    return _nested_converter(kind, _json_converter)


def _avro_converter(kind: Any) -> Callable[[Any], Any]:
    """Return a function that converts a value of an Arrow type to one that fastavro writes."""
    return _nested_converter(kind, _avro_converter)


def _nested_converter(
    kind: Any, create_converter: Callable[[Any], Callable[[Any], Any]]
) -> Callable[[Any], Any]:
    """Return a converter for structs, lists and maps that converts the values nested in them.

    Maps, which Arrow returns as lists of pairs, become dicts.
    """
    if pa.types.is_struct(kind):
        fields = [(each.name, create_converter(each.type)) for each in kind]
        return _make_null_safe(lambda value: {name: of(value[name]) for name, of in fields})
    if pa.types.is_map(kind):
        of_value = create_converter(kind.item_type)
        return _make_null_safe(lambda value: {name: of_value(each) for name, each in value})
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_element = create_converter(kind.value_type)
        return _make_null_safe(lambda value: [of_element(each) for each in value])
    return _return_unchanged


def _return_unchanged(value: Any) -> Any:
    return value


def _make_null_safe(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a converter so that it returns null for null."""
    return lambda value: None if value is None else convert(value)


def _decimal_fragment(value: Decimal) -> orjson.Fragment:
    """Convert a decimal to a JSON number with all of its digits."""
    return orjson.Fragment(format(value, "f"))
