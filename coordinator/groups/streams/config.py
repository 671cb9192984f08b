"""Define Kafka's settings for streams groups: the broker's, and those of one group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from coordinator.groups.streams.record_types import Tags


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings:
    """Holds the settings that one group may have instead of the broker's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: str = ""
    task_offset_interval_ms: int = 60_000

    @property
    def assignment_configs(self) -> Tags:
        """Return the group settings that a target assignment depends on, as the record has them."""
        return _list_assignment_configs(self.num_standby_replicas, self.rack_aware_assignment_tags)


@lru_cache(256)  # each heartbeat compares them with the group's
def _list_assignment_configs(num_standby_replicas: int, rack_aware_assignment_tags: str) -> Tags:
    configs = [("num.standby.replicas", str(num_standby_replicas))]
    if rack_aware_assignment_tags:
        configs.append(("rack.aware.assignment.tags", rack_aware_assignment_tags))
    return tuple(configs)


# Returns the settings of a group id. It is called at each heartbeat, so that an altered setting
# holds at once.
StreamsSettingsLookup: TypeAlias = Callable[[str], StreamsGroupSettings]

_NUMBER_FIELDS = {
    "streams.session.timeout.ms": "session_timeout_ms",
    "streams.heartbeat.interval.ms": "heartbeat_interval_ms",
    "streams.assignment.interval.ms": "assignment_interval_ms",
    "streams.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "streams.num.standby.replicas": "num_standby_replicas",
    "streams.task.offset.interval.ms": "task_offset_interval_ms",
}
_TAGS = "streams.rack.aware.assignment.tags"
_INT32_MAX = 2**31 - 1
MIN_TASK_OFFSET_INTERVAL_MS = 15_000  # Kafka's default of the broker's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """Holds the broker's settings for streams groups, and the limits of a group's own settings."""

    max_size: int = _INT32_MAX  # members
    defaults: StreamsGroupSettings = field(default_factory=StreamsGroupSettings)
    min_settings: StreamsGroupSettings = field(
        default_factory=lambda: StreamsGroupSettings(
            45_000, 5_000, 0, 0, 0, task_offset_interval_ms=MIN_TASK_OFFSET_INTERVAL_MS
        )
    )
    max_settings: StreamsGroupSettings = field(
        default_factory=lambda: StreamsGroupSettings(
            60_000, 15_000, 15_000, _INT32_MAX, 2, task_offset_interval_ms=_INT32_MAX
        )
    )

    def resolve_settings(self, configs: Mapping[str, str]) -> StreamsGroupSettings:
        """Return the settings of a group that has these configurations.

        A value that was within the broker's limits when it was set, and isn't any more, counts as
        the limit.
        """
        if configs.keys().isdisjoint((*_NUMBER_FIELDS, _TAGS)):
            return self.defaults
        numbers = {
            field: self._clamp_setting(field, configs.get(name))
            for name, field in _NUMBER_FIELDS.items()
        }
        tags = configs.get(_TAGS, self.defaults.rack_aware_assignment_tags)
        return StreamsGroupSettings(**numbers, rack_aware_assignment_tags=tags)

    def _clamp_setting(self, field: str, configured_text: str | None) -> int:
        default: int = getattr(self.defaults, field)
        if configured_text is None:
            return default
        least: int = getattr(self.min_settings, field)
        most: int = getattr(self.max_settings, field)
        return min(max(int(configured_text), least), most)
