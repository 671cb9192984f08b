"""Share confluent-kafka's client of a schema registry between the serdes of one registry.

What may be secret in its settings stays out of names and messages: every error text is searched for
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

from streams.common.error_causes import list_causes
from streams.connection.registry_settings import SCHEMA_REGISTRY, SchemaRegistrySettings
from streams.errors import ConfigError

_TIMEOUT_S = 10
"""confluent-kafka has no timeout by default: a registry that hangs would block a task for ever."""
_REFUSALS = (401, 403)
_SECRET = re.compile("password|secret|token|user.info|credential|proxy", re.IGNORECASE)

_clients: dict[Any, Any] = {}
_lock = Lock()


class RegistryUnavailable(ValueError):
    """Signals that a registry did not answer, or refused to, so that nothing is known of a message.

    Unlike other errors of a serde it is no fault of the record.
    """


def is_registry_failure(error: BaseException) -> bool:
    """Return whether an error is one of the registry or the way to it, and not of a message.

    A schema that the registry does not know (404 with a code of its own) is one of a message.
    """
    from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError
    from httpx import TransportError

    for each in list_causes(error):
        if isinstance(each, SchemaRegistryError):
            is_unknown_schema = each.http_status_code == 404 and each.error_code > 0
            return not is_unknown_schema
        if isinstance(each, OSError | TransportError | OAuthTokenError):
            return True
    return False


class RegistryConnection:
    """Provides the client of a schema registry, and keeps its secrets out of messages."""

    def __init__(self, settings: str | Mapping[str, Any], setting: str = "registry=") -> None:
        """Take the settings of a registry, and in `setting` the name that errors give to them."""
        given = {"url": settings} if isinstance(settings, str) else dict(settings)
        self._setting = setting
        if not isinstance(given.get("url"), str):
            names = ", ".join(map(repr, given))
            raise ValueError(f"{setting} needs a URL, alone or as 'url' in a dict; got {names}")
        self._settings = {"timeout": _TIMEOUT_S, **given}
        self._secrets = sorted(set(_find_secrets(self._settings)), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Registry({self.mask_secrets(self._settings['url'])!r})"

    def get_client(self) -> Any:
        """Return the client, created once for these settings in this process.

        It opens no connection yet. Raises ValueError for settings that confluent-kafka refuses.
        """
        from confluent_kafka.schema_registry import SchemaRegistryClient

        key = tuple(sorted((name, repr(value)) for name, value in self._settings.items()))
        with _lock:
            if key not in _clients:
                try:
                    _clients[key] = SchemaRegistryClient.new_client(self._settings)
                except Exception as error:
                    raise ValueError(f"{self._setting}: {self.describe_error(error)}") from None
            return _clients[key]

    def mask_secrets(self, text: str) -> str:
        """Return `text` with *** for each secret of the settings."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def describe_error(self, error: Exception) -> str:
        """Return an error's type and text without secrets, and which settings may be wrong.

        Its traceback may show secrets.
        """
        text = self.mask_secrets(f"{type(error).__name__}: {error}")
        advice = _name_suspect_settings(error)
        return f"{text}: check {advice} of {self!r}" if advice else text

    def reveals_secret(self, error: BaseException | None) -> bool:
        """Return whether the text of an error, or of one that caused it, has a secret in it."""
        return any(self.mask_secrets(str(each)) != str(each) for each in list_causes(error))


class ApplicationRegistry:
    """Refers to the schema registry of an application's setting `schema_registry`.

    The setting may come from a file or a command line, after serdes were made. So a serde takes it
    at its first message, and an application checks it when it starts.
    """

    def __init__(self, get_settings: Callable[[], SchemaRegistrySettings]) -> None:
        self._get_settings = get_settings
        self._is_used = False

    def __repr__(self) -> str:
        return "app.schema_registry"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the present settings, and not the application: for Spark's executors."""
        return _restore_registry, (self._get_settings(),)

    def mark_registry_as_used(self) -> None:
        """Note that a serde needs the setting."""
        self._is_used = True

    def connect(self) -> RegistryConnection:
        """Return the connection to the registry of the present settings.

        Raises ConfigError if there are none, or a file of them can't be read.
        """
        settings = self._get_settings()
        if not settings:
            raise ConfigError(
                f"setting {SCHEMA_REGISTRY!r} is needed by a serde with registry={self!r}: give "
                f"MILLRACE_SCHEMA_REGISTRY, a table [{SCHEMA_REGISTRY}] of --config, or "
                f"--schema-registry FILE, with a url"
            )
        return RegistryConnection(settings.with_secret_files_read(), SCHEMA_REGISTRY)

    def check_settings(self) -> None:
        """Raise ConfigError if serdes need the setting and it can't be used; asks no registry."""
        if not self._is_used:
            return
        try:
            self.connect().get_client()
        except ValueError as error:
            raise ConfigError(str(error)) from None


def _restore_registry(settings: SchemaRegistrySettings) -> ApplicationRegistry:
    """Return a reference to a registry of fixed settings."""
    return ApplicationRegistry(lambda: settings)


RegistrySettings = str | Mapping[str, Any] | ApplicationRegistry
"""A registry: its URL (several with commas between), confluent-kafka's settings of its client, or
`app.schema_registry` for that of an application. A URL that begins with mock:// is a registry
within this process, for tests."""


def create_connection_getter(registry: RegistrySettings) -> Callable[[], RegistryConnection]:
    """Return a function that returns the connection to a registry.

    Raises ValueError for settings that can't be used; those of an application are not there yet.
    """
    if isinstance(registry, ApplicationRegistry):
        registry.mark_registry_as_used()
        return registry.connect
    connection = RegistryConnection(registry)
    connection.get_client()
    return lambda: connection


def _name_suspect_settings(error: Exception) -> str:
    """Return which settings may be wrong where a registry refuses, or isn't trusted; or nothing."""
    if getattr(error, "http_status_code", None) in _REFUSALS:
        return "basic.auth.user.info, or bearer.auth.*,"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "ssl.ca.location"
    if "CERTIFICATE_REQUIRED" in str(error):
        return "ssl.certificate.location and ssl.key.location"
    return ""


def _find_secrets(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if not isinstance(value, str):
            continue
        for url in value.split(","):
            parts = urlsplit(url.strip()) if "@" in url else None
            for each in (parts.username, parts.password) if parts else ():
                if each:
                    yield from (each, unquote(each))
        if _SECRET.search(name) and value:
            yield value
            if "user.info" in name:
                yield from filter(None, value.split(":", 1)[1:])
