"""Check that a number, text or bytes is one that an Avro type gives back as it was.

Types are exact: a bool is no int, an int is no double, and neither is a subclass. A float has 32
bits, and is refused if it would come back as another number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from state.shown_values import describe_value, quote_value
from streams.serdes.avro_logical_types import create_logical_writer
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import AvroType

Convert = Callable[[Any], Any]

_QUOTED_LENGTH_MAX = 200
_FLOAT = struct.Struct("f")


def create_scalar_writer(schema: AvroType, *, passes_numbers: bool) -> Convert:
    """Return the function that turns a value of a type that holds no others into what Avro has.

    It raises AvroMismatch for a value that would come back as another one.
    """
    if schema.logical_type:
        return create_logical_writer(schema, passes_numbers=passes_numbers)
    match schema.kind:
        case "enum":
            return _create_enum_check(schema)
        case "fixed":
            return _create_fixed_check(schema)
        case "array" | "map" | "record" | "error":
            return lambda value: value  # it is the only branch of its type
    return _CHECKS[schema.kind]


def create_type_error(kind: str, value: Any, hint: str = "") -> AvroMismatch:
    """Return the error of a value that has another type than the schema."""
    return AvroMismatch(f"{kind} needs {hint or kind}, got {describe_value(value)}")


def _require_null(value: Any) -> Any:
    if value is not None:
        raise create_type_error("null", value, "None")
    return value


def _require_boolean(value: Any) -> Any:
    if type(value) is not bool:
        raise create_type_error("boolean", value, "bool")
    return value


def _require_int(value: Any) -> Any:
    if type(value) is not int:
        raise create_type_error("int", value)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise AvroMismatch(f"int has 32 bits, got {quote_value(value)}: declare long")
    return value


def _require_long(value: Any) -> Any:
    if type(value) is not int:
        raise create_type_error("long", value, "int")
    if not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        raise AvroMismatch(f"long has 64 bits, got {quote_value(value)}")
    return value


def _require_float(value: Any) -> Any:
    if type(value) is not float:
        raise create_type_error("float", value)
    try:
        (rounded,) = _FLOAT.unpack(_FLOAT.pack(value))
    except OverflowError:
        raise AvroMismatch(f"float has 32 bits, got {quote_value(value)}: declare double") from None
    if rounded != value and value == value:  # NaN is unequal to itself, and comes back
        raise AvroMismatch(
            f"float has 32 bits, and {quote_value(value)} would come back as "
            f"{quote_value(rounded)}: declare double, or round it with ctypes.c_float(x).value"
        )
    return value


def _require_double(value: Any) -> Any:
    if type(value) is not float:
        hint = "float: write float(x)" if type(value) is int else "float"
        raise create_type_error("double", value, hint)
    return value


def _require_string(value: Any) -> Any:
    if type(value) is not str:
        raise create_type_error("string", value, "str")
    return value


def _require_bytes(value: Any) -> Any:
    if type(value) is not bytes:
        raise create_type_error("bytes", value)
    return value


_CHECKS: dict[str, Convert] = {
    "null": _require_null,
    "boolean": _require_boolean,
    "int": _require_int,
    "long": _require_long,
    "float": _require_float,
    "double": _require_double,
    "string": _require_string,
    "bytes": _require_bytes,
}


def _quote_value(value: Any) -> str:
    """Return a value for messages; a long one, which a union may try here, is not written out."""
    if isinstance(value, str | bytes) and len(value) > _QUOTED_LENGTH_MAX:
        return f"{type(value).__name__} of length {len(value)}"
    return quote_value(value)


def _create_enum_check(schema: AvroType) -> Convert:
    symbols = frozenset(schema.properties["symbols"])
    expected = ", ".join(sorted(symbols))

    def check_symbol(value: Any) -> Any:
        if type(value) is not str or value not in symbols:
            raise AvroMismatch(f"enum {schema.name} has {expected:.200}, got {_quote_value(value)}")
        return value

    return check_symbol


def _create_fixed_check(schema: AvroType) -> Convert:
    size = schema.properties["size"]

    def check_fixed(value: Any) -> Any:
        if type(value) is not bytes or len(value) != size:
            raise AvroMismatch(f"fixed {schema.name} needs {size} bytes, got {_quote_value(value)}")
        return value

    return check_fixed
