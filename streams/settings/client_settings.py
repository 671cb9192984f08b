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
    """Merge settings of two places; `higher` wins, in dictionaries by name."""
    lower, higher = name_alike(lower), name_alike(higher)
    merged = {**lower, **higher}
    for name in CLIENT_SETTINGS:
        if isinstance(lower.get(name), dict) and isinstance(higher.get(name), dict):
            merged[name] = {**lower[name], **higher[name]}
    return merged


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
