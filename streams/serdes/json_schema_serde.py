"""Serialise JSON that a JSON Schema validates, with a schema registry, by confluent-kafka.

confluent-kafka registers schemas, validates and frames messages. The JSON itself is that of
`serdes.json`, which gives back what it was given or refuses it: orjson alone, which confluent-kafka
uses, writes NaN as null and reads large integers as floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar, overload

from state.shown_values import quote_value
from streams.serdes.constructed_values import create_checked_encoder
from streams.serdes.dataclass_builder import create_builder, describe_type
from streams.serdes.described_schemas import describe_json_schema
from streams.serdes.described_types import describe_all_of_known_types, describe_declared_type
from streams.serdes.json_exactness import (
    MAX_DEPTH,
    NotExact,
    copy_plain,
    describe_step,
    deserialize_exactly,
    require_plain,
    serialize_exactly,
    serialize_plain,
)
from streams.serdes.json_types import create_encoder
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
    uses_registered_schema,
)
from streams.serdes.serde import Serde
from streams.serdes.unknown_fields import Unknown, check_unknown
from streams.serdes.writer_schemas import WriterSchemas

ToPlain: TypeAlias = Convert
FromPlain: TypeAlias = Convert

T = TypeVar("T")

_REMEDY = "Declare the type with type=, or convert it with to_dict= and from_dict="
_MESSAGE_CHARACTERS = 500


@overload
def json_schema(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: type[T],
    unknown: Unknown = "ignore",
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[T]: ...
@overload
def json_schema(
    *,
    registry: RegistrySettings,
    schema: Any = None,
    type: Any = None,
    to_dict: Convert | None = None,
    from_dict: Convert | None = None,
    unknown: Unknown = "ignore",
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
    unknown: Unknown = "ignore",
    serializer: SerializerSettings | None = None,
    deserializer: SerializerSettings | None = None,
) -> Serde[Any]:
    """Return a serde of JSON that is validated by a JSON Schema, with a schema registry.

    Its counterpart is Confluent's KafkaJsonSchemaSerializer. Messages come back as they were given,
    types included, or are refused with their place in the object, as those of `serdes.json`. They
    are what JSON has, or instances of `type`, which is a dataclass or another type that
    `serdes.json` takes, or objects that `to_dict` and `from_dict` convert. `unknown` says what
    becomes of fields that the dataclass does not have, as in `serdes.json`.

    `schema` is a JSON Schema as text, as a dict, or confluent-kafka's `Schema` where it refers to
    others. It validates what is written, and messages of any version that are read. Without one
    messages are validated by the schema that they were written with, and written only with the
    setting `use.latest.version` of the serializer. Parameters and errors are otherwise those of
    `avro`.

    >>> registry = {"url": "http://localhost:8081"}
    >>> schema = {"title": "Order", "type": "object", "required": ["total"]}
    >>> value = serdes.json_schema(registry=registry, schema=schema)
    >>> orders = App("shop").stream("orders", key=serdes.string, value=value)
    """
    try:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    except ImportError as error:
        raise create_missing_extra_error("json_schema", error) from error
    connect, schema_text = create_connection_getter(registry), convert_schema_to_text(schema)
    conf = complete_serializer_settings(serializer)
    has_registered_schema = uses_registered_schema(conf)
    writes = schema_text is not None or has_registered_schema
    convert, build = _select_conversions(type, to_dict, from_dict, unknown)
    # Rules of a registered schema may replace parts of a message after its types were checked.
    encode = serialize_exactly if has_registered_schema else serialize_plain

    def create_serializers(client: Any) -> tuple[Serializer, Deserializer]:
        write = JSONSerializer(
            schema_text, client, ignore_context(convert), conf, json_encode=encode
        )
        reading = complete_serializer_settings(deserializer)
        WriterSchemas(client, "JSON", reading)  # refuses messages of Avro and Protobuf
        read = JSONDeserializer(
            schema_text,
            ignore_context(build),
            client,
            reading,
            json_decode=deserialize_exactly,
        )
        return _create_converter_naming_places(
            write
        ) if writes else refuse_to_write, _create_converter_naming_places(read)

    name = name_schema(schema_text, None, "title") if type is None else describe_type(type)
    described = (
        describe_json_schema(schema_text),
        None if type is None else describe_declared_type(type, unknown),
    )
    return create_unbound_serde(
        f"json_schema({name})", connect, create_serializers, describe_all_of_known_types(*described)
    )


def _select_conversions(
    type: Any,  # noqa: A002  as in json
    to_dict: Convert | None,
    from_dict: Convert | None,
    unknown: Unknown,
) -> tuple[ToPlain, FromPlain | None]:
    """Return the conversion to what JSON has, which refuses the rest, and the one from it.

    Raises TypeError for a type that JSON can't tell, and for both a type and conversions;
    ValueError for another `unknown`.
    """
    check_unknown(unknown)
    if type is None:
        if to_dict is None:
            return require_plain, from_dict
        return lambda value: require_plain(to_dict(value)), from_dict
    if to_dict is not None or from_dict is not None:
        raise TypeError("give type=, or to_dict= and from_dict=, not both")
    build = create_builder(type, unknown)
    if build is None:
        raise TypeError(
            "type= takes a dataclass, or a type that JSON has only where it is declared "
            f"(datetime, Decimal, tuple[int, ...]), got {type!r}"
        )
    encode = create_checked_encoder(
        type, create_encoder(type, unknown), build, copy_plain, NotExact
    )
    return encode, build


def _create_converter_naming_places(function: Any) -> Any:
    """Wrap confluent-kafka's (de)serializer so that its refusals name the place in the value."""
    from confluent_kafka.serialization import SerializationError

    def convert_message(message: Any, context: Any) -> Any:
        try:
            return function(message, context)
        except NotExact as refusal:
            raise refusal.with_remedy(_REMEDY) from None
        except RecursionError:
            raise NotExact(f"it is nested more than {MAX_DEPTH} deep, or holds itself") from None
        except SerializationError as error:
            invalid: Any = error.__context__  # jsonschema's error, which may quote a whole message
            if not hasattr(invalid, "absolute_path"):
                raise
            said = str(error).replace(repr(invalid.instance), quote_value(invalid.instance))
            text = f"{_describe_path(invalid.absolute_path)}: {said}"
            raise SerializationError(f"{text:.{_MESSAGE_CHARACTERS}}") from None

    return convert_message


def _describe_path(steps: Iterable[Any]) -> str:
    return "value" + "".join(map(describe_step, steps))
