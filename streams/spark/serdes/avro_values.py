"""Convert a schema registry's Avro values to Spark's types, as Spark's own Avro source does.

Values are read by the serde that applications use (`streams.serdes.avro`), with the reader's
schema, which also gives the type of the column. Source: SchemaConverters.toSqlTypeHelper of Spark
4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import time
from functools import partial
from typing import Any
from uuid import UUID

from pyspark.sql import types

from streams import serdes
from streams.errors import ConfigError
from streams.serdes import Field, Serde
from streams.serdes.registry_client import RegistryConnection
from streams.spark.source.registry_access import RegistryAccess

Converter = Callable[[Any], Any]
AvroType = tuple[types.DataType, Converter | None]
"""Spark's type of an Avro schema, and what makes its decoded values fit for Arrow, if needed."""

_PRIMITIVE_TYPES: Mapping[str, types.DataType] = {
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "string": types.StringType(),
    "enum": types.StringType(),
    "bytes": types.BinaryType(),
    "fixed": types.BinaryType(),
}
_LOGICAL_TYPES: Mapping[tuple[str, str], types.DataType] = {
    ("int", "date"): types.DateType(),
    ("long", "timestamp-millis"): types.TimestampType(),
    ("long", "timestamp-micros"): types.TimestampType(),
    ("long", "local-timestamp-millis"): types.TimestampNTZType(),
    ("long", "local-timestamp-micros"): types.TimestampNTZType(),
}
_SPARK_TIMES_MS = (2**63 - 1) // 1_000
_DECIMAL_DIGITS_MAX = 38
_WIDENED_UNIONS = ({"int", "long"}, {"float", "double"})


def fetch_latest_schema(registry: RegistryAccess, topic: str, field: Field) -> str:
    """Return the newest schema that the registry has of a topic's keys or values.

    Raises ConfigError.
    """
    subject = f"{topic}-{field}"
    try:
        there = RegistryConnection(registry.read_settings(), "option schema_registry")
        client = there.get_client()
    except ImportError as error:
        raise ConfigError(
            f"option {field}=avro needs the schema registry client of confluent-kafka ({error}): "
            "pip install 'millrace-streams[registry]'"
        ) from error
    except ValueError as error:
        raise ConfigError(str(error)) from None
    try:
        return str(client.get_latest_version(subject).schema.schema_str)
    except Exception as error:
        raise ConfigError(
            f"the schema registry has no schema of subject {subject!r}: "
            f"{there.describe_error(error)}. "
            f"Give it as option {field}_schema, or another schema_registry than {there!r}"
        ) from None


def create_avro_serde(
    schema: str, registry: RegistryAccess, topic: str, field: Field
) -> Serde[Any]:
    """Return an Avro serde for the keys or values of a topic. Raises ConfigError."""
    try:
        return serdes.avro(
            registry=registry.read_settings(), schema=schema, beyond_python="number"
        ).for_topic(topic, field)
    except (ValueError, ImportError) as error:
        raise ConfigError(f"option {field}=avro: {error}") from error


def create_avro_reader(
    schema: str, registry: RegistryAccess, topic: str, field: Field
) -> Callable[[bytes], Any]:
    """Return a function that reads one Avro value into a value that `pyarrow.array` takes."""
    deserialize = create_avro_serde(schema, registry, topic, field).deserialize
    _, convert = _resolve_schema(schema)
    if convert is None:
        return deserialize
    return lambda value: convert(deserialize(value))


def avro_to_spark_type(schema: str) -> types.DataType:
    """Return the Spark type of an Avro schema. Raises ConfigError for one that has none."""
    return _resolve_schema(schema)[0]


def _resolve_schema(schema: str) -> AvroType:
    """Resolve the text of a schema. Raises ConfigError for one that Spark has no type for."""
    try:
        return _resolve_type(json.loads(schema), {}, ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{schema:.200} is no Avro schema that Spark has a type for: {error}"
        ) from error


def _resolve_type(
    schema: Any, known_types: dict[str, AvroType], enclosing_records: tuple[str, ...]
) -> AvroType:
    """Resolve an Avro schema, which may be a part of another schema.

    `known_types`: the named types seen so far, which this adds to; `enclosing_records`: the names
    of the records that the part is in. Raises ValueError for a type that Spark has none for.
    """
    if isinstance(schema, list):
        return _resolve_union(schema, known_types, enclosing_records)
    if isinstance(schema, str):
        if schema in enclosing_records:
            raise ValueError(f"record {schema} contains itself")
        if schema in _PRIMITIVE_TYPES:
            return _PRIMITIVE_TYPES[schema], None
        if schema not in known_types:
            raise ValueError(f"{schema} is not known")
        return known_types[schema]
    return _resolve_and_register_object(schema, known_types, enclosing_records)


