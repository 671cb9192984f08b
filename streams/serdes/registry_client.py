"""Share confluent-kafka's client of a schema registry between the serdes of one registry.

What may be secret in its settings stays out of names and messages: every error text is searched for
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

RegistrySettings = str | Mapping[str, Any]
"""A registry: its URL (several with commas between), or confluent-kafka's settings of its client.
A URL that begins with mock:// is a registry within this process, for tests."""

_TIMEOUT_S = 10
"""confluent-kafka has no timeout by default: a registry that hangs would block a task for ever."""
_SECRET = re.compile("password|secret|token|user.info|credential|proxy", re.IGNORECASE)

_clients: dict[Any, Any] = {}
_lock = Lock()


class RegistryConnection:
    """Provides the client of a schema registry, and keeps its secrets out of messages."""

    def __init__(self, settings: RegistrySettings) -> None:
        given = {"url": settings} if isinstance(settings, str) else dict(settings)
        if not isinstance(given.get("url"), str):
            names = ", ".join(map(repr, given))
            raise ValueError(f"registry= needs a URL, alone or as 'url' in a dict; got {names}")
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
                    raise ValueError(f"registry=: {self.describe_error(error)}") from None
            return _clients[key]

    def mask_secrets(self, text: str) -> str:
        """Return `text` with *** for each secret of the settings."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def describe_error(self, error: Exception) -> str:
        """Return an error's type and text without secrets; its traceback may show them."""
        return self.mask_secrets(f"{type(error).__name__}: {error}")

    def reveals_secret(self, error: BaseException | None) -> bool:
        """Return whether the text of an error, or of one that caused it, has a secret in it."""
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            text = str(error)
            if self.mask_secrets(text) != text:
                return True
            error = error.__cause__ or error.__context__
        return False


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
