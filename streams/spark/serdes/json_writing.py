"""Encode Arrow arrays as JSON, or refuse what JSON doesn't have (decision 0060).

Binary is base64, dates and times are ISO 8601, decimals are numbers with all of their digits. All
fields of a struct are written, null where they are null.
"""

from __future__ import annotations

import base64
import math
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from streams.errors import ConfigError, UserError
from streams.spark.serdes.python_values import to_python_values

_SCALARS = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)


def encode_json_column(column: Any, column_name: str) -> list[bytes | None]:
    """Encode each value of an Arrow array as JSON; null is None.

    Raises ConfigError for a type that JSON doesn't have, UserError for such a value.
    """
    problem = f"column {column_name} can't be written as json"
    if reason := _find_type_refusal(column.type):
        raise ConfigError(f"{problem}: {reason}")
    has_floats = _has_floats(column.type)

    def encode(value: Any) -> bytes:
        data = orjson.dumps(value, default=_to_json)
        # orjson writes null for what is not finite.
        if has_floats and b"null" in data and (found := find_not_finite(value, column_name)):
            raise UserError(
                f"{problem}: {found}, which JSON doesn't have. Write null, or a text (to_json of "
                "Spark gives one)"
            )
        return data

    values = to_python_values(column, column_name, "json")
    return [None if each is None else encode(each) for each in values]


def _find_type_refusal(kind: Any) -> str | None:
    """Return the part of an Arrow type that JSON can't write; None if it can write all."""
    if pa.types.is_struct(kind):
        parts = [each.type for each in kind]
    elif pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type) and not pa.types.is_large_string(kind.key_type):
            return f"keys of JSON are text, and there is a map with keys of {kind.key_type}"
        parts = [kind.item_type]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [kind.value_type]
    else:
        fits = any(is_kind(kind) for is_kind in _SCALARS)
        return None if fits else f"JSON has no {kind}. Cast it, or leave it out"
    return next((found for each in parts if (found := _find_type_refusal(each))), None)


def _has_floats(kind: Any) -> bool:
    """Return whether an Arrow type has floating-point numbers in it."""
    if pa.types.is_floating(kind):
        return True
    return any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))


def find_not_finite(value: Any, path: str) -> str | None:
    """Find a NaN or an infinity in a value; return its place with the number, None without one.

    `path`: the place of the value itself.
    """
    parts: list[tuple[str, Any]] = []
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value}"
    if isinstance(value, dict):
        parts = [(f"{path}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    return next((found for at, each in parts if (found := find_not_finite(each, at))), None)


def _to_json(value: object) -> Any:
    """Convert what orjson doesn't know: bytes to base64, a decimal to a number with all digits."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
