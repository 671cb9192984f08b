"""Serialise Protobuf messages with a schema registry, by confluent-kafka.

confluent-kafka registers the file of a message's class, and frames messages with the schema's id
and the place of the message in its file. Beside it this checks what Protobuf lets pass: messages of
another type that are read as this one, fields whose type the reader declares otherwise
(`protobuf_writers`), messages that are nested more deeply than they can be read. And equal
messages have equal bytes here, maps included, since keys and stores compare bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from state.shown_values import describe_value
from streams.serdes.described_schemas import describe_protobuf_message
from streams.serdes.protobuf_evolution import ProtobufMismatch, find_messages
from streams.serdes.protobuf_texts import create_text_check
from streams.serdes.protobuf_writers import WriterComparisons
from streams.serdes.registry_client import RegistrySettings, create_connection_getter
from streams.serdes.registry_serde import (
    Deserializer,
    Serializer,
    SerializerSettings,
    complete_serializer_settings,
    create_missing_extra_error,
    create_unbound_serde,
    uses_registered_schema,
)
from streams.serdes.serde import Serde
from streams.serdes.writer_schemas import WriterSchemas

T = TypeVar("T")

_PROTOBUF_FILES = "google/protobuf/"
"""Where the files of Protobuf itself are, as timestamp.proto and struct.proto."""
_MAX_DEPTH = 100
"""The depth to which readers of Protobuf take messages in each other, in any language."""


def protobuf(
    *,
    registry: RegistrySettings,
    message_type: type[T],
    former_names: Collection[str] = (),
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[T]:
    """Return a serde of Protobuf messages with a schema registry.

    Its counterpart is Confluent's KafkaProtobufSerializer. Messages are instances of
    `message_type`, a class that protoc has generated; the registry has its file and those that this
    imports. A message of another type is refused when it is read, in whatever package it is, unless
    its full name is one of `former_names`. So is one with a field that its writer declares
    otherwise and whose value `message_type` would change.
    """
    try:
        from confluent_kafka.schema_registry.protobuf import (
            ProtobufDeserializer,
            ProtobufSerializer,
        )
        from google.protobuf.message import Message
    except ImportError as error:
        raise create_missing_extra_error("protobuf", error) from error
    if not (isinstance(message_type, type) and issubclass(message_type, Message)):
        raise TypeError(f"serdes.protobuf needs a class that protoc has made, got {message_type!r}")
    connect = create_connection_getter(registry)
    descriptor: Any = message_type.DESCRIPTOR  # type: ignore[attr-defined]
    if descriptor.file.name.startswith(_PROTOBUF_FILES):
        raise TypeError(
            f"serdes.protobuf({descriptor.name}) can't be made: confluent-kafka writes messages of "
            f"{descriptor.file.name}, and can't read them again: put it into a message of your own"
        )
    writing = complete_serializer_settings(serializer)
    if descriptor.containing_type is not None and uses_registered_schema(writing):
        raise ValueError(
            f"serdes.protobuf({descriptor.name}) can't be made: confluent-kafka finds only "
            "messages of the top level in a registered schema (use.*)"
        )

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        reading = complete_serializer_settings(deserializer)
        schemas = WriterSchemas(client, "PROTOBUF", reading)
        comparisons = WriterComparisons(client, schemas, descriptor, former_names)
        read = ProtobufDeserializer(message_type, reading, client)
        write = ProtobufSerializer(message_type, client, writing)
        return _create_exact_serializer(write, message_type), _create_exact_deserializer(
            read, comparisons, descriptor
        )

    return create_unbound_serde(
        f"protobuf({message_type.__name__})",
        connect,
        create_serializers,
        describe_protobuf_message(descriptor, former_names),
    )


def _create_exact_serializer(write: Serializer, message_type: Any) -> Serializer:
    """Return a serializer that refuses unreadable messages and writes equal ones alike."""
    kinds = list(find_messages(message_type.DESCRIPTOR))
    has_maps = any(kind.GetOptions().map_entry for kind in kinds)
    is_recursive = any(_contains_itself(kind) for kind in kinds)
    check_texts = create_text_check(kinds)

    def write_exactly(message: Any, context: Any) -> bytes:
        if message is not None and type(message) is not message_type:
            raise _create_class_error(message_type, message)
        data = write(message, context)
        if message is None:  # which confluent-kafka's serialisers all pass on
            return data
        if is_recursive:
            _refuse_deep_nesting(message_type, message)
        if check_texts is not None:
            check_texts(message)
        if not has_maps:
            return data
        # Maps have no order of their own. A rule that encrypts leaves other bytes at the end.
        content = message.SerializeToString()
        if content and data.endswith(content):
            sorted_content: bytes = message.SerializeToString(deterministic=True)
            return data[: -len(content)] + sorted_content
        return data

    return write_exactly


def _create_class_error(message_type: Any, message: Any) -> TypeError:
    """Return the error of a message that is not of the serde's class, though named like it."""
    wanted = message_type.DESCRIPTOR
    found: Any = getattr(type(message), "DESCRIPTOR", None)
    if found is None or found.full_name != wanted.full_name:
        return TypeError(f"needs a message {wanted.full_name}, got {describe_value(message)}")
    return TypeError(
        f"needs {wanted.full_name} of the class that the serde was given, "
        f"{message_type.__module__}.{message_type.__qualname__} of {wanted.file.name}, and got one "
        f"of another class of that name, {type(message).__module__}.{type(message).__qualname__} "
        f"of {found.file.name}: import the class from one module"
    )


def _contains_itself(descriptor: Any) -> bool:
    parts = (each.message_type for each in descriptor.fields if each.message_type)
    return any(
        found.full_name == descriptor.full_name for part in parts for found in find_messages(part)
    )


def _refuse_deep_nesting(message_type: Any, message: Any) -> None:
    from google.protobuf.message import DecodeError

    try:
        message_type.FromString(message.SerializeToString())
    except DecodeError as error:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep: {error}") from None


def _create_exact_deserializer(
    read: Deserializer, comparisons: WriterComparisons, descriptor: Any
) -> Deserializer:
    """Return a deserializer that refuses what `message_type` would take for another message."""
    kinds = list(find_messages(descriptor))
    has_required = any(field.is_required for kind in kinds for field in kind.fields)
    check_texts = create_text_check(kinds)

    def read_exactly(data: bytes, context: Any) -> Any:
        message = read(data, context)
        comparisons.refuse_last_message_if_changed()
        if has_required and not message.IsInitialized():
            names = ", ".join(message.FindInitializationErrors())
            raise ProtobufMismatch(f"{descriptor.full_name} requires {names}, which is missing")
        if check_texts is not None and not data.isascii():
            check_texts(message)
        return message

    return read_exactly
