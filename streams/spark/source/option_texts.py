"""Parse the text of one option into its value, or raise a ConfigError with the option's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import orjson

from streams.errors import ConfigError

OptionParser = Callable[[str, str], Any]
"""Converts an option's name and text to its value, or raises ConfigError."""
OffsetSpec = int | Literal["earliest", "latest"]
"""An offset, or the beginning or end of a partition."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_boolean(option_name: str, text: str) -> bool:
    """Parse `true` or `false`, in any case."""
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"option {option_name} can't be {text!r}: it takes true or false")
    return text.lower() == "true"


def create_choice_parser(choices: type[StrEnum]) -> OptionParser:
    """Create a parser of the names of `choices`, in any case."""

    def parse_choice(option_name: str, text: str) -> StrEnum:
        for each in choices:
            if each.value.lower() == text.lower():
                return each
        raise ConfigError(f"option {option_name} can't be {text!r}: it takes {', '.join(choices)}")

    return parse_choice


def _create_integer_parser(minimum: int) -> OptionParser:
    """Create a parser of whole numbers of at least `minimum`."""

    def parse_integer(option_name: str, text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = minimum - 1
        if found < minimum:
            raise ConfigError(
                f"option {option_name} can't be {text!r}: it takes a whole number from {minimum} on"
            )
        return found

    return parse_integer


def _create_partition_parser(parse_one: OptionParser) -> OptionParser:
    """Create a parser of one value for all partitions, or of JSON of one for each."""

    def parse_each(option_name: str, text: str) -> Any:
        if not text.startswith("{"):
            return parse_one(option_name, text)
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ConfigError(f"option {option_name} can't be {text!r}: as JSON, {error}") from None
        parse_number = _create_integer_parser(0)
        return {
            parse_number(option_name, number): parse_one(option_name, str(each))
            for number, each in found.items()
        }

    return parse_each


def _parse_offset(option_name: str, text: str) -> OffsetSpec:
    match text.lower():
        case "earliest":
            return "earliest"
        case "latest":
            return "latest"
    if not text.isdecimal():
        raise ConfigError(
            f"option {option_name} can't be {text!r}: it takes an offset, earliest, latest, or "
            'JSON of one for each partition, as {"0": 5, "1": "latest"}'
        )
    return int(text)


def _parse_time_ms(option_name: str, text: str) -> int:
    """Parse a time into ms since 1970; one without a zone is UTC."""
    if text.isdecimal():
        return int(text)
    refusal = ConfigError(
        f"option {option_name} can't be {text!r}: it takes ms since 1970, a time as "
        '2026-01-31T12:00:00Z, or JSON of one for each partition, as {"0": 1767225600000}'
    )
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise refusal from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    if found < _EPOCH:
        raise refusal
    return (found - _EPOCH) // timedelta(milliseconds=1)


def _parse_partition_numbers(option_name: str, text: str) -> tuple[int, ...]:
    """Parse `0,2` or `0-3` or both into partition numbers, in order, each once."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(
                f"option {option_name} can't be {text!r}: it takes numbers, as 0,2 or 0-3"
            )
        end = int(last) if dash else int(first)
        if end < int(first):
            raise ConfigError(f"option {option_name} can't be {text!r}: {part.strip()} is no range")
        found.update(range(int(first), end + 1))
    return tuple(sorted(found))


Count = Annotated[int, _create_integer_parser(0)]
PositiveCount = Annotated[int, _create_integer_parser(1)]
PartitionNumbers = Annotated[tuple[int, ...], _parse_partition_numbers]
OffsetLimits = Annotated[
    OffsetSpec | Mapping[int, OffsetSpec], _create_partition_parser(_parse_offset)
]
"""An offset for all partitions, or one for each."""
TimeLimits = Annotated[int | Mapping[int, int], _create_partition_parser(_parse_time_ms)]
"""A time in ms since 1970 for all partitions, or one for each."""
