"""Define Kafka's settings for consumer groups: the broker's, and those of one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Holds the settings that one group may have instead of the broker's, in milliseconds."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


# Returns the settings of a group id. It is called at each heartbeat, so that an altered setting
# holds at once.
GroupSettingsLookup: TypeAlias = Callable[[str], ConsumerGroupSettings]

_FIELDS = {
    "consumer.session.timeout.ms": "session_timeout_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """Holds the broker's settings for consumer groups.

    `assignors`: the first is taken where no member asks for one; `min_settings` and `max_settings`:
    the limits of a group's own settings.
    """

    max_size: int = 2**31 - 1  # members
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    defaults: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    min_settings: ConsumerGroupSettings = field(
        default_factory=lambda: ConsumerGroupSettings(45_000, 5_000, 0)
    )
    max_settings: ConsumerGroupSettings = field(
        default_factory=lambda: ConsumerGroupSettings(60_000, 15_000, 15_000)
    )

    def resolve_settings(self, configs: Mapping[str, str]) -> ConsumerGroupSettings:
        """Return the settings of a group that has these configurations.

        A value that was within the broker's limits when it was set, and isn't any more, counts as
        the limit.
        """
        if configs.keys().isdisjoint(_FIELDS):
            return self.defaults
        return ConsumerGroupSettings(
            **{
                field: self._clamp_setting(field, configs.get(name))
                for name, field in _FIELDS.items()
            }
        )

    def _clamp_setting(self, field: str, configured_text: str | None) -> int:
        default: int = getattr(self.defaults, field)
        if configured_text is None:
            return default
        least: int = getattr(self.min_settings, field)
        most: int = getattr(self.max_settings, field)
        return min(max(int(configured_text), least), most)
