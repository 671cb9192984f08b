"""Convert Avro values of a schema registry to Spark's types, as Spark's own Avro source maps them.

Values are read by the serde that applications use (`streams.serdes.avro`), with the reader's
schema, which also gives the type of the column. Source: SchemaConverters.toSqlTypeHelper of Spark
4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import time
from typing import Any
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Field, Serde
from streams.serdes.registry_client import RegistryConnection

_PLAIN: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "enum": StringType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
}
_LOGICAL: Mapping[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
_TIMES_UNIT = {"time-millis": 1_000, "time-micros": 1}
_WIDER = ({"int", "long"}, {"float", "double"})


def latest_schema(registry: str, topic: str, field: Field) -> str:
    """Return the newest schema that the registry has of a topic's keys or values.

    Raises ConfigError.
    """
    subject = f"{topic}-{field}"
    try:
        there = RegistryConnection(registry)
        client = there.get_client()
    except ImportError as error:
        raise ConfigError(
            f"option {field}=avro needs the schema registry client of confluent-kafka ({error}): "
            "pip install 'millrace[registry]'"
        ) from error
    except ValueError as error:
        raise ConfigError(f"option schema_registry: {error}") from None
    try:
        return str(client.get_latest_version(subject).schema.schema_str)
    except Exception as error:
        raise ConfigError(
            f"the schema registry has no schema of subject {subject!r}: "
            f"{there.describe_error(error)}. "
            f"Give it as option {field}_schema, or another schema_registry than {there!r}"
        ) from None


def avro_serde(schema: str, registry: str, topic: str, field: Field) -> Serde[Any]:
    """Return an Avro serde for the keys or values of a topic. Raises ConfigError."""
    try:
        return serdes.avro(registry=registry, schema=schema).for_topic(topic, field)
    except (ValueError, ImportError) as error:
        raise ConfigError(f"option {field}=avro: {error}") from error


def avro_reader(schema: str, registry: str, topic: str, field: Field) -> Callable[[bytes], Any]:
    """Return a function that reads one Avro value into a value that `pyarrow.array` takes."""
    deserialize = avro_serde(schema, registry, topic, field).deserialize
    convert = _converter(json.loads(schema), {})
    if convert is None:
        return deserialize
    return lambda value: convert(deserialize(value))


def avro_type(schema: str) -> DataType:
    """Return the Spark type of an Avro schema. Raises ConfigError for one that has none."""
    try:
        return _type(json.loads(schema), {}, ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{schema:.200} is no Avro schema that Spark has a type for: {error}"
        ) from error


def _type(schema: Any, named: dict[str, DataType], within: tuple[str, ...]) -> DataType:
    """Return the Spark type of a part of a schema.

    `known_types`: the named types seen so far, which this adds to; `enclosing_records`: the names
    of the records that the part is in. Raises ValueError for a type that Spark has none for.
    """
    if isinstance(schema, list):
        return _union(schema, named, within)
    if isinstance(schema, str):
        if schema in within:
            raise ValueError(f"record {schema} contains itself")
        found = _PLAIN.get(schema) or named.get(schema)
        if found is None:
            raise ValueError(f"{schema} is not known")
        return found
    kind, logical = schema["type"], schema.get("logicalType", "")
    if not isinstance(kind, str):
        return _type(kind, named, within)
    if logical == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    match kind:
        case "record":
            name = _name(schema)
            fields = [
                StructField(each["name"], _type(each["type"], named, (*within, name)))
                for each in schema["fields"]
            ]
            named[name] = named[schema["name"]] = StructType(fields)
            return named[name]
        case "array":
            return ArrayType(_type(schema["items"], named, within))
        case "map":
            return MapType(StringType(), _type(schema["values"], named, within))
        case "enum" | "fixed":
            named[_name(schema)] = named[schema["name"]] = _PLAIN[kind]
    return _LOGICAL.get((kind, logical)) or _type(kind, named, within)


def _union(schema: list[Any], named: dict[str, DataType], within: tuple[str, ...]) -> DataType:
    """Return the Spark type of a union: one type or null, int and long, or float and double.

    Raises ValueError for any other union.
    """
    some = [each for each in schema if each != "null"]
    if len(some) == 1:
        return _type(some[0], named, within)
    for wider in _WIDER:
        if all(isinstance(each, str) for each in some) and set(some) == wider:
            return LongType() if "long" in wider else DoubleType()
    raise ValueError(f"a union of {len(some)} types: give value=bytes")


def _name(schema: Mapping[str, Any]) -> str:
    """Return the name of a schema with its namespace."""
    name, space = schema["name"], schema.get("namespace")
    return f"{space}.{name}" if space and "." not in name else str(name)


Convert = Callable[[Any], Any]


def _converter(schema: Any, named: dict[str, Convert | None]) -> Convert | None:
    """Return a function that converts a value for Arrow, or None if Arrow takes it as it is."""
    if isinstance(schema, list):
        some = [each for each in schema if each != "null"]
        return _unless_null(_converter(some[0], named)) if len(some) == 1 else None
    if isinstance(schema, str):
        return named.get(schema)
    kind, logical = schema["type"], schema.get("logicalType", "")
    if logical == "uuid":
        return _text_of
    if logical in _TIMES_UNIT:
        unit = _TIMES_UNIT[logical]
        return lambda value: _since_midnight(value, unit)
    match kind:
        case "record":
            fields = {each["name"]: _converter(each["type"], named) for each in schema["fields"]}
            found = _record({name: each for name, each in fields.items() if each is not None})
            named[_name(schema)] = named[schema["name"]] = found
            return found
        case "array":
            return _items(_converter(schema["items"], named))
        case "map":
            return _pairs(_converter(schema["values"], named))
    return None if isinstance(kind, str) else _converter(kind, named)


def _unless_null(convert: Convert | None) -> Convert | None:
    """Return a converter that leaves null as it is."""
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _record(fields: Mapping[str, Convert]) -> Convert | None:
    """Return a converter of the fields of a record that need one, or None if none does."""
    if not fields:
        return None
    return lambda value: value | {name: each(value[name]) for name, each in fields.items()}


def _items(convert: Convert | None) -> Convert | None:
    """Return a converter of the elements of a list, or None if they need none."""
    return None if convert is None else lambda value: [convert(each) for each in value]


def _pairs(convert: Convert | None) -> Convert:
    """Return a converter from dicts to lists of pairs, as Arrow takes maps."""
    if convert is None:
        return lambda value: list(value.items())
    return lambda value: [(name, convert(each)) for name, each in value.items()]


def _text_of(value: Any) -> str:
    """Return a UUID as text, and anything else as it is."""
    return str(value) if isinstance(value, UUID) else value


def _since_midnight(value: Any, unit: int) -> Any:
    """Return a time of day as Avro's own number of units since midnight.

    Spark's Avro source has no type for times of day either.
    """
    if not isinstance(value, time):
        return value
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) // unit
