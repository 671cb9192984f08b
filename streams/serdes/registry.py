"""Serialise Avro, JSON Schema and Protobuf with a schema registry, by confluent-kafka.

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
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, overload

import orjson

from streams.serdes.dataclass_builder import create_builder, to_plain_objects
from streams.serdes.registry_client import (
    RegistryConnection,
    RegistrySettings,
    prepare_connection,
)
from streams.serdes.serde import Field, Serde, describe_value

T = TypeVar("T")

Serializer = Callable[[Any, Any], bytes]
Deserializer = Callable[[bytes, Any], Any]
"""confluent-kafka's functions, which take a SerializationContext beside the message."""
CreateSerializers = Callable[[Any], tuple[Serializer, Deserializer]]
"""Creates both with confluent-kafka's client of a registry."""
SerializerSettings = Mapping[str, Any]
Convert = Callable[[Any], Any]

_TRIAL_URL = "mock://trial"
_BY_TOPIC = {"subject.name.strategy.type": "TOPIC"}
"""The subject strategy that Java's serialisers have by default. The default of
confluent-kafka asks the registry for
associations first (ASSOCIATED), which not every registry has."""


@overload
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: type[T],
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[T]: ...
@overload
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[Any]: ...
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: Any = None,  # noqa: A002  as in json
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[Any]:
    """Return a serde of Avro messages with a schema registry (Confluent's KafkaAvroSerializer).

    Messages are dicts, or objects that `to_dict` and `from_dict` convert, or instances of the
    dataclass `type`.

    `schema` is an Avro schema as JSON text, as dicts and lists, or confluent-kafka's `Schema` where
    it refers to others. It is the schema that is written, and that messages of an older or a newer
    schema are read as. Without one messages are read as they were written, and written only with
    the setting `use.latest.version` of the serializer. `serializer` and `deserializer` are
    confluent-kafka's settings of the two (`auto.register.schemas`, ...). Raises ImportError without
    the extra `registry`, ValueError for a schema or a setting that can't be used.
    """
    try:
        from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    except ImportError as error:
        raise _missing_extra_error("avro", error) from error
    connect, schema_text = prepare_connection(registry), _schema_as_text(schema)
    conf = _complete_settings(serializer)
    writes = schema_text is not None or _uses_registered_schema(conf)
    to_dict, from_dict = _select_conversions(type, to_dict, from_dict, to_plain_objects)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            AvroSerializer(client, schema_text, _accept_context(to_dict), conf)
            if writes
            else _refuse_to_write,
            AvroDeserializer(
                client,
                schema_text,
                _accept_context(from_dict),
                conf=_complete_settings(deserializer),
            ),
        )

    return _create_unbound_serde(
        f"avro({_schema_name(schema_text, type, 'name')})", connect, create_serializers
    )


