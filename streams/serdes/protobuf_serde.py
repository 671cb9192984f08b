"""Serialise Protobuf messages with a schema registry, by confluent-kafka."""

from __future__ import annotations

from typing import Any, TypeVar

from streams.serdes.registry_client import RegistrySettings, prepare_connection
from streams.serdes.registry_serde import (
    Deserializer,
    Serializer,
    SerializerSettings,
    complete_settings,
    create_missing_extra_error,
    create_unbound_serde,
)
from streams.serdes.serde import Serde

T = TypeVar("T")


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
        raise create_missing_extra_error("protobuf", error) from error
    if not hasattr(message_type, "DESCRIPTOR"):
        raise TypeError(f"serdes.protobuf needs a class that protoc has made, got {message_type!r}")
    connect = prepare_connection(registry)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            ProtobufSerializer(message_type, client, complete_settings(serializer)),
            ProtobufDeserializer(message_type, complete_settings(deserializer), client),
        )

    return create_unbound_serde(f"protobuf({message_type.__name__})", connect, create_serializers)
