"""Bind serdes of a schema registry to topics, and connect them at their first message.

Bytes are Confluent's: 0, the schema's id (int32), the message. A schema's subject is `<topic>-key`
or `<topic>-value`, so such a serde is bound to its topic (`for_topic`) before it is used; a store's
is that of its changelog. The first record of a topic registers the schema, or looks it up; after
that only the schemas of ids not seen before are fetched from the registry.

confluent-kafka's part of this has dependencies of its own (the extra `registry`), and is imported
when such a serde is created.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

import orjson

from state.shown_values import describe_value
from streams.serdes.dataclass_builder import create_builder
from streams.serdes.described_types import DescribedType
from streams.serdes.registry_client import (
    RegistryConnection,
    RegistryUnavailable,
    is_registry_failure,
)
from streams.serdes.serde import Field, Serde

Serializer = Callable[[Any, Any], bytes]
Deserializer = Callable[[bytes, Any], Any]
"""confluent-kafka's functions, which take a SerializationContext beside the message."""
CreateSerializers = Callable[[Any], tuple[Serializer, Deserializer]]
"""Creates both with confluent-kafka's client of a registry."""
SerializerSettings = Mapping[str, Any]
Convert = Callable[[Any], Any]
ToMessage: TypeAlias = Convert
FromMessage: TypeAlias = Convert

_TRIAL_URL = "mock://trial"
_NOT_FOUND = 404
_BY_TOPIC = {"subject.name.strategy.type": "TOPIC"}
"""The subject strategy that Java's serialisers have by default. The default of confluent-kafka asks
the registry for associations first (ASSOCIATED), which not every registry has."""


def create_unbound_serde(
    name: str,
    connect: Callable[[], RegistryConnection],
    create_serializers: CreateSerializers,
    message_type: DescribedType | None = None,
) -> Serde[Any]:
    """Return a serde that is bound to no topic yet, or raise ValueError if it can't be created.

    `create_serializers` is tried at once, with an empty registry within the process: it refuses a
    schema or a setting that can't be used, and asks for nothing but the schemas that this one
    refers to. So a schema with references is parsed at the first message. `message_type` describes
    the messages, where their schema is at hand.
    """
    trial = RegistryConnection(_TRIAL_URL)
    try:
        create_serializers(trial.get_client())
    except Exception as error:
        if getattr(error, "http_status_code", None) != _NOT_FOUND:
            said = trial.describe_error(error)
            raise ValueError(f"serdes.{name} can't be made: {said}") from None

    @cache
    def bind_to_topic(topic: str, field: Field) -> Serde[Any]:
        bound = _create_bound_serde(name, connect, create_serializers, topic, field)
        return dataclasses.replace(bound, message_type=message_type)

    def raise_unbound(_: Any) -> Any:
        raise RuntimeError(f'{name} belongs to no topic yet: call for_topic("a-topic", "value")')

    return Serde(name, raise_unbound, raise_unbound, bind_to_topic, message_type=message_type)


def _create_bound_serde(
    name: str,
    connect: Callable[[], RegistryConnection],
    create_serializers: CreateSerializers,
    topic: str,
    field: Field,
) -> Serde[Any]:
    """Return a serde of a topic's keys or values, which connects at its first message."""
    from confluent_kafka.serialization import SerializationContext

    context = SerializationContext(topic, field)

    @cache
    def open_registry() -> tuple[RegistryConnection, Serializer, Deserializer]:
        registry = connect()
        return registry, *create_serializers(registry.get_client())

    def serialize_message(value: Any) -> bytes:
        registry, write_message, _ = open_registry()
        try:
            return write_message(value, context)
        except Exception as error:
            text = (
                f"{registry.describe_error(error)}; for {topic}-{field}, got "
                f"{describe_value(value)}"
            )
            raise ValueError(text) from (None if registry.reveals_secret(error) else error)

    def deserialize_message(data: bytes) -> Any:
        registry, _, read_message = open_registry()
        try:
            return read_message(data, context)
        except Exception as error:
            said = _describe_missing_id(data, error) or registry.describe_error(error)
            text = f"{said}; for {topic}-{field}"
            fault = RegistryUnavailable if is_registry_failure(error) else ValueError
            raise fault(text) from (None if registry.reveals_secret(error) else error)

    return Serde(name, serialize_message, deserialize_message)


