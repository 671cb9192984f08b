"""Serialise JSON Schema and Protobuf with a schema registry, by confluent-kafka."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import orjson

from streams.serdes.registry_client import RegistrySettings, prepare_connection
from streams.serdes.registry_serde import (
    Convert,
    Deserializer,
    Serializer,
    SerializerSettings,
    accept_context,
    complete_settings,
    convert_schema_to_text,
    create_missing_extra_error,
    create_unbound_serde,
    name_schema,
    refuse_to_write,
    select_conversions,
    uses_registered_schema,
)
from streams.serdes.serde import Serde

T = TypeVar("T")


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
        raise create_missing_extra_error("json_schema", error) from error
    connect, schema_text = prepare_connection(registry), convert_schema_to_text(schema)
    conf = complete_settings(serializer)
    writes = schema_text is not None or uses_registered_schema(conf)
    to_dict, from_dict = select_conversions(type, to_dict, from_dict, _to_json_objects)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            JSONSerializer(schema_text, client, accept_context(to_dict), conf)
            if writes
            else refuse_to_write,
            JSONDeserializer(
                schema_text, accept_context(from_dict), client, complete_settings(deserializer)
            ),
        )

    return create_unbound_serde(
        f"json_schema({name_schema(schema_text, type, 'title')})", connect, create_serializers
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


def _to_json_objects(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))
