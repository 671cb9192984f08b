"""Kafka's settings for consumer groups: the broker's, and what may be set for one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What may be set for one group, in milliseconds; else the broker's holds."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


# By group id; looked up at each heartbeat, so that what is altered holds at once.
SettingsOf: TypeAlias = Callable[[str], GroupSettings]

_FIELDS = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Of the broker. `assignors`: the first is taken where no member asks for one; `least` and
    `most`: how far a group's own settings may go."""

    max_size: int = 2**31 - 1  # members
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    defaults: GroupSettings = field(default_factory=GroupSettings)
    least: GroupSettings = field(default_factory=lambda: GroupSettings(45_000, 5_000, 0))
    most: GroupSettings = field(default_factory=lambda: GroupSettings(60_000, 15_000, 15_000))

    def settings(self, configs: Mapping[str, str]) -> GroupSettings:
        """Of a group that has these configurations. One that was within the broker's limits when it
        was set, and isn't any more, counts as the limit."""
        if configs.keys().isdisjoint(_FIELDS):
            return self.defaults
        return GroupSettings(
            **{field: self._within(field, configs.get(name)) for name, field in _FIELDS.items()}
        )

    def _within(self, field: str, text: str | None) -> int:
        default: int = getattr(self.defaults, field)
        if text is None:
            return default
        least: int = getattr(self.least, field)
        most: int = getattr(self.most, field)
        return min(max(int(text), least), most)
