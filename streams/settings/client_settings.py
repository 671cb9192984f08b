"""Parse and merge the settings that are dictionaries of other libraries' own settings.

`connection`, `producer` and the consumers' are librdkafka's, `schema_registry` confluent-kafka's,
`topic_defaults` Kafka's of topics.

Places spell their names differently: in TOML `sasl.mechanism` without quotes is a table in a table,
and some names have an alias. They are merged by their dotted names.
"""

from __future__ import annotations

from typing import Any

import orjson

from streams.connection.files import flatten_tables
from streams.connection.registry_settings import (
    SCHEMA_REGISTRY,
    SchemaRegistrySettings,
    parse_schema_registry,
)
from streams.connection.settings import (
    ConnectionSettings,
    hides_value,
    parse_connection,
    rename_aliases,
)
from streams.errors import ConfigError
from streams.settings.kafka_streams_settings import rename_settings

LIBRDKAFKA_SETTINGS = (
    "consumer",
    "main_consumer",
    "restore_consumer",
    "global_consumer",
    "producer",
)
"""The settings of single clients, by librdkafka's names."""
CLIENT_SETTINGS = ("connection", *LIBRDKAFKA_SETTINGS, SCHEMA_REGISTRY, "topic_defaults")
"""The settings that are dictionaries of settings by others' own names."""
SECRET_SETTINGS = {"connection": "--connection", SCHEMA_REGISTRY: "--schema-registry"}
"""Those that may hold secrets, and the options of commands that read them from a file."""

RESERVED_CLIENT_SETTINGS = {
    "bootstrap.servers": "set bootstrap_servers",
    "group.id": "it is the application id",
    "group.instance.id": "workers are static members by the id in their state directory",
    "enable.auto.commit": "offsets are committed with the transaction",
    "enable.auto.offset.store": "offsets are committed with the transaction",
    "auto.offset.reset": "set auto_offset_reset",
    "isolation.level": "the guarantee needs read_committed",
    "transactional.id": "it is made of the application id and the worker's id",
    "enable.idempotence": "the guarantee needs it",
    "transaction.timeout.ms": "set transaction_timeout_ms",
    "acks": "the guarantee needs all",
    "request.required.acks": "the guarantee needs all",
    "metadata.broker.list": "set bootstrap_servers",
    "partitioner": "records of a key must meet in one partition, by Kafka's own hash",
    "delivery.report.only.error": "where changelogs stand is learnt from delivery reports",
    "on_delivery": "where changelogs stand is learnt from delivery reports",
    "error_cb": "errors go to the log",
    "group.protocol": "membership is ours",
}
"""The settings of librdkafka that `consumer` and `producer` refuse, and why."""


def parse_client_settings(setting: str, text: str) -> dict[str, Any]:
    """Parse librdkafka's settings from a JSON object.

    Raises ConfigError, which calls the setting `setting`.
    """
    try:
        settings = orjson.loads(text)
    except orjson.JSONDecodeError:
        settings = None
    if not isinstance(settings, dict):
        # The text of a connection may hold a secret, and so may one that is in the wrong place.
        is_secret = any(name in setting.lower() for name in SECRET_SETTINGS)
        shown = "this text" if is_secret or hides_value(text) else repr(text)
        kind = "librdkafka's settings", '{"fetch.min.bytes": 1}'
        if "topic_defaults" in setting.lower():
            kind = "settings of topics", '{"min.insync.replicas": 2}'
        if SCHEMA_REGISTRY in setting.lower():
            kind = "a schema registry's settings", '{"url": "https://registry:8081"}'
        raise ConfigError(
            f"{setting} can't be {shown}: it takes a JSON object of {kind[0]}, as in {kind[1]}"
        )
    return settings


def parse_connection_setting(given: Any) -> ConnectionSettings:
    """Parse the setting `connection`. Raises ValueError, without values."""
    if not isinstance(given, dict):
        raise ValueError("it takes librdkafka's settings by their names")
    try:
        return parse_connection(dict(flatten_tables(given)))
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("connection: ")) from None


def parse_schema_registry_setting(given: Any) -> SchemaRegistrySettings:
    """Parse the setting `schema_registry`. Raises ValueError, without values."""
    if not isinstance(given, dict):
        raise ValueError('it takes settings by their names, as in {"url": "https://registry:8081"}')
    try:
        return parse_schema_registry(dict(flatten_tables(given)))
    except ConfigError as error:
        raise ValueError(str(error).removeprefix(f"{SCHEMA_REGISTRY}: ")) from None


def merge_settings(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    """Merge settings of two places; `higher` wins, in dictionaries by name.

    The repr of what it returns shows no secret of a connection.
    """
    lower, higher = rename_to_dotted_names(lower), rename_to_dotted_names(higher)
    merged = {**lower, **higher}
    for name in CLIENT_SETTINGS:
        if isinstance(lower.get(name), dict) and isinstance(higher.get(name), dict):
            merged[name] = {**lower[name], **higher[name]}
    return rename_to_dotted_names(merged)


def rename_to_dotted_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings under librdkafka's dotted names, with the aliases of others replaced.

    Settings of Kafka Streams have the name that they have here. The repr of what it returns shows
    no secret of a connection.
    """
    named = rename_settings(settings)
    for setting in CLIENT_SETTINGS:
        if not isinstance(named.get(setting), dict):
            continue
        flat = dict(flatten_tables(named[setting]))
        match setting:
            case "connection":
                named[setting] = ConnectionSettings(rename_aliases(flat))
            case "schema_registry":
                named[setting] = SchemaRegistrySettings(flat)
            case _:
                named[setting] = flat
    return named
