"""Read the settings of a connection or a schema registry from a file: TOML, JSON, or NAME=VALUE.

Lines NAME=VALUE are what librdkafka's tools and `kcat -F` read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from streams.errors import ConfigError

DottedName: TypeAlias = str
Name: TypeAlias = str
Value: TypeAlias = str


def read_connection_file(path: Path, setting: str = "connection") -> dict[str, Any]:
    """Return the settings in a file by their dotted names, unchecked.

    They may be in a table that is called `setting`. A relative path in it is below the file's
    directory. Raises ConfigError, without values.
    """
    called = f"{setting} file {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{called} can't be read: {reason}") from None
    try:
        if path.suffix == ".json":
            settings = orjson.loads(text)
        elif path.suffix == ".toml":
            settings = tomllib.loads(text)
        else:
            settings = dict(_parse_lines(text, called))
    except (orjson.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        kind = path.suffix.removeprefix(".").upper()
        raise ConfigError(f"{called} is no {kind}{_format_error_place(error)}") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{called} holds no object with settings")
    if isinstance(table := settings.get(setting), dict):
        if others := sorted(settings.keys() - {setting}):
            raise ConfigError(
                f"{called} has {', '.join(others)} beside the table [{setting}]: put all settings "
                f"of the {setting.replace('_', ' ')} into the table"
            )
        settings = table
    return {
        name: _resolve_path(name, value, path.parent) for name, value in flatten_tables(settings)
    }


def _format_error_place(error: ValueError) -> str:
    """Return where a file can't be parsed; the rest of the error's text may show a secret."""
    place = re.search(r"line \d+,? column \d+", str(error))
    return f" ({place[0]})" if place else ""


def flatten_tables(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[DottedName, Any]]:
    """Yield the values of nested tables with their dotted names."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flatten_tables(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _resolve_path(name: str, value: Any, directory: Path) -> Any:
    """Return a path as seen from the file's directory, and any other value as it is."""
    if name.endswith((".location", ".file")) and isinstance(value, str):
        return str(directory / Path(value).expanduser())
    return value


def _parse_lines(text: str, file_description: str) -> Iterator[tuple[Name, Value]]:
    """Parse lines NAME=VALUE; empty lines and those that begin with # are comments."""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise ConfigError(f"{file_description}, line {number}: not NAME=VALUE")
        yield name.strip(), value.strip()
