"""Hold the address and settings with which the driver and each executor reach a schema registry.

Executors get it with the options of a read or a write. Files that the settings name are read by
whoever makes a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streams.connection.registry_settings import parse_schema_registry


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Holds the URL of a schema registry and confluent-kafka's settings of its client, by name."""

    url: str = field(repr=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def read_settings(self) -> dict[str, Any]:
        """Read the files that settings name into them. Raises ConfigError, without values."""
        settings = parse_schema_registry({"url": self.url, **dict(self.settings)})
        return settings.with_secret_files_read()


def create_registry_access(url: str, settings: Mapping[str, str]) -> RegistryAccess:
    """Return the access to a registry after a check of its settings; no file is read yet.

    Raises ConfigError, without values.
    """
    parse_schema_registry({"url": url, **settings})
    return RegistryAccess(url, tuple(sorted(settings.items())))