def _resolve_and_register_object(
    schema: dict[str, Any], known_types: dict[str, AvroType], enclosing_records: tuple[str, ...]
) -> AvroType:
    """Resolve a schema that is a JSON object, as complex and logical types are."""
    kind, logical = schema["type"], schema.get("logicalType", "")
    if not isinstance(kind, str):
        return _resolve_type(kind, known_types, enclosing_records)
    found: AvroType
    match kind:
        case "bytes" | "fixed" if logical == "decimal":
            if schema["precision"] > _DECIMAL_DIGITS_MAX:
                raise ValueError(f"a decimal of {schema['precision']} digits: Spark has 38")
            found = types.DecimalType(schema["precision"], schema.get("scale", 0)), None
        case "record":
            inside = (*enclosing_records, _qualify_name(schema))
            found = _create_record_type(
                {
                    each["name"]: _resolve_type(each["type"], known_types, inside)
                    for each in schema["fields"]
                }
            )
        case "array":
            found = _create_array_type(
                _resolve_type(schema["items"], known_types, enclosing_records)
            )
        case "map":
            found = _create_map_type(
                _resolve_type(schema["values"], known_types, enclosing_records)
            )
        case _:
            spark_type, convert = _resolve_type(kind, known_types, enclosing_records)
            found = (
                _LOGICAL_TYPES.get((kind, logical), spark_type),
                _LOGICAL_CONVERTERS.get(logical, convert),
            )
    if kind in ("record", "enum", "fixed"):
        known_types[_qualify_name(schema)] = known_types[schema["name"]] = found
    return found


def _resolve_union(
    schema: list[Any], known_types: dict[str, AvroType], enclosing_records: tuple[str, ...]
) -> AvroType:
    """Resolve a union, which may be of one type and null, or of two number types.

    Raises ValueError for any other union.
    """
    some = [each for each in schema if each != "null"]
    if len(some) == 1:
        spark_type, convert = _resolve_type(some[0], known_types, enclosing_records)
        if convert is None:
            return spark_type, None
        return spark_type, lambda value: None if value is None else convert(value)
    for wider in _WIDENED_UNIONS:
        if all(isinstance(each, str) for each in some) and set(some) == wider:
            return types.LongType() if "long" in wider else types.DoubleType(), _strip_branch_name
    raise ValueError(f"a union of {len(some)} types: give value=bytes")


def _qualify_name(schema: Mapping[str, Any]) -> str:
    """Return the name of a schema with its namespace."""
    name, space = schema["name"], schema.get("namespace")
    return f"{space}.{name}" if space and "." not in name else str(name)


def _create_record_type(fields: Mapping[str, AvroType]) -> AvroType:
    """Return the type of a record; those of its fields are converted that need it."""
    found = types.StructType([types.StructField(name, kind) for name, (kind, _) in fields.items()])
    converted = {name: convert for name, (_, convert) in fields.items() if convert is not None}
    if not converted:
        return found, None
    return found, lambda value: value | {n: convert(value[n]) for n, convert in converted.items()}


def _create_array_type(element: AvroType) -> AvroType:
    """Return the type of an array; its elements are converted if they need it."""
    kind, convert = element
    return types.ArrayType(kind), None if convert is None else lambda v: [convert(e) for e in v]


def _create_map_type(of_value: AvroType) -> AvroType:
    """Return the type of a map; a dict becomes a list of pairs, as Arrow takes maps."""
    kind, convert = of_value
    found = types.MapType(types.StringType(), kind)
    if convert is None:
        return found, lambda value: list(value.items())
    return found, lambda value: [(name, convert(each)) for name, each in value.items()]


def _strip_branch_name(value: Any) -> Any:
    """Return a number of a union of two number types without the name of its branch."""
    return value[1] if type(value) is tuple else value


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


def _to_spark_time(value: Any) -> Any:
    """Return a time of milliseconds as Arrow takes it; beyond Python's years it is a number of µs.

    Raises ValueError for a time that Spark has no TIMESTAMP for.
    """
    if type(value) is not int:
        return value
    if not -_SPARK_TIMES_MS <= value <= _SPARK_TIMES_MS:
        raise ValueError(f"Spark has no TIMESTAMP for {value} ms, which is after the year 294247")
    return value * 1_000


_LOGICAL_CONVERTERS: Mapping[str, Converter] = {
    "timestamp-millis": _to_spark_time,
    "local-timestamp-millis": _to_spark_time,
    "uuid": _uuid_to_text,
    "time-millis": partial(_time_to_number, unit_us=1_000),
    "time-micros": partial(_time_to_number, unit_us=1),
}
