"""Avro, JSON Schema and Protobuf with a schema registry, by confluent-kafka's own serialisers.

Bytes are Confluent's: 0, the schema's id (int32), the message. A schema's subject is
`<topic>-key` or `<topic>-value`, so such a serde is bound to its topic (`for_topic`) before it is
used; a store's is that of its changelog. The first record of a topic registers the schema, or looks
it up; after that nothing is asked of the registry but the schemas of ids not seen before.

confluent-kafka's part of this has dependencies of its own (the extra `registry`), and is imported
when such a serde is made.
"""

from __future__ import annotations

import builtins
import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, overload

import orjson

from streams.serdes.building import builder, taken_apart
from streams.serdes.registry_client import Registry, Settings
from streams.serdes.serde import Field, Serde, shown

T = TypeVar("T")

Serializer = Callable[[Any, Any], bytes]
Deserializer = Callable[[bytes, Any], Any]
"""confluent-kafka's: they take a SerializationContext beside the message."""
Conf = Mapping[str, Any]
Convert = Callable[[Any], Any]

_BY_TOPIC = {"subject.name.strategy.type": "TOPIC"}
"""As Java's serialisers do by default. confluent-kafka's own default asks the registry for
associations first (ASSOCIATED), which not every registry has."""


@overload
def avro(
    *,
    registry: Settings,
    schema: Any = None,
    type: type[T],
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[T]: ...
@overload
def avro(
    *,
    registry: Settings,
    schema: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[Any]: ...
def avro(
    *,
    registry: Settings,
    schema: Any = None,
    type: Any = None,  # noqa: A002  as in json
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[Any]:
    """Avro (Confluent's KafkaAvroSerializer). Messages are dicts, or what `to_dict` and `from_dict`
    make of them, or instances of the dataclass `type`.

    `schema` is an Avro schema as JSON text, as dicts and lists, or confluent-kafka's `Schema` where
    it refers to others. It is what is written, and what a message of an older or a newer schema is
    read as. Without one messages are read as they were written, and written only with the setting
    `use.latest.version` of the serializer. `serializer` and `deserializer` are confluent-kafka's
    settings of the two (`auto.register.schemas`, ...). Raises ImportError without the extra
    `registry`, ValueError for a schema or a setting that can't be used.
    """
    try:
        from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    except ImportError as error:
        raise _missing("avro", error) from error
    there, text = Registry(registry), _text(schema)
    client, conf = there.client(), _conf(serializer)
    writes = text is not None or _finds_its_schema(conf)
    to_dict, from_dict = _conversions(type, to_dict, from_dict, taken_apart)

    def make() -> tuple[Serializer, Deserializer]:
        return (
            AvroSerializer(client, text, _with_context(to_dict), conf) if writes else _only_reads,
            AvroDeserializer(client, text, _with_context(from_dict), conf=_conf(deserializer)),
        )

    return _serde(f"avro({_title(text, type, 'name')})", there, make)


@overload
def json_schema(
    *,
    registry: Settings,
    schema: Any = None,
    type: type[T],
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[T]: ...
@overload
def json_schema(
    *,
    registry: Settings,
    schema: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[Any]: ...
def json_schema(
    *,
    registry: Settings,
    schema: Any = None,
    type: Any = None,  # noqa: A002  as in json
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[Any]:
    """JSON that its JSON Schema has found valid (Confluent's KafkaJsonSchemaSerializer). What is
    said of `avro` holds here."""
    try:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    except ImportError as error:
        raise _missing("json_schema", error) from error
    there, text = Registry(registry), _text(schema)
    client, conf = there.client(), _conf(serializer)
    writes = text is not None or _finds_its_schema(conf)
    to_dict, from_dict = _conversions(type, to_dict, from_dict, _as_json)

    def make() -> tuple[Serializer, Deserializer]:
        return (
            JSONSerializer(text, client, _with_context(to_dict), conf) if writes else _only_reads,
            JSONDeserializer(text, _with_context(from_dict), client, _conf(deserializer)),
        )

    return _serde(f"json_schema({_title(text, type, 'title')})", there, make)


def protobuf(
    *,
    registry: Settings,
    message_type: type[T],
    serializer: Conf | None = None,
    deserializer: Conf | None = None,
) -> Serde[T]:
    """Protobuf (Confluent's KafkaProtobufSerializer). Messages are instances of `message_type`, a
    class that protoc has made; the registry has its file and those that this imports."""
    try:
        from confluent_kafka.schema_registry.protobuf import (
            ProtobufDeserializer,
            ProtobufSerializer,
        )
    except ImportError as error:
        raise _missing("protobuf", error) from error
    if not hasattr(message_type, "DESCRIPTOR"):
        raise TypeError(f"serdes.protobuf needs a class that protoc has made, got {message_type!r}")
    there = Registry(registry)
    client = there.client()

    def make() -> tuple[Serializer, Deserializer]:
        return (
            ProtobufSerializer(message_type, client, _conf(serializer)),
            ProtobufDeserializer(message_type, _conf(deserializer), client),
        )

    return _serde(f"protobuf({message_type.__name__})", there, make)


def _serde(
    name: str, registry: Registry, make: Callable[[], tuple[Serializer, Deserializer]]
) -> Serde[Any]:
    """The serde that belongs to no topic yet. `make` is tried at once: it asks nothing of the
    registry, and refuses what can't be used."""
    try:
        make()
    except Exception as error:
        raise ValueError(f"serdes.{name} can't be made: {registry.explained(error)}") from None

    @cache
    def bind(topic: str, field: Field) -> Serde[Any]:
        return _bound(name, registry, make, topic, field)

    def unbound(_: Any) -> Any:
        raise RuntimeError(f'{name} belongs to no topic yet: call for_topic("a-topic", "value")')

    return Serde(name, unbound, unbound, bind)


def _bound(
    name: str,
    registry: Registry,
    make: Callable[[], tuple[Serializer, Deserializer]],
    topic: str,
    field: Field,
) -> Serde[Any]:
    from confluent_kafka.serialization import SerializationContext

    write, read = make()
    context = SerializationContext(topic, field)

    def serialize(value: Any) -> bytes:
        try:
            return write(value, context)
        except Exception as error:
            text = f"{registry.explained(error)}; for {topic}-{field}, got {shown(value)}"
            raise ValueError(text) from (None if registry.tells(error) else error)

    def deserialize(data: bytes) -> Any:
        try:
            return read(data, context)
        except Exception as error:
            text = f"{registry.explained(error)}; for {topic}-{field}"
            raise ValueError(text) from (None if registry.tells(error) else error)

    return Serde(name, serialize, deserialize)


def _missing(what: str, error: ImportError) -> ImportError:
    return ImportError(
        f"serdes.{what} needs the schema registry client of confluent-kafka ({error}): "
        "pip install 'millrace[registry]'"
    )


def _text(schema: Any) -> Any:
    """JSON text, or confluent-kafka's Schema as it is."""
    return json.dumps(schema) if isinstance(schema, dict | list) else schema


def _title(schema: Any, type: Any, attribute: str) -> str:  # noqa: A002  as in json
    """The name of what is serialised, for messages."""
    if type is not None:
        return str(type.__name__)
    try:
        parsed = orjson.loads(getattr(schema, "schema_str", schema))
    except (TypeError, ValueError):
        return ""
    return str(parsed.get(attribute, "")) if isinstance(parsed, dict) else ""


def _conf(given: Conf | None) -> dict[str, Any]:
    given = given or {}
    return {**given} if "subject.name.strategy" in given else {**_BY_TOPIC, **given}


def _finds_its_schema(conf: Conf) -> bool:
    return any(value for name, value in conf.items() if name.startswith("use."))


def _only_reads(value: Any, context: Any) -> bytes:
    raise ValueError("it has no schema=, so it only reads")


def _conversions(
    type: Any,  # noqa: A002  as in json
    to_dict: Convert | None,
    from_dict: Convert | None,
    apart: Convert,
) -> tuple[Convert | None, Convert | None]:
    if type is None:
        return to_dict, from_dict
    if to_dict is not None or from_dict is not None:
        raise TypeError("give type=, or to_dict= and from_dict=, not both")
    if not (isinstance(type, builtins.type) and dataclasses.is_dataclass(type)):
        raise TypeError(f"type= takes a dataclass, got {type!r}")
    cls = type

    def taken(value: Any) -> Any:
        if not isinstance(value, cls):
            raise TypeError(f"needs {cls.__name__}")
        return apart(value)

    return taken, builder(cls)


def _as_json(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def _with_context(convert: Convert | None) -> Callable[[Any, Any], Any] | None:
    return None if convert is None else lambda value, _: convert(value)
