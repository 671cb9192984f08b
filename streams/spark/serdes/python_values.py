"""Convert Arrow arrays to Python's objects for the serdes that write them, or refuse by row.

Maps become dicts, and times with a zone are in UTC: an offset of old times has seconds, which ISO
8601 as JSON writers have it doesn't say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from streams.errors import ConfigError, UserError

_UTC = "UTC"
_REASONS: dict[type[Exception], str] = {
    OverflowError: "Python has dates of the years 1 to 9999. Write a number, as unix_micros gives",
    UnicodeDecodeError: "a STRING is no UTF-8. Cast it to BINARY, or decode it before",
}


def to_python_values(column: Any, column_name: str, serde: str) -> list[Any]:
    """Convert an Arrow array to objects, with dicts for maps and structs; null is None.

    `column_name` and `serde` are for messages. Raises ConfigError for a struct with two fields of
    one name, UserError for a value that Python doesn't have.
    """
    problem = f"column {column_name} can't be written as {serde}"
    try:
        convert = _create_arrow_map_converter(column.type)
        in_utc = _replace_zones_by_utc(column.type)
        values = (column if in_utc == column.type else column.cast(in_utc)).to_pylist()
    except ConfigError as error:
        raise ConfigError(f"{problem}: {error}") from error
    except (OverflowError, UnicodeDecodeError) as error:
        raise UserError(f"{problem}: {_REASONS[type(error)]} ({error})") from error
    try:
        return values if convert is None else [convert(each) for each in values]
    except _RepeatedKey as error:
        raise UserError(f"{problem}: {error}") from error


class _RepeatedKey(ValueError):
    """Reports a map that has a key twice."""


def _replace_zones_by_utc(kind: Any) -> Any:
    """Return an Arrow type in which all timestamps with a zone are in UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, tz=_UTC)
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_replace_zones_by_utc(each.type)) for each in kind])
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(_replace_zones_by_utc(kind.item_type))
        return pa.map_(kind.key_field.with_type(_replace_zones_by_utc(kind.key_type)), item)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_replace_zones_by_utc(kind.value_type)))
    return kind


def _create_arrow_map_converter(kind: Any) -> Callable[[Any], Any] | None:
    """Create a converter of the objects of an Arrow type, None where there are no maps in it.

    Raises ConfigError for a struct that has a name twice.
    """
    if pa.types.is_struct(kind):
        names = [each.name for each in kind]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"a struct has two fields {twice!r}. Rename one")
        parts = [(each.name, _create_arrow_map_converter(each.type)) for each in kind]
        fields = [(name, convert) for name, convert in parts if convert is not None]
        return (
            _make_null_safe(lambda value: _convert_fields_in_place(fields, value))
            if fields
            else None
        )
    if pa.types.is_map(kind):
        of_key, of_item = (
            _create_arrow_map_converter(kind.key_type),
            _create_arrow_map_converter(kind.item_type),
        )
        return _make_null_safe(lambda value: _convert_map(of_key, of_item, value))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        convert = _create_arrow_map_converter(kind.value_type)
        if convert is not None:
            return _make_null_safe(lambda value: [convert(each) for each in value])
    return None


def _convert_fields_in_place(fields: list[tuple[str, Callable[[Any], Any]]], value: Any) -> Any:
    for name, convert in fields:
        value[name] = convert(value[name])
    return value


def _convert_map(
    of_key: Callable[[Any], Any] | None, of_item: Callable[[Any], Any] | None, pairs: Any
) -> dict[Any, Any]:
    """Convert the pairs of a map to a dict. Raises _RepeatedKey for a key that is there twice."""
    found = {
        key if of_key is None else of_key(key): each if of_item is None else of_item(each)
        for key, each in pairs
    }
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKey(f"a map has the key {twice!r:.100} twice")
    return found


def _make_null_safe(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a converter so that it returns None for None."""
    return lambda value: None if value is None else convert(value)
