"""Convert keys and values between bytes and what a person types or reads, by the serde's name.

name                         typed                     read
string                       the text itself           the text
bytes                        text, or 0x and hex       text where it is printable, else 0x...
int32, int64, float64        a number                  a number
json                         JSON                      JSON
windowed(NAME)               -                         key and start of the window
windowed(NAME, SIZE)         -                         key, start and end of the window of SIZE ms
session_windowed(NAME)       -                         key, start and end of the session
MODULE:VARIABLE              JSON, else text           what the serde of that name returns
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from streams import serdes
from streams.commands.output import WindowWithUnknownEnd
from streams.common.user_module import import_user_module
from streams.errors import ConfigError
from streams.serdes import Field, Serde

InnerName: TypeAlias = str
WindowSizeMs: TypeAlias = int

SERDE_HELP = (
    "string, bytes, int32, int64, float64, json, windowed(NAME, SIZE), session_windowed(NAME), or "
    "module:variable."
)
_WINDOWED = re.compile(r"windowed\((?P<inner>.+?)(?:, *(?P<size>\d+))?\)")
_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")
"""Matches whole numbers as other programs do: Python's own function takes 1_000 and digits of any
script."""
_SESSION_WINDOWED = re.compile(r"session_windowed\((.+)\)")


class _RepeatedName(ValueError):
    """Reports an object of JSON that has a name twice, of which only the last value would count."""


@dataclass(frozen=True, slots=True)
class NamedSerde:
    """Holds the functions of a serde: from a typed text to bytes, and from bytes to a value."""

    name: str
    parse: Callable[[str], bytes]
    show: Callable[[bytes], Any]


def require_named_serde(name: str, option: str, topic: str, field: Field) -> NamedSerde:
    """Return the serde of a name, bound to a topic. Raises ConfigError naming the `option`."""
    match name:
        case "string":
            return NamedSerde(name, str.encode, bytes.decode)
        case "bytes":
            return NamedSerde(name, parse_bytes, bytes)  # how they are shown, the output decides
        case "int32" | "int64":
            number: Serde[Any] = getattr(serdes, name)
            return NamedSerde(
                name, lambda text: number.serialize(_parse_int(text)), number.deserialize
            )
        case "float64":
            return NamedSerde(
                name,
                lambda text: serdes.float64.serialize(_parse_float(text)),
                serdes.float64.deserialize,
            )
        case "json":
            return NamedSerde(name, _parse_json, serdes.json.deserialize)
    if found := _WINDOWED.fullmatch(name):
        inner = require_named_serde(found["inner"], option, topic, field)
        try:
            return _wrap_windowed_key_serde(inner, found["size"])
        except ValueError as error:
            raise ConfigError(f"{option} {name!r}: {error}") from None
    if found := _SESSION_WINDOWED.fullmatch(name):
        inner = require_named_serde(found[1], option, topic, field)
        return _name_read_only_serde(
            serdes.session_windowed(serdes.of(inner.parse, inner.show)), name
        )
    return _name_application_serde(_import_serde(name, option).for_topic(topic, field))


def wrap_application_serde(serde: Serde[Any]) -> NamedSerde:
    """Wrap an application's serde so that commands can print what it reads."""
    return _name_application_serde(serde)


def split_windowed_serde_name(name: str) -> tuple[InnerName, WindowSizeMs | None] | None:
    """Split the name of a serde of windowed keys into that of the key and the window's size in ms.

    The size is None if it is not named or, for sessions, not needed. None is returned for the name
    of any other serde.
    """
    if found := _WINDOWED.fullmatch(name):
        return found["inner"], None if found["size"] is None else int(found["size"])
    if found := _SESSION_WINDOWED.fullmatch(name):
        return found[1], None
    return None


def _wrap_windowed_key_serde(inner: NamedSerde, size: str | None) -> NamedSerde:
    """Wrap a serde of keys to read windowed keys; `size` is that of the windows in ms, if known."""
    key: Serde[Any] = serdes.of(inner.parse, inner.show)
    if size is not None:
        return _name_read_only_serde(
            serdes.windowed(key, int(size)), f"windowed({inner.name}, {size})"
        )
    serde = serdes.windowed(key)

    def read_window_start(data: bytes) -> WindowWithUnknownEnd:
        found = serde.deserialize(data)
        return WindowWithUnknownEnd(found.key, found.start_ms)

    return replace(_name_read_only_serde(serde, f"windowed({inner.name})"), show=read_window_start)


def _name_read_only_serde(serde: Serde[Any], name: str) -> NamedSerde:
    """Return a serde of keys that can be read only."""

    def refuse_to_parse(text: str) -> bytes:
        raise ValueError(f"keys of {name} can be read, and not typed")

    return NamedSerde(name, refuse_to_parse, serde.deserialize)


def _name_application_serde(serde: Serde[Any]) -> NamedSerde:
    def parse_typed(text: str) -> bytes:
        try:
            value = json.loads(text, object_pairs_hook=_refuse_repeated_names)
        except _RepeatedName:
            raise
        except ValueError:
            value = text
        return serde.serialize(value)

    return NamedSerde(serde.name, parse_typed, serde.deserialize)


def _import_serde(name: str, option: str) -> Serde[Any]:
    """Import the serde of a name module:variable. Raises ConfigError."""
    module_name, colon, variable = name.partition(":")
    if not colon or not module_name or not variable:
        raise ConfigError(f"{option} {name!r} is no serde: give {SERDE_HELP}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_user_module(module_name), variable, None)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{option} {name!r}: there is no module {error.name!r}") from error
    if not isinstance(found, Serde):
        raise ConfigError(f"{option} {name!r}: {variable!r} in {module_name!r} is no serde")
    return found


def parse_bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def _parse_int(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise ValueError(f"{text!r:.100} is no whole number")
    return int(text)


def _parse_float(text: str) -> float | int:
    """Return the number of a text; a whole number that no float equals as an int.

    Raises ValueError for a number that is larger than any float.
    """
    if "_" in text or not text.isascii():  # which Python takes, and no other program
        raise ValueError(f"{text!r:.100} is no number")
    found = float(text)
    with suppress(ValueError):
        if (whole := int(text)) != found:
            return whole
    if math.isinf(found) and any(map(str.isdigit, text)):
        raise ValueError(f"{text} is larger than any float64: infinity is typed as inf")
    return found


def _parse_json(text: str) -> bytes:
    return serdes.json.serialize(json.loads(text, object_pairs_hook=_refuse_repeated_names))


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of its names and values. Raises _RepeatedName."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedName(f"the name {repeated!r:.100} is there twice")
    return found
