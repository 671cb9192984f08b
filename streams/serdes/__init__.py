"""Serialise and deserialise keys and values."""

from streams.serdes.change import changed
from streams.serdes.json_objects import JsonSerde, json
from streams.serdes.pickled import pickle
from streams.serdes.plain import (
    bytes,  # noqa: A004  the public name
    float64,
    int32,
    int64,
    none,
    string,
)
from streams.serdes.registry import avro, json_schema, protobuf
from streams.serdes.serde import Field, Serde, of
from streams.serdes.windows import session_windowed, windowed

__all__ = [
    "Field",
    "JsonSerde",
    "Serde",
    "avro",
    "bytes",
    "changed",
    "float64",
    "int32",
    "int64",
    "json",
    "json_schema",
    "none",
    "of",
    "pickle",
    "protobuf",
    "session_windowed",
    "string",
    "windowed",
]
