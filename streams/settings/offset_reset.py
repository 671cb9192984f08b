"""Parse the offset reset policies of `auto_offset_reset` and `offset_out_of_range`.

    value                      where reading goes on
    none, fail                 nowhere: the thread stops, and says what is missing
    earliest                   at the first record there is
    latest                     after the last one
    by_duration:<duration>     at the first record that is not older than that, by its timestamp;
                               after the last one where all are older

A duration is ISO-8601's as in Kafka's own setting (`PT24H`, `P7D`, `P1DT12H30M`, `PT0.5S`), or a
number of milliseconds (`by_duration:86400000`). Source: KIP-1106.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

_DURATION = re.compile(
    r"P(?=.)(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


STOP_WORDS = {"auto_offset_reset": "none", "offset_out_of_range": "fail"}
"""The word of each setting for stopping the thread."""


class ResetStrategy(Enum):
    """Names the positions at which reading can go on after a reset.

    Kafka's AutoOffsetResetStrategy.StrategyType.
    """

    NONE = "none"
    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"


class OffsetResetPolicy(NamedTuple):
    """Represents an offset reset policy; `duration_ms` is for BY_DURATION."""

    strategy: ResetStrategy
    duration_ms: int = 0


def parse_reset_policy(text: str, *, stop_word: str) -> OffsetResetPolicy:
    """Parse an offset reset policy; `stop_word` is the setting's own word for stopping.

    Raises ValueError that lists the allowed values.
    """
    kind, _, duration = text.partition(":")
    if kind == ResetStrategy.BY_DURATION.value and duration:
        return OffsetResetPolicy(ResetStrategy.BY_DURATION, _parse_duration_ms(duration))
    match text:
        case "earliest":
            return OffsetResetPolicy(ResetStrategy.EARLIEST)
        case "latest":
            return OffsetResetPolicy(ResetStrategy.LATEST)
        case _ if text == stop_word:
            return OffsetResetPolicy(ResetStrategy.NONE)
    raise ValueError(
        f"{text!r} is not one of {stop_word!r}, 'earliest', 'latest', 'by_duration:<duration>' "
        "(as in 'by_duration:PT24H')"
    )


def _parse_duration_ms(text: str) -> int:
    """Convert a duration, in ISO-8601 or as a number of ms, to ms. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is no duration: as in PT24H, P7D, PT1H30M, or a number of ms")
    days, hours, minutes, seconds = (float(each or 0) for each in parts.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
