"""Convert values of Spark to those that a registry's Avro serde writes.

Spark has no UUID, and no time of day in its Avro source: these are texts and numbers in a column,
as `avro_values` reads them. Other times may be numbers too, as those after the year 9999 are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from streams.serdes.avro_schema import AvroType

Converter = Callable[[Any], Any]


def create_spark_converter(schema: str) -> Converter:
    """Return the function that converts a value of Spark to one of an Avro schema.

    What is none of the schema stays as it is, and is refused by the serde. The function raises
    ValueError for a text that is no UUID.
    """
    import fastavro

    from streams.serdes.avro_schema import read_schema

    convert = _find_converter(read_schema(fastavro.parse_schema(json.loads(schema))))
    return convert or (lambda value: value)


def _find_converter(schema: AvroType) -> Converter | None:
    """Return the conversion of a type, or None for one whose values stay as they are."""
    if schema.logical_type == "uuid":
        return _to_uuid
    if schema.logical_type and schema.kind in ("int", "long"):
        return _create_number_converter(schema)
    if schema.kind == "union":
        converts = [convert for each in schema.branches if (convert := _find_converter(each))]
        return converts[0] if converts else None
    if schema.fields:
        return _create_fields_converter(schema)
    convert = None if schema.items is None else _find_converter(schema.items)
    if convert is None:
        return None
    return (
        _create_entries_converter(convert)
        if schema.kind == "map"
        else _create_list_converter(convert)
    )


def _create_fields_converter(schema: AvroType) -> Converter | None:
    converts = [
        (each.name, convert) for each in schema.fields if (convert := _find_converter(each.type))
    ]
    if not converts:
        return None

    def convert_fields(value: Any) -> Any:
        if isinstance(value, dict):
            for name, convert in converts:
                if name in value:
                    value[name] = convert(value[name])
        return value

    return convert_fields


def _create_entries_converter(convert: Converter) -> Converter:
    return lambda value: (
        {key: convert(each) for key, each in value.items()} if isinstance(value, dict) else value
    )


def _create_list_converter(convert: Converter) -> Converter:
    return lambda value: [convert(each) for each in value] if isinstance(value, list) else value


def _to_uuid(value: Any) -> Any:
    return UUID(value) if isinstance(value, str) else value


def _create_number_converter(schema: AvroType) -> Converter:
    """Return the conversion of numbers to times; what Python has none for stays a number."""
    from streams.serdes.avro_logical_types import create_logical_reader

    read = create_logical_reader(schema, passes_numbers=True)
    return lambda value: read(value) if type(value) is int else value