def _describe_missing_id(data: bytes, error: Exception) -> str:
    """Explain an error by a message that begins with no schema id; empty for other errors.

    confluent-kafka raises an error of `struct` or `uuid`, or says that the magic byte is invalid.
    """
    if isinstance(error, struct.error) or "not a 16-char string" in str(error):
        return (
            f"{len(data)} bytes are too few for the id of a schema, which Confluent's serialisers "
            "write first"
        )
    if "magic byte" in str(error):
        return (
            f"it begins with the byte {data[0]}, and Confluent's serialisers write 0 first and the "
            "id of a schema: another serialiser wrote it"
        )
    return ""


def create_missing_extra_error(serde_name: str, error: ImportError) -> ImportError:
    """Return the ImportError that names the extra which the serde needs."""
    return ImportError(
        f"serdes.{serde_name} needs the schema registry client of confluent-kafka ({error}): "
        "pip install 'millrace-streams[registry]'"
    )


def convert_schema_to_text(schema: Any) -> Any:
    """Return a schema as JSON text, or confluent-kafka's Schema as it is."""
    return json.dumps(schema) if isinstance(schema, dict | list) else schema


def name_schema(schema: Any, type: Any, attribute: str) -> str:  # noqa: A002  as in json
    """Return the name of a schema or dataclass, for messages; empty if it has none."""
    if type is not None:
        return str(type.__name__)
    try:
        parsed = orjson.loads(getattr(schema, "schema_str", schema))
    except (TypeError, ValueError):
        return ""
    return str(parsed.get(attribute, "")) if isinstance(parsed, dict) else ""


def complete_serializer_settings(settings: SerializerSettings | None) -> dict[str, Any]:
    """Return the settings, with Java's subject strategy unless they name another."""
    settings = settings or {}
    return {**settings} if "subject.name.strategy" in settings else {**_BY_TOPIC, **settings}


def uses_registered_schema(settings: SerializerSettings) -> bool:
    """Return whether the settings of a serializer take the schema from the registry."""
    return any(value for name, value in settings.items() if name.startswith("use."))


def refuse_to_write(value: Any, context: Any) -> bytes:
    """Raise ValueError, for a serde that has no schema to write with."""
    raise ValueError("it has no schema=, so it only reads")


def select_conversions(
    type: Any,  # noqa: A002  as in json
    to_dict: Convert | None,
    from_dict: Convert | None,
    to_plain: Convert,
) -> tuple[ToMessage | None, FromMessage | None]:
    """Return the conversions to and from the objects of a message.

    They are those of the dataclass `type` if it is given. Raises TypeError for a type that is no
    dataclass, and for both a type and conversions.
    """
    if type is None:
        return to_dict, from_dict
    if to_dict is not None or from_dict is not None:
        raise TypeError("give type=, or to_dict= and from_dict=, not both")
    if not (isinstance(type, builtins.type) and dataclasses.is_dataclass(type)):
        raise TypeError(f"type= takes a dataclass, got {type!r}")
    cls = type

    def convert_dataclass(value: Any) -> Any:
        if not isinstance(value, cls):
            raise TypeError(f"needs {cls.__name__}")
        return to_plain(value)

    return convert_dataclass, create_builder(cls)


def ignore_context(convert: Convert | None) -> Callable[[Any, Any], Any] | None:
    """Return a conversion as confluent-kafka calls it, with a SerializationContext."""
    return None if convert is None else lambda value, _: convert(value)
