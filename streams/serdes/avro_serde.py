"""Serialise Avro with a schema registry, by confluent-kafka.

A message comes back as it was given, with its types and the branches of its unions, or is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeVar, overload

from streams.serdes.avro_dataclasses import (
    FromMessage,
    ToMessage,
    create_conversions,
    describe_declared,
)
from streams.serdes.dataclass_builder import to_plain_objects
from streams.serdes.described_schemas import describe_avro_schema
from streams.serdes.registry_client import RegistrySettings, create_connection_getter
from streams.serdes.registry_serde import (
    Convert,
    Deserializer,
    Serializer,
    SerializerSettings,
    complete_serializer_settings,
    convert_schema_to_text,
    create_missing_extra_error,
    create_unbound_serde,
    ignore_context,
    name_schema,
    refuse_to_write,
    select_conversions,
    uses_registered_schema,
)
from streams.serdes.serde import Serde

T = TypeVar("T")
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
BeyondPython = Literal["refuse", "number"]
"""Says what becomes of times that Python has none for, as those after the year 9999."""


@overload
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: type[T],
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
    record_names: bool = True,
    beyond_python: BeyondPython = "refuse",
    lossy: bool = False,
) -> Serde[T]: ...
@overload
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: Any,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
    record_names: bool = True,
    beyond_python: BeyondPython = "refuse",
    lossy: bool = False,
) -> Serde[Any]: ...
@overload
def avro(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
    record_names: bool = True,
    beyond_python: BeyondPython = "refuse",
    lossy: bool = False,
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
    record_names: bool = True,
    beyond_python: BeyondPython = "refuse",
    lossy: bool = False,
) -> Serde[Any]:
    """Return a serde of Avro messages with a schema registry (Confluent's KafkaAvroSerializer).

    Messages are dicts, or objects that `to_dict` and `from_dict` convert, or instances of the
    dataclass `type`, which may be a union of dataclasses or a dict of them by the full names of
    their records.

    `schema` is an Avro schema as JSON text, as dicts and lists, or confluent-kafka's `Schema` where
    it refers to others. It is the schema that is written, and that messages of an older or a newer
    schema are read as. Without one messages are read as they were written, and written only with
    the setting `use.latest.version` of the serializer. `serializer` and `deserializer` are
    confluent-kafka's settings of the two (`auto.register.schemas`, ...).

    A record of a union of several is a pair, `("shop.Created", {...})`; with `record_names=False`
    it is a dict, and one that fits several records is refused when it is written. Times that Python
    has none for are refused, or are their numbers with `beyond_python="number"`. `lossy` leaves
    messages to confluent-kafka and fastavro alone, which round, cut and choose branches as they do.

    Raises ImportError without the extra `registry`, ValueError for a schema or a setting that can't
    be used, TypeError for a type or settings that don't go together.

    >>> value = serdes.avro(registry={"url": "http://localhost:8081"}, schema='"long"')
    >>> totals = App("shop").stream("totals", key=serdes.string, value=value)
    """
    try:
        from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

        from streams.serdes.avro_serializers import ExactAvroDeserializer, ExactAvroSerializer
        from streams.serdes.avro_unions import AvroOptions
    except ImportError as error:
        raise create_missing_extra_error("avro", error) from error
    _check_options(record_names, beyond_python, lossy=lossy)
    connect, schema_text = create_connection_getter(registry), convert_schema_to_text(schema)
    _check_text(schema_text)
    conf = complete_serializer_settings(serializer)
    writes = schema_text is not None or uses_registered_schema(conf)
    to_dict, from_dict = _select_conversions(type, to_dict, from_dict, lossy=lossy)
    options = AvroOptions(
        record_names,
        beyond_python == "number",
        takes_simple_names=type is not None and not isinstance(type, Mapping),
    )
    create_serializer = AvroSerializer if lossy else partial(ExactAvroSerializer, options)
    create_deserializer = AvroDeserializer if lossy else partial(ExactAvroDeserializer, options)
    read_conf = complete_serializer_settings(deserializer)

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        return (
            create_serializer(client, schema_text, ignore_context(to_dict), conf)
            if writes
            else refuse_to_write,
            create_deserializer(client, schema_text, ignore_context(from_dict), conf=read_conf),
        )

    name = name_schema(schema_text, None, "name") if type is None else describe_declared(type)
    described = describe_avro_schema(schema_text)
    return create_unbound_serde(f"avro({name})", connect, create_serializers, described)


def _check_options(record_names: bool, beyond_python: object, *, lossy: bool) -> None:
    """Raise TypeError for settings that don't go together, ValueError for one that there is not."""
    if lossy and (not record_names or beyond_python != "refuse"):
        raise TypeError("lossy=True leaves messages to fastavro: give it without other settings")
    if beyond_python not in ("refuse", "number"):
        raise ValueError(f'beyond_python takes "refuse" or "number", got {beyond_python!r}')


def _check_text(schema_text: Any) -> None:
    """Raise ValueError for text that is no JSON of a schema, as the name of a type without quotes.

    confluent-kafka's `Schema` is not looked at.
    """
    if not isinstance(schema_text, str):
        return
    name, reason = schema_text.strip(), ""
    try:
        found = json.loads(schema_text)
    except ValueError as error:
        found, reason = None, f": {error}"
    if isinstance(found, list | dict) or found in _PRIMITIVES:
        return
    if name in _PRIMITIVES:
        reason = f"""; the type of that name is '"{name}"'"""
    raise ValueError(
        f"serdes.avro() can't be made: schema={schema_text!r:.200} is no JSON text of an Avro "
        f"schema{reason}"
    )


def _select_conversions(
    type: Any,  # noqa: A002  as in json
    to_dict: Convert | None,
    from_dict: Convert | None,
    *,
    lossy: bool,
) -> tuple[ToMessage | None, FromMessage | None]:
    """Return the conversions to and from messages; TypeError if both these and a type are given."""
    if lossy or type is None:
        return select_conversions(type, to_dict, from_dict, to_plain_objects)
    if to_dict is not None or from_dict is not None:
        raise TypeError("give type=, or to_dict= and from_dict=, not both")
    return create_conversions(type)
