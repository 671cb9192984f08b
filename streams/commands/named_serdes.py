"""Convert keys and values between bytes and what a person types or reads, by the serde's name.

name                         typed                     read
string                       the text itself           the text
bytes                        text, or 0x and hex       text where it is printable, else 0x...
int32, int64, float64        a number                  a number
json                         JSON                      JSON
windowed(NAME)               -                         key, start and end of the window
session_windowed(NAME)       -                         key, start and end of the session
MODULE:VARIABLE              JSON, else text           what the serde of that name returns
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streams import serdes
from streams.commands.output import show_bytes
from streams.errors import ConfigError
from streams.serdes import Field, Serde

SERDE_HELP = "string, bytes, int32, int64, float64, json, windowed(NAME), or module:variable."
_WINDOWED = re.compile(r"(windowed|session_windowed)\((.+)\)")


@dataclass(frozen=True, slots=True)
class NamedSerde:
    """Holds the functions of a serde: from a typed text to bytes, and from bytes to a value."""

    name: str
    parse: Callable[[str], bytes]
    show: Callable[[bytes], Any]


def find_serde(name: str, option: str, topic: str, field: Field) -> NamedSerde:
    """Return the serde of a name, bound to a topic. Raises ConfigError naming the `option`."""
    match name:
        case "string":
            return NamedSerde(name, str.encode, bytes.decode)
        case "bytes":
            return NamedSerde(name, _parse_bytes, show_bytes)
        case "int32" | "int64":
            number: Serde[Any] = getattr(serdes, name)
            return NamedSerde(
                name, lambda text: number.serialize(_parse_int(text)), number.deserialize
            )
        case "float64":
            return NamedSerde(
                name,
                lambda text: serdes.float64.serialize(float(text)),
                serdes.float64.deserialize,
            )
        case "json":
            return NamedSerde(name, _parse_json, json.loads)
    if windowed := _WINDOWED.fullmatch(name):
        return _wrap_windowed(windowed[1], find_serde(windowed[2], option, topic, field))
    return _from_application(_import_serde(name, option).for_topic(topic, field))


def from_serde(serde: Serde[Any]) -> NamedSerde:
    """Return what reads the bytes of an application's own serde."""
    return _from_application(serde)


def _wrap_windowed(kind: str, inner: NamedSerde) -> NamedSerde:
    """Return what reads keys in windows, or in sessions, whose key itself `inner` reads."""
    key: Serde[Any] = serdes.of(inner.parse, inner.show)
    serde = serdes.windowed(key) if kind == "windowed" else serdes.session_windowed(key)
    name = f"{kind}({inner.name})"

    def refuse_to_parse(text: str) -> bytes:
        raise ValueError(f"keys of {name} can be read, and not typed")

    return NamedSerde(name, refuse_to_parse, serde.deserialize)


def _from_application(serde: Serde[Any]) -> NamedSerde:
    def parse_typed(text: str) -> bytes:
        try:
            value = json.loads(text)
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
        found = getattr(importlib.import_module(module_name), variable, None)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{option} {name!r}: there is no module {error.name!r}") from error
    if not isinstance(found, Serde):
        raise ConfigError(f"{option} {name!r}: {variable!r} in {module_name!r} is no serde")
    return found


def _parse_bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def _parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _parse_json(text: str) -> bytes:
    return serdes.json.serialize(json.loads(text))
