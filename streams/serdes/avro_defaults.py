"""Make the values of fields that a message does not have from the defaults of its schema.

A default is given as JSON, by rules of its own: bytes are texts of the characters U+0000 to U+00FF,
and a value of a union is one of its first branch that fits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import (
    RECORDS,
    WIRE_FIELD,
    AvroType,
    has_several_value_branches,
    name_wire_branch,
)

_LIMITS = {"int": 2**31, "long": 2**63}


def create_default(schema: AvroType, default: Any) -> Callable[[], Any]:
    """Return a function that makes the default of a field, as fastavro would have read it.

    It makes a new value each time, since values may be changed. It raises AvroMismatch if the
    default is none of the schema.
    """
    try:
        value = _convert_default(schema, default)
    except AvroMismatch as misfit:
        reason = f"the schema's default {default!r:.80} does not fit: {misfit.reason}"

        def refuse() -> Any:
            raise AvroMismatch(reason)

        return refuse
    if isinstance(value, dict | list | tuple):
        return lambda: _convert_default(schema, default)
    return lambda: value


def _convert_default(schema: AvroType, default: Any) -> Any:
    """Return a default as fastavro reads a value of its type, or raise AvroMismatch."""
    match schema.kind:
        case "union":
            return _convert_union_default(schema, default)
        case "array" if isinstance(default, list) and schema.items is not None:
            return [_convert_default(schema.items, each) for each in default]
        case "map" if isinstance(default, dict) and schema.items is not None:
            return {key: _convert_default(schema.items, each) for key, each in default.items()}
        case kind if kind in RECORDS and isinstance(default, dict):
            return _convert_record_default(schema, default)
    return _convert_scalar_default(schema, default)


def _convert_scalar_default(schema: AvroType, default: Any) -> Any:
    match schema.kind, default:
        case ("null", None) | ("boolean", bool()) | ("string", str()):
            return default
        case ("int" | "long", int()) if not isinstance(default, bool):
            if -_LIMITS[schema.kind] <= default < _LIMITS[schema.kind]:
                return default
        case ("float", int() | float()) if not isinstance(default, bool):
            return struct.unpack("f", struct.pack("f", default))[0]
        case ("double", int() | float()) if not isinstance(default, bool):
            return float(default)
        case ("bytes" | "fixed", str()) if max(default, default="") <= "\xff":
            return default.encode("latin-1")
        case ("enum", str()) if default in schema.properties["symbols"]:
            return default
    raise AvroMismatch(f"it is no {schema.name}")


def _convert_union_default(union: AvroType, default: Any) -> Any:
    for index, branch in enumerate(union.branches):
        try:
            value = _convert_default(branch, default)
        except AvroMismatch:
            continue
        if value is None or not has_several_value_branches(union):
            return value
        return name_wire_branch(union, index), {WIRE_FIELD: value}
    raise AvroMismatch("no type of the union has it")


def _convert_record_default(schema: AvroType, default: Any) -> Any:
    found = {}
    for each in schema.fields:
        if each.name not in default and not each.has_default:
            raise AvroMismatch(f"{schema.name} needs {each.name}")
        found[each.name] = _convert_default(each.type, default.get(each.name, each.default))
    return found
