"""What `auto_offset_reset` and `offset_out_of_range` may say, and what it means.

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


NOWHERE = {"auto_offset_reset": "none", "offset_out_of_range": "fail"}
"""Each setting's own word for stopping."""


class Where(Enum):
    """Where reading goes on."""

    NOWHERE = "none"
    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"


class Reset(NamedTuple):
    """A policy; `duration_ms` is for BY_DURATION."""

    where: Where
    duration_ms: int = 0


def reset(text: str, *, nowhere: str) -> Reset:
    """The policy that a setting names. `nowhere` is its own word for stopping. Raises ValueError
    that says what it may be."""
    kind, _, duration = text.partition(":")
    if kind == Where.BY_DURATION.value and duration:
        return Reset(Where.BY_DURATION, _duration_ms(duration))
    match text:
        case "earliest":
            return Reset(Where.EARLIEST)
        case "latest":
            return Reset(Where.LATEST)
        case _ if text == nowhere:
            return Reset(Where.NOWHERE)
    raise ValueError(
        f"{text!r} is none of {nowhere}, earliest, latest and by_duration:<duration> "
        "(as in by_duration:PT24H)"
    )


def _duration_ms(text: str) -> int:
    if text.isdecimal():
        return int(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration: as in PT24H, P7D, PT1H30M, or a number of ms")
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
