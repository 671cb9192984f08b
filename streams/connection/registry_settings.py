"""Check the settings of an application's schema registry, and keep their secrets out of texts.

The names are those of confluent-kafka's client. A secret may stand in a file: `<name>.file`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streams.connection.settings import FILE_SUFFIX, LOCATION_SUFFIX, read_secret_file
from streams.errors import ConfigError

SCHEMA_REGISTRY = "schema_registry"
"""The name of the setting."""
_SECRETS = frozenset(
    {
        "basic.auth.user.info",
        "bearer.auth.client.secret",
        "bearer.auth.token",
        "proxy",
        "ssl.key.password",
    }
)
_FILED = frozenset(f"{name}{FILE_SUFFIX}" for name in _SECRETS - {"proxy"})
_NUMBERS = frozenset(
    {
        "cache.capacity",
        "cache.latest.ttl.sec",
        "max.retries",
        "retries.max.wait.ms",
        "retries.wait.ms",
        "timeout",
    }
)
_KNOWN = (
    _SECRETS
    | _FILED
    | _NUMBERS
    | {
        "bearer.auth.client.id",
        "bearer.auth.credentials.source",
        "bearer.auth.identity.pool.id",
        "bearer.auth.issuer.endpoint.query",
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.logical.cluster",
        "bearer.auth.scope",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "url",
    }
)
_INSTEAD = {
    "basic.auth.credentials.source": "set basic.auth.user.info, or basic.auth.user.info.file",
    "schema.registry.url": "set url",
    "ssl.truststore.location": "set ssl.ca.location to a PEM file",
    "ssl.truststore.password": "set ssl.ca.location to a PEM file, which has no password",
    "ssl.keystore.location": "set ssl.certificate.location and ssl.key.location to PEM files",
    "ssl.keystore.password": "set ssl.key.password, if the PEM file of ssl.key.location has one",
}
"""The advice that an error gives for names that Java clients have."""


class SchemaRegistrySettings(dict[str, Any]):
    """Holds the settings of a registry's client by confluent-kafka's names; its repr has no secret.

    A registry is set if there is a `url`.
    """

    def __repr__(self) -> str:
        return repr(self.hide_secrets())

    __str__ = __repr__

    def hide_secrets(self) -> dict[str, Any]:
        """Return the settings with `***` in place of secrets."""
        return {name: _mask_value(name, value) for name, value in self.items()}

    def with_secret_files_read(self) -> dict[str, Any]:
        """Return the settings with secrets in place of the files that hold them.

        Raises ConfigError for a file that can't be read, or isn't there.
        """
        found = {}
        for name, value in self.items():
            called = f"{SCHEMA_REGISTRY}: {name}"
            if name in _FILED:
                found[name.removesuffix(FILE_SUFFIX)] = read_secret_file(called, str(value))
                continue
            if name.endswith(LOCATION_SUFFIX) and not Path(value).exists():
                raise ConfigError(f"{called} {value!r} doesn't exist")
            found[name] = value
        return found


def parse_schema_registry(given_settings: Mapping[str, Any]) -> SchemaRegistrySettings:
    """Return the settings of a registry after a check of their names and of what goes together.

    No file is read yet. Raises ConfigError, without values.
    """
    settings = SchemaRegistrySettings()
    for name, value in given_settings.items():
        if name not in _KNOWN:
            raise ConfigError(_describe_unknown(name))
        if value is None or value == "":
            raise ConfigError(f"{SCHEMA_REGISTRY}: {name} is empty")
        settings[name] = _to_number(name, value) if name in _NUMBERS else _to_text(name, value)
    for name in _FILED & settings.keys():
        if name.removesuffix(FILE_SUFFIX) in settings:
            raise ConfigError(f"{SCHEMA_REGISTRY}: give {name.removesuffix(FILE_SUFFIX)} or {name}")
    if settings and "url" not in settings:
        raise ConfigError(f"{SCHEMA_REGISTRY}: url is missing")
    for url in str(settings.get("url", "mock://")).split(","):
        if not url.strip().startswith(("http://", "https://", "mock://")):
            raise ConfigError(f"{SCHEMA_REGISTRY}: url is no http:// or https:// address")
    if ("ssl.certificate.location" in settings) != ("ssl.key.location" in settings):
        raise ConfigError(
            f"{SCHEMA_REGISTRY}: a client certificate needs its key: set ssl.certificate.location "
            "and ssl.key.location"
        )
    return settings


def _describe_unknown(name: str) -> str:
    """Describe what is wrong with an unknown name, and what may be meant."""
    if name in _INSTEAD:
        return f"{SCHEMA_REGISTRY}: {name} can't be set: {_INSTEAD[name]}"
    close = difflib.get_close_matches(name, sorted(_KNOWN), n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{SCHEMA_REGISTRY}: unknown setting {name}{meant}"


def _to_text(name: str, value: Any) -> str:
    """Return a value that is text. Raises ConfigError, without the value."""
    if not isinstance(value, str):
        raise ConfigError(
            f"{SCHEMA_REGISTRY}: {name} can't be a {type(value).__name__}: it is text"
        )
    if name.endswith(".location") and "-----BEGIN" in value:
        raise ConfigError(
            f"{SCHEMA_REGISTRY}: {name} is the path of a file, and was given its text"
        )
    return value


def _to_number(name: str, value: Any) -> int | float:
    """Return a number, which a file or a variable may give as text. Raises ConfigError."""
    try:
        return value if type(value) in (int, float) else float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{SCHEMA_REGISTRY}: {name} can't be {value!r}: it is a number") from None


def _mask_value(name: str, value: Any) -> Any:
    """Return `***` for a secret, and a URL without user and password."""
    if name in _SECRETS:
        return "***"
    if name != "url":
        return value
    return ",".join(
        f"{scheme}://{rest.rpartition('@')[2]}" if rest else scheme
        for scheme, _, rest in (url.strip().partition("://") for url in value.split(","))
    )