@overload
def json_schema(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: type[T],
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[T]: ...
@overload
def json_schema(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[Any]: ...
def json_schema(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: Any = None,  # noqa: A002  as in json
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[Any]:
    """Return a serde of JSON that is validated by a JSON Schema, with a schema registry.

    Its counterpart is Confluent's KafkaJsonSchemaSerializer. Parameters and errors are those of
    `avro`.
    """
    try:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    except ImportError as error:
        raise _missing_extra_error("json_schema", error) from error
    connect, schema_text = prepare_connection(registry), _schema_as_text(schema)
    conf = _complete_settings(serializer)
    writes = schema_text is not None or _uses_registered_schema(conf)
    to_dict, from_dict = _select_conversions(type, to_dict, from_dict, _to_json_objects)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            JSONSerializer(schema_text, client, _accept_context(to_dict), conf)
            if writes
            else _refuse_to_write,
            JSONDeserializer(
                schema_text, _accept_context(from_dict), client, _complete_settings(deserializer)
            ),
        )

    return _create_unbound_serde(
        f"json_schema({_schema_name(schema_text, type, 'title')})", connect, create_serializers
    )


def protobuf(
    *,
    registry: RegistrySettings,
    message_type: type[T],
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[T]:
    """Return a serde of Protobuf messages with a schema registry.

    Its counterpart is Confluent's KafkaProtobufSerializer. Messages are instances of
    `message_type`, a class that protoc has generated; the registry has its file and those that this
    imports.
    """
    try:
        from confluent_kafka.schema_registry.protobuf import (
            ProtobufDeserializer,
            ProtobufSerializer,
        )
    except ImportError as error:
        raise _missing_extra_error("protobuf", error) from error
    if not hasattr(message_type, "DESCRIPTOR"):
        raise TypeError(f"serdes.protobuf needs a class that protoc has made, got {message_type!r}")
    connect = prepare_connection(registry)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            ProtobufSerializer(message_type, client, _complete_settings(serializer)),
            ProtobufDeserializer(message_type, _complete_settings(deserializer), client),
        )

    return _create_unbound_serde(f"protobuf({message_type.__name__})", connect, create_serializers)


def _create_unbound_serde(
    name: str, connect: Callable[[], RegistryConnection], create_serializers: CreateSerializers
) -> Serde[Any]:
    """Return a serde that is bound to no topic yet, or raise ValueError if it can't be created.

    `create_serializers` is tried at once, with a registry within the process: it asks nothing of
    the registry, and refuses a schema or a setting that can't be used.
    """
    trial = RegistryConnection(_TRIAL_URL)
    try:
        create_serializers(trial.get_client())
    except Exception as error:
        raise ValueError(f"serdes.{name} can't be made: {trial.describe_error(error)}") from None

    @cache
    def bind_to_topic(topic: str, field: Field) -> Serde[Any]:
        return _create_bound_serde(name, connect, create_serializers, topic, field)

    def raise_unbound(_: Any) -> Any:
        raise RuntimeError(f'{name} belongs to no topic yet: call for_topic("a-topic", "value")')

    return Serde(name, raise_unbound, raise_unbound, bind_to_topic)


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
            text = f"{registry.describe_error(error)}; for {topic}-{field}"
            raise ValueError(text) from (None if registry.reveals_secret(error) else error)

    return Serde(name, serialize_message, deserialize_message)


def _missing_extra_error(serde_name: str, error: ImportError) -> ImportError:
    return ImportError(
        f"serdes.{serde_name} needs the schema registry client of confluent-kafka ({error}): "
        "pip install 'millrace[registry]'"
    )


def _schema_as_text(schema: Any) -> Any:
    """Return a schema as JSON text, or confluent-kafka's Schema as it is."""
    return json.dumps(schema) if isinstance(schema, dict | list) else schema


def _schema_name(schema: Any, type: Any, attribute: str) -> str:  # noqa: A002  as in json
    """Return the name of a schema or dataclass, for messages."""
    if type is not None:
        return str(type.__name__)
    try:
        parsed = orjson.loads(getattr(schema, "schema_str", schema))
    except (TypeError, ValueError):
        return ""
    return str(parsed.get(attribute, "")) if isinstance(parsed, dict) else ""


def _complete_settings(settings: SerializerSettings | None) -> dict[str, Any]:
    settings = settings or {}
    return {**settings} if "subject.name.strategy" in settings else {**_BY_TOPIC, **settings}


def _uses_registered_schema(settings: SerializerSettings) -> bool:
    return any(value for name, value in settings.items() if name.startswith("use."))


def _refuse_to_write(value: Any, context: Any) -> bytes:
    raise ValueError("it has no schema=, so it only reads")


def _select_conversions(
    type: Any,  # noqa: A002  as in json
    to_dict: Convert | None,
    from_dict: Convert | None,
    to_plain: Convert,
) -> tuple[Convert | None, Convert | None]:
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


def _to_json_objects(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def _accept_context(convert: Convert | None) -> Callable[[Any, Any], Any] | None:
    return None if convert is None else lambda value, _: convert(value)
