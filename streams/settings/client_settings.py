"""Parse and merge the settings that are dictionaries of librdkafka's own: connection and clients.

Places spell their names differently: in TOML `sasl.mechanism` without quotes is a table in a table,
and some names have an alias. They are merged by their dotted names.
"""

from __future__ import annotations

from typing import Any

import orjson

from streams.connection.files import flatten_tables
from streams.connection.settings import ConnectionSettings, hides_value, rename_aliases
from streams.errors import ConfigError

CLIENT_SETTINGS = ("connection", "consumer", "producer")
"""The settings that are dictionaries of librdkafka's own settings."""

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
        is_hidden = "connection" in setting.lower() or hides_value(text)
        shown = "this text" if is_hidden else repr(text)
        raise ConfigError(
            f"{setting} can't be {shown}: it takes a JSON object of librdkafka's settings, "
            'as in {"fetch.min.bytes": 1}'
        )
    return settings


def merge_settings(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    """Merge settings of two places; `higher` wins, in dictionaries by name.

    The repr of what it returns shows no secret of the connection.
    """
    lower, higher = name_alike(lower), name_alike(higher)
    merged = {**lower, **higher}
    for name in CLIENT_SETTINGS:
        if isinstance(lower.get(name), dict) and isinstance(higher.get(name), dict):
            merged[name] = {**lower[name], **higher[name]}
    return name_alike(merged)


def name_alike(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with librdkafka's by their dotted names, aliases replaced.

    The repr of what it returns shows no secret of the connection.
    """
    named = dict(settings)
    for setting in CLIENT_SETTINGS:
        if isinstance(named.get(setting), dict):
            flat = dict(flatten_tables(named[setting]))
            named[setting] = (
                ConnectionSettings(rename_aliases(flat)) if setting == "connection" else flat
            )
    return named
