"""Serialise and deserialise keys and values.

Start reading at `serde`, then `plain` and `json_objects`. A serde gives back what it was given, or
refuses it by name; it never changes a value without a word.
"""

from typing import NoReturn

from streams.serdes.avro_serde import avro
from streams.serdes.change import changed
from streams.serdes.json_objects import JsonSerde, json
from streams.serdes.json_schema_serde import json_schema
from streams.serdes.pickled import pickle
from streams.serdes.plain import (
    bytes,  # noqa: A004  the public name
    float64,
    int32,
    int64,
    none,
    string,
)
from streams.serdes.protobuf_serde import protobuf
from streams.serdes.serde import Field, Serde, of
from streams.serdes.unknown_fields import UnknownFields
from streams.serdes.windows import session_windowed, windowed

__all__ = [
    "Field",
    "JsonSerde",
    "Serde",
    "UnknownFields",
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

_NAMES_ELSEWHERE = {
    "str": "string",
    "text": "string",
    "String": "string",
    "int": "int64, or int32",
    "long": "int64",
    "Long": "int64",
    "integer": "int32",
    "Integer": "int32",
    "float": "float64",
    "double": "float64",
    "Double": "float64",
    "raw": "bytes",
    "Bytes": "bytes",
    "ByteArray": "bytes",
    "JSON": "json",
}
"""The serdes by the names that types, Kafka Streams, Quix Streams and Faust have for them."""


def __getattr__(name: str) -> NoReturn:
    """Raise AttributeError for a serde that is not here, with the one that is meant, if known."""
    meant = _NAMES_ELSEWHERE.get(name)
    hint = f"use serdes.{meant}" if meant else f"there are {', '.join(__all__)}"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {hint}")
