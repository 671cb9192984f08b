"""Parse the offset reset policies of `auto_offset_reset`, `offset_out_of_range` and of sources.

    value                      where reading goes on
    none, fail                 nowhere: the thread stops, and says what is missing
    earliest                   at the first record there is
    latest                     after the last one
    by_duration:<duration>     at the first record that is not older than that, by its timestamp;
                               after the last one where all are older

A source may have a timedelta for a duration. `start_at` is the policy of a new application that
reads its inputs from a time on: at the first record that is not older.

A duration is ISO-8601's as in Kafka's own setting (`PT24H`, `P7D`, `P1DT12H30M`, `PT0.5S`), or a
number of milliseconds (`by_duration:86400000`). Source: KIP-1106.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from streams.topics import TopicPattern

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
    AT_TIME = "start_at"
    """Only of the setting `start_at`, which Kafka does not have."""


class OffsetResetPolicy(NamedTuple):
    """Represents an offset reset policy; `duration_ms` is for BY_DURATION, `at_ms` for AT_TIME."""

    strategy: ResetStrategy
    duration_ms: int = 0
    at_ms: int = 0

    @property
    def is_time_dependent(self) -> bool:
        """Return whether it may select another offset another time: the end, or since a time."""
        return self.strategy not in (ResetStrategy.EARLIEST, ResetStrategy.NONE)

    def find_since_ms(self, now_ms: int) -> int:
        """Return the time of the oldest record that BY_DURATION or AT_TIME selects at `now_ms`.

        It is 0 for a duration that begins before 1970: brokers take no negative time.
        """
        if self.strategy is ResetStrategy.AT_TIME:
            return self.at_ms
        return max(now_ms - self.duration_ms, 0)


class InitialPolicies(NamedTuple):
    """Holds where each input begins that nothing is committed for.

    That is by its topic, by the first pattern that it matches, else by `default`.
    """

    default: OffsetResetPolicy
    by_topic: Mapping[str, OffsetResetPolicy] = MappingProxyType({})
    by_pattern: Mapping[TopicPattern, OffsetResetPolicy] = MappingProxyType({})

    def find_policy(self, topic: str) -> OffsetResetPolicy:
        """Return the policy of an input."""
        return self._find_own_policy(topic) or self.default

    def _find_own_policy(self, topic: str) -> OffsetResetPolicy | None:
        """Return the policy of the source that reads a topic, if it has one."""
        if topic in self.by_topic:
            return self.by_topic[topic]
        return next(
            (own for each, own in self.by_pattern.items() if each.matches_topic(topic)), None
        )

    def replace_none_by_earliest(self) -> InitialPolicies:
        """Return the policies with EARLIEST where one would stop the thread."""
        first = OffsetResetPolicy(ResetStrategy.EARLIEST)

        def replace_policy(policy: OffsetResetPolicy) -> OffsetResetPolicy:
            return first if policy.strategy is ResetStrategy.NONE else policy

        return InitialPolicies(
            replace_policy(self.default),
            {topic: replace_policy(policy) for topic, policy in self.by_topic.items()},
            {pattern: replace_policy(policy) for pattern, policy in self.by_pattern.items()},
        )

    def describe_policy(self, topic: str) -> str:
        """Return the policy of an input as it was given: by its source, or by which setting."""
        policy = self.find_policy(topic)
        if self._find_own_policy(topic) is not None:
            return f"offset_reset={policy.strategy.value} of its source"
        if policy.strategy is ResetStrategy.AT_TIME:
            return f"start_at={policy.at_ms}"
        return f"auto_offset_reset={policy.strategy.value}"


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


def parse_source_policy(given: str | timedelta) -> OffsetResetPolicy:
    """Parse the `offset_reset` of a source. Raises ValueError that lists the allowed values."""
    if isinstance(given, timedelta):
        duration_ms = given // timedelta(milliseconds=1)
        if duration_ms < 0:
            raise ValueError(f"{given!r} is a negative duration")
        return OffsetResetPolicy(ResetStrategy.BY_DURATION, duration_ms)
    if not isinstance(given, str):
        raise ValueError(f"{given!r} is neither text nor a timedelta")
    return parse_reset_policy(given, stop_word=STOP_WORDS["auto_offset_reset"])


def parse_start_time(given: Any) -> int | None:
    """Parse `start_at`, a datetime, ISO-8601 text or ms since 1970, to ms. Raises ValueError.

    None, or empty text, is no time.
    """
    if given is None or given == "":
        return None
    if isinstance(given, str):
        if given.isdecimal():
            return int(given)
        with suppress(ValueError):
            given = datetime.fromisoformat(given)
    if isinstance(given, datetime):
        return max(int(given.timestamp() * 1_000), 0)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ValueError(
        f"{given!r} is no time: give a datetime, text as in 2026-01-31T12:00:00+00:00, or ms since "
        "1970"
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
