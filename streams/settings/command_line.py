"""Parse the settings that a command line gives by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streams.connection.files import read_connection_file
from streams.connection.registry_settings import SCHEMA_REGISTRY, SchemaRegistrySettings
from streams.connection.settings import ConnectionSettings
from streams.errors import ConfigError
from streams.settings.client_settings import (
    CLIENT_SETTINGS,
    SECRET_SETTINGS,
    parse_client_settings,
)


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Parse the NAME=VALUE pairs of `--set`; the last pair of a name wins.

    Librdkafka's settings are below `consumer` and `producer`: `consumer.fetch.min.bytes=1`, or all
    at once as JSON, `consumer={"fetch.min.bytes": 1}`. Raises ConfigError.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} is not NAME=VALUE")
        client, dot, below = name.partition(".")
        if client in SECRET_SETTINGS:
            called = client.replace("_", " ")
            raise ConfigError(
                f"--set {name} would show secrets in the list of processes: put the {called}'s "
                f"settings into a file, and give {SECRET_SETTINGS[client]} FILE"
            )
        if client not in CLIENT_SETTINGS:
            settings[name] = value
        elif not dot:
            settings[name] = settings.get(name, {}) | parse_client_settings(f"--set {name}", value)
        elif below:
            settings.setdefault(client, {})[below] = value
        else:
            raise ConfigError(f"--set {pair!r} names no setting of librdkafka after the dot")
    return settings


def read_connection_option(file: Path | None) -> dict[str, Any]:
    """Return the setting `connection` of the option --connection, or nothing without the option.

    The repr of what it returns shows no secret. Raises: ConfigError.
    """
    return {} if file is None else {"connection": ConnectionSettings(read_connection_file(file))}


def read_schema_registry_option(file: Path | None) -> dict[str, Any]:
    """Return the setting `schema_registry` of the option --schema-registry, or nothing without it.

    The repr of what it returns shows no secret. Raises: ConfigError.
    """
    if file is None:
        return {}
    settings = read_connection_file(file, SCHEMA_REGISTRY)
    return {SCHEMA_REGISTRY: SchemaRegistrySettings(settings)}
