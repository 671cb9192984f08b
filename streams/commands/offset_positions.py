"""Parse where a command begins to read, or resets to: beginning, end, an offset or a time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.runtime.clients import Admin

POSITION_HELP = (
    "beginning, end, an offset as 120, a time as 2026-11-25T10:00 (local, or with a zone) or "
    "@1764064800000 (ms since 1970), or how long ago: 30s, 15m, 2h, 7d."
)
TIME_HELP = (
    "2026-11-25T10:00 (local, or with a zone), 1764064800000 or @1764064800000 (ms since 1970), or "
    "how long ago: 30s, 15m, 2h, 7d."
)
_AGO = re.compile(r"(\d+)(s|m|h|d)")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_EPOCH_MS = re.compile(r"@([0-9]{1,18})")
_EPOCH_MS_OR_DIGITS = re.compile(r"@?([0-9]{1,18})")
_BEGINNING, _END = ("beginning", "earliest"), ("end", "latest")


class LogPosition(NamedTuple):
    """Represents a position in any log: its beginning, its end, an offset, or a time in ms."""

    kind: str
    number: int = 0


def parse_position(text: str, option: str, *, now_ms: int | None = None) -> LogPosition:
    """Parse a position. `option` names where it was given, for the ConfigError that it raises."""
    if text in _BEGINNING:
        return LogPosition("beginning")
    if text in _END:
        return LogPosition("end")
    if text.isascii() and text.isdigit():
        return LogPosition("offset", int(text))
    time_ms = _parse_time_ms(text, _EPOCH_MS, now_ms)
    if time_ms is None:
        raise ConfigError(f"{option} {text!r} is no position: give {POSITION_HELP}")
    return LogPosition("time", time_ms)


def parse_time(text: str, option: str, *, now_ms: int | None = None) -> int:
    """Parse a time, where no position in a log is meant, and return it in ms since 1970.

    A number without @ is ms here, since it can be no offset. `option` names where the time was
    given, for the ConfigError that is raised.
    """
    time_ms = _parse_time_ms(text, _EPOCH_MS_OR_DIGITS, now_ms)
    if time_ms is None:
        raise ConfigError(f"{option} {text!r} is no time: give {TIME_HELP}")
    return time_ms


def current_time_ms() -> int:
    """Return the time of this machine's clock in ms since 1970."""
    return time.time_ns() // 1_000_000


def _parse_time_ms(text: str, epoch_ms: re.Pattern[str], now_ms: int | None) -> int | None:
    """Return a time in ms since 1970, which `epoch_ms` matches as such; None if it is no time."""
    if epoch := epoch_ms.fullmatch(text):
        return int(epoch[1])
    if ago := _AGO.fullmatch(text):
        now_ms = current_time_ms() if now_ms is None else now_ms
        return max(now_ms - int(ago[1]) * _UNIT_MS[ago[2]], 0)
    if text.isdigit():  # more digits than a time has, and no date without hyphens
        return None
    try:
        return max(int(datetime.fromisoformat(text).timestamp() * 1_000), 0)
    except (ValueError, OverflowError, OSError):
        return None


def skip_until_time(messages: Iterable[Any], time_ms: int) -> Iterator[Any]:
    """Yield messages, in each partition from the first one on whose timestamp is not before a time.

    Brokers find the first batch that is as late, also where that is the marker of a transaction:
    it has the time of the commit, however old the records after it are.
    """
    reached: set[tuple[str, int]] = set()
    for message in messages:
        partition = message.topic(), message.partition()
        if partition not in reached and message.timestamp()[1] < time_ms:
            continue
        reached.add(partition)
        yield message


def fetch_offsets(
    admin: Admin, partitions: Sequence[Partition], position: LogPosition
) -> dict[Partition, int]:
    """Return the offset of a position in each partition; it is within the log but for an offset."""
    match position.kind:
        case "beginning":
            return admin.fetch_earliest_offsets(partitions)
        case "end":
            return admin.fetch_latest_offsets(partitions)
        case "time":
            return admin.fetch_offsets_for_time(partitions, position.number)
    return dict.fromkeys(partitions, position.number)
