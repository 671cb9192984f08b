"""Serialise Avro with a schema registry, by confluent-kafka."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from streams.serdes.dataclass_builder import to_plain_objects
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
        raise create_missing_extra_error("avro", error) from error
    connect, schema_text = prepare_connection(registry), convert_schema_to_text(schema)
    conf = complete_settings(serializer)
    writes = schema_text is not None or uses_registered_schema(conf)
    to_dict, from_dict = select_conversions(type, to_dict, from_dict, to_plain_objects)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            AvroSerializer(client, schema_text, accept_context(to_dict), conf)
            if writes
            else refuse_to_write,
            AvroDeserializer(
                client,
                schema_text,
                accept_context(from_dict),
                conf=complete_settings(deserializer),
            ),
        )

    return create_unbound_serde(
        f"avro({name_schema(schema_text, type, 'name')})", connect, create_serializers
    )
