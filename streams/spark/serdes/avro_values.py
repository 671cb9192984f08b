"""Convert a schema registry's Avro values to Spark's types, as Spark's own Avro source does.

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

_PRIMITIVE_TYPES: Mapping[str, DataType] = {
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
_LOGICAL_TYPES: Mapping[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
_TIME_UNITS_US = {"time-millis": 1_000, "time-micros": 1}
_WIDENED_UNIONS = ({"int", "long"}, {"float", "double"})


def fetch_latest_schema(registry: str, topic: str, field: Field) -> str:
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


def create_avro_serde(schema: str, registry: str, topic: str, field: Field) -> Serde[Any]:
    """Return an Avro serde for the keys or values of a topic. Raises ConfigError."""
    try:
        return serdes.avro(registry=registry, schema=schema).for_topic(topic, field)
    except (ValueError, ImportError) as error:
        raise ConfigError(f"option {field}=avro: {error}") from error


def create_avro_reader(
    schema: str, registry: str, topic: str, field: Field
) -> Callable[[bytes], Any]:
    """Return a function that reads one Avro value into a value that `pyarrow.array` takes."""
    deserialize = create_avro_serde(schema, registry, topic, field).deserialize
    convert = _create_converter(json.loads(schema), {})
    if convert is None:
        return deserialize
    return lambda value: convert(deserialize(value))


def avro_to_spark_type(schema: str) -> DataType:
    """Return the Spark type of an Avro schema. Raises ConfigError for one that has none."""
    try:
        return _spark_type(json.loads(schema), {}, ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{schema:.200} is no Avro schema that Spark has a type for: {error}"
        ) from error


def _spark_type(
    schema: Any, known_types: dict[str, DataType], enclosing_records: tuple[str, ...]
) -> DataType:
    """Return the Spark type of an Avro schema, which may be a part of another schema.

    `known_types`: the named types seen so far, which this adds to; `enclosing_records`: the names
    of the records that the part is in. Raises ValueError for a type that Spark has none for.
    """
    if isinstance(schema, list):
        return _union_type(schema, known_types, enclosing_records)
    if isinstance(schema, str):
        if schema in enclosing_records:
            raise ValueError(f"record {schema} contains itself")
        found = _PRIMITIVE_TYPES.get(schema) or known_types.get(schema)
        if found is None:
            raise ValueError(f"{schema} is not known")
        return found
    kind, logical = schema["type"], schema.get("logicalType", "")
    if not isinstance(kind, str):
        return _spark_type(kind, known_types, enclosing_records)
    if logical == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    match kind:
        case "record":
            name = _full_name(schema)
            fields = [
                StructField(
                    each["name"], _spark_type(each["type"], known_types, (*enclosing_records, name))
                )
                for each in schema["fields"]
            ]
            known_types[name] = known_types[schema["name"]] = StructType(fields)
            return known_types[name]
        case "array":
            return ArrayType(_spark_type(schema["items"], known_types, enclosing_records))
        case "map":
            return MapType(
                StringType(), _spark_type(schema["values"], known_types, enclosing_records)
            )
        case "enum" | "fixed":
            known_types[_full_name(schema)] = known_types[schema["name"]] = _PRIMITIVE_TYPES[kind]
    return _LOGICAL_TYPES.get((kind, logical)) or _spark_type(kind, known_types, enclosing_records)


def _union_type(
    schema: list[Any], known_types: dict[str, DataType], enclosing_records: tuple[str, ...]
) -> DataType:
    """Return the Spark type of a union, which may be of one type and null, or of two number types.

    Raises ValueError for any other union.
    """
    some = [each for each in schema if each != "null"]
    if len(some) == 1:
        return _spark_type(some[0], known_types, enclosing_records)
    for wider in _WIDENED_UNIONS:
        if all(isinstance(each, str) for each in some) and set(some) == wider:
            return LongType() if "long" in wider else DoubleType()
    raise ValueError(f"a union of {len(some)} types: give value=bytes")


def _full_name(schema: Mapping[str, Any]) -> str:
    """Return the name of a schema with its namespace."""
    name, space = schema["name"], schema.get("namespace")
    return f"{space}.{name}" if space and "." not in name else str(name)


Converter = Callable[[Any], Any]


def _create_converter(
    schema: Any, known_converters: dict[str, Converter | None]
) -> Converter | None:
    """Return a function that converts a decoded value for Arrow, or None if Arrow needs none."""
    if isinstance(schema, list):
        some = [each for each in schema if each != "null"]
        return (
            _make_null_safe(_create_converter(some[0], known_converters))
            if len(some) == 1
            else None
        )
    if isinstance(schema, str):
        return known_converters.get(schema)
    kind, logical = schema["type"], schema.get("logicalType", "")
    if logical == "uuid":
        return _uuid_to_text
    if logical in _TIME_UNITS_US:
        unit = _TIME_UNITS_US[logical]
        return lambda value: _time_to_number(value, unit)
    match kind:
        case "record":
            fields = {
                each["name"]: _create_converter(each["type"], known_converters)
                for each in schema["fields"]
            }
            found = _record_converter(
                {name: each for name, each in fields.items() if each is not None}
            )
            known_converters[_full_name(schema)] = known_converters[schema["name"]] = found
            return found
        case "array":
            return _array_converter(_create_converter(schema["items"], known_converters))
        case "map":
            return _map_converter(_create_converter(schema["values"], known_converters))
    return None if isinstance(kind, str) else _create_converter(kind, known_converters)


def _make_null_safe(convert: Converter | None) -> Converter | None:
    """Wrap a converter so that it returns null for null."""
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _record_converter(fields: Mapping[str, Converter]) -> Converter | None:
    """Return a converter of the fields of a record that need one, or None if none does."""
    if not fields:
        return None
    return lambda value: value | {name: each(value[name]) for name, each in fields.items()}


def _array_converter(convert: Converter | None) -> Converter | None:
    """Return a converter of the elements of a list, or None if they need none."""
    return None if convert is None else lambda value: [convert(each) for each in value]


def _map_converter(convert: Converter | None) -> Converter:
    """Return a converter from dicts to lists of pairs, as Arrow takes maps."""
    if convert is None:
        return lambda value: list(value.items())
    return lambda value: [(name, convert(each)) for name, each in value.items()]


def _uuid_to_text(value: Any) -> str:
    """Return a UUID as text, and anything else as it is."""
    return str(value) if isinstance(value, UUID) else value


def _time_to_number(value: Any, unit_us: int) -> Any:
    """Return a time of day as Avro's own number of units since midnight.

    Spark's Avro source has no type for times of day either.
    """
    if not isinstance(value, time):
        return value
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) // unit_us
