"""Define the broker's settings: Kafka's names with underscores, Kafka's defaults, validated.

A wrong configuration cannot exist: every value is checked in `__post_init__`, and `from_settings`
turns the dotted names of a command line (`transaction.state.log.num.partitions=4`) into one.
Where a default is not Kafka's, a comment beside it says why. Some may be altered while
the broker runs (see `dynamic_config`).
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from coordinator.setting_limits import ALLOWED_WORDS, ORDERED_PAIRS, RANGES
from coordinator.settings import INT32_MAX as _INT32_MAX
from coordinator.settings import INT64_MAX as _INT64_MAX
from coordinator.settings import ConfigType, Setting, split_list
from coordinator.unused_settings import (
    UNUSED_SETTINGS,
    explain_unsupported_value,
    is_unused_setting,
)

log = logging.getLogger(__name__)

_DAY_MS = 24 * 3600 * 1000


class WrongSetting(ValueError):
    """Signals a setting that doesn't exist, or an invalid value for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Holds one broker's settings; creating it raises WrongSetting for a value out of range."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 9092  # 0: any free one
    node_id: int = 1

    num_partitions: int = 1
    auto_create_topics_enable: bool = True
    default_replication_factor: int = 1  # there is one broker
    delete_topic_enable: bool = True
    message_max_bytes: int = 1_048_588
    # Defaults of topic settings: `log/configs` names the topic's setting that each stands behind.
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_delete_retention_ms: int = _DAY_MS
    log_cleaner_enable: bool = True
    log_cleaner_max_compaction_lag_ms: int = _INT64_MAX
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleanup_policy: str = "delete"
    log_flush_interval_messages: int = _INT64_MAX
    log_flush_interval_ms: int = _INT64_MAX
    log_index_interval_bytes: int = 4_096
    log_index_size_max_bytes: int = 10_485_760
    log_message_timestamp_after_max_ms: int = 3_600_000
    log_message_timestamp_before_max_ms: int = _INT64_MAX
    log_message_timestamp_type: str = "CreateTime"
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_retention_bytes: int = -1
    log_retention_check_interval_ms: int = 300_000
    log_retention_ms: int = 7 * _DAY_MS
    log_roll_jitter_ms: int = 0
    log_roll_ms: int = 7 * _DAY_MS
    log_segment_bytes: int = 1_073_741_824
    log_segment_delete_delay_ms: int = 60_000
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    socket_request_max_bytes: int = 104_857_600
    # For each connection: while so many requests wait, nothing more is read from the client. In
    # Kafka it limits the one queue of all connections; here each connection has its own.
    queued_max_requests: int = 500
    # Kafka has no limit (-1): there the JVM's heap limits what requests take.
    queued_max_request_bytes: int = 134_217_728
    connections_max_idle_ms: int = 600_000
    max_connections: int = _INT32_MAX
    max_connections_per_ip: int = _INT32_MAX
    producer_id_expiration_ms: int = _DAY_MS
    producer_id_expiration_check_interval_ms: int = 600_000

    offsets_topic_num_partitions: int = 50
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_check_interval_ms: int = 600_000
    offsets_retention_minutes: int = 7 * 24 * 60
    # Kafka waits 3 s for more members before the first rebalance of a group. Here that would be the
    # longest part of every start. Without any delay, members that start together would miss the
    # first generation and join the next one only with their next heartbeat, 3 s later.
    group_initial_rebalance_delay_ms: int = 100
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = _INT32_MAX
    # Kafka's default; share groups aren't there, whatever it says.
    group_coordinator_rebalance_protocols: str = "classic,consumer,streams"
    # Settings of consumer groups (KIP-848); a group may have its own within the limits.
    # Kafka assigns once a second at most, so that many members that join at once cost it little;
    # the second one then waits for its next heartbeat, 5 s. Here an assignment is cheap enough for
    # each of 200 members that join at once (`make bench-groups`).
    group_consumer_assignment_interval_ms: int = 0
    group_consumer_assignors: str = "uniform,range"
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_max_size: int = _INT32_MAX
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_session_timeout_ms: int = 45_000
    # Settings of streams groups (KIP-1071); a group may have its own within the limits.
    # Kafka's, so that members that join at once share few assignments: one for each of a thousand
    # took longer than the delay (`make bench-groups`, docs/decisions/0120).
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_max_assignment_interval_ms: int = 15_000
    group_streams_max_heartbeat_interval_ms: int = 15_000
    group_streams_max_session_timeout_ms: int = 60_000
    group_streams_max_size: int = _INT32_MAX
    group_streams_max_standby_replicas: int = 2
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_min_heartbeat_interval_ms: int = 5_000
    group_streams_min_session_timeout_ms: int = 45_000
    group_streams_num_standby_replicas: int = 0
    group_streams_session_timeout_ms: int = 45_000

    metrics_port: int = -1  # of the endpoint for Prometheus; 0: any free one; -1: there is none
    metrics_host: str = "127.0.0.1"  # its address; whoever reaches it can read the figures
    # In Kafka these three are features, chosen when the storage is formatted.
    group_version: int = 1  # 0: without the consumer protocol (KIP-848)
    streams_version: int = 1  # 0: without the streams protocol (KIP-1071)
    transaction_version: int = 2
    transaction_state_log_num_partitions: int = 50
    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transactional_id_expiration_ms: int = 7 * _DAY_MS
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000

    def __post_init__(self) -> None:
        if self.host.startswith("[") and self.host.endswith("]"):
            # An IPv6 address as it stands in host:port.
            object.__setattr__(self, "host", self.host[1:-1])
        self._check_supported_by_single_broker()
        for name, low, high in RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise WrongSetting(f"{_to_dotted_name(name)}={value}: must be from {low} to {high}")
        for name, (_, words) in ALLOWED_WORDS.items():
            for word in split_list(getattr(self, name)):
                if word not in words:
                    raise WrongSetting(
                        f"{_to_dotted_name(name)}={word}: must be {' or '.join(words)}"
                    )
        assignors = split_list(self.group_consumer_assignors)
        if not assignors or len(set(assignors)) < len(assignors):
            raise WrongSetting(
                f"group.consumer.assignors={self.group_consumer_assignors}: must name each of one "
                "or more assignors once"
            )
        for low_name, high_name in ORDERED_PAIRS:
            low, high = getattr(self, low_name), getattr(self, high_name)
            if low > high:
                raise WrongSetting(
                    f"{_to_dotted_name(low_name)}={low}: "
                    f"must not be above {_to_dotted_name(high_name)}={high}"
                )
        for kind in ("consumer", "streams"):
            beat, session = (
                f"group_{kind}_heartbeat_interval_ms",
                f"group_{kind}_session_timeout_ms",
            )
            if getattr(self, beat) >= getattr(self, session):
                raise WrongSetting(
                    f"{_to_dotted_name(beat)}={getattr(self, beat)}: must be below "
                    f"{_to_dotted_name(session)}={getattr(self, session)}"
                )

    def _check_supported_by_single_broker(self) -> None:
        """Raise WrongSetting for what another broker could do, and this one can not."""
        if self.default_replication_factor > 1:
            raise WrongSetting(
                f"default.replication.factor={self.default_replication_factor}: must be 1: this "
                "broker is the only one, with the only replica"
            )
        if "classic" not in split_list(self.group_coordinator_rebalance_protocols):
            raise WrongSetting(
                "group.coordinator.rebalance.protocols="
                f"{self.group_coordinator_rebalance_protocols}: must have classic: disabling that "
                "protocol is not supported"
            )

    @classmethod
    def from_settings(
        cls, data_dir: Path, settings: Mapping[str, object], **given: Any
    ) -> BrokerConfig:
        """Create a configuration from settings by dotted name, which replace those by field name.

        Settings of Kafka that this broker does not have are logged once, as having no effect.

        Raises: WrongSetting for an unknown name or an invalid value.
        """
        values: dict[str, Any] = dict(given)
        unused: list[str] = []
        for name, value in _convert_time_units_to_ms(_convert_broker_id(settings)).items():
            field = name.strip().replace(".", "_")
            if field in _SETTING_TYPES:
                values[field] = _parse_value(name, value, _SETTING_TYPES[field])
            elif is_unused_setting(name.strip()):
                objection = explain_unsupported_value(name.strip(), str(value))
                if objection is not None:
                    raise WrongSetting(f"{name}={value}: {objection}")
                unused.append(name.strip())
            else:
                raise WrongSetting(f"unknown setting {name}: {_suggest_name(name)}")
        config = cls(data_dir=data_dir, **values)
        if unused:
            log.warning(
                "settings of Kafka that have no effect on this broker ('Settings' in"
                " docs/broker.md): %s",
                ", ".join(sorted(unused)),
            )
        return config

    def with_settings(self, settings: Mapping[str, object]) -> BrokerConfig:
        """Return a copy in which settings, given by dotted name, replace the present values.

        Raises: WrongSetting.
        """
        parsed: dict[str, Any] = {}
        for name, value in settings.items():
            field = name.replace(".", "_")
            if field not in _SETTING_TYPES:
                raise WrongSetting(f"unknown setting {name}: it is not a setting of this broker")
            parsed[field] = _parse_value(name, value, _SETTING_TYPES[field])
        return replace(self, **parsed)

    @property
    def allows_consumer_protocol(self) -> bool:
        """Return whether `group.coordinator.rebalance.protocols` has the consumer protocol."""
        return "consumer" in split_list(self.group_coordinator_rebalance_protocols)

    @property
    def allows_streams_protocol(self) -> bool:
        """Return whether `group.coordinator.rebalance.protocols` has the streams protocol."""
        return "streams" in split_list(self.group_coordinator_rebalance_protocols)

    def format_setting(self, field: str) -> str:
        """Return the value of a setting, given by field name, as Kafka writes it."""
        return _format_value(getattr(self, field))


# The other fields are options of the command line, not settings.
_SETTING_TYPES: dict[str, str] = {
    field.name: str(field.type)
    for field in fields(BrokerConfig)
    if field.name not in ("data_dir", "host", "port")
}

_CONFIG_TYPES = {
    "bool": ConfigType.BOOLEAN,
    "float": ConfigType.DOUBLE,
    "str": ConfigType.STRING,
    "int": ConfigType.INT,
}


# Kafka's other names for a setting in milliseconds; where several are given, the finest counts.
TIME_UNIT_ALIASES = {
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", 3_600_000),
}


def _suggest_name(name: str) -> str:
    known = [*map(_to_dotted_name, _SETTING_TYPES), *TIME_UNIT_ALIASES, *sorted(UNUSED_SETTINGS)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else "it is not a setting of this broker"


def _convert_broker_id(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings with `node.id` in the place of `broker.id`, Kafka's older name for it.

    Raises: WrongSetting if both are given and differ.
    """
    if "broker.id" not in settings:
        return settings
    found = dict(settings)
    broker_id = found.pop("broker.id")
    if str(found.setdefault("node.id", broker_id)) != str(broker_id):
        raise WrongSetting(f"broker.id={broker_id}: must be node.id={found['node.id']}")
    return found


def _convert_time_units_to_ms(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings with those in minutes or hours replaced by those in milliseconds.

    A negative number, which means no limit, is kept as it is. Raises: WrongSetting.
    """
    found = {name: value for name, value in settings.items() if name not in TIME_UNIT_ALIASES}
    for name, (in_ms, unit_ms) in TIME_UNIT_ALIASES.items():
        if name in settings:
            try:
                number = int(str(settings[name]))
            except ValueError:
                raise WrongSetting(f"{name}={settings[name]}: must be a whole number") from None
            found.setdefault(in_ms, number * unit_ms if number >= 0 else number)
    return found


def _create_setting(name: str, annotation: str, default: object) -> Setting:
    """Create the definition of a broker setting from its field's annotation and default."""
    kind, words = ALLOWED_WORDS.get(name, (_CONFIG_TYPES[annotation], ()))
    low, high = _LIMITS.get(name, (0, _INT32_MAX))
    if kind is ConfigType.INT and high > _INT32_MAX:
        kind = ConfigType.LONG
    return Setting(kind, _format_value(default), low, high, words)


def _to_dotted_name(field: str) -> str:
    return field.replace("_", ".")


def _parse_value(name: str, value: object, annotation: str) -> object:
    """Parse the text of a setting as the type of its field, or raise WrongSetting."""
    text = str(value).strip()
    if annotation == "bool":
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise WrongSetting(f"{name}={text}: must be true or false")
    if annotation == "float":
        try:
            return float(text)
        except ValueError:
            raise WrongSetting(f"{name}={text}: must be a number") from None
    if annotation == "int":
        try:
            return int(text)
        except ValueError:
            raise WrongSetting(f"{name}={text}: must be a whole number") from None
    return text


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Settings that DescribeConfigs leaves out, as Kafka does with its internal ones.
INTERNAL_SETTINGS = frozenset({"group_consumer_regex_refresh_interval_ms"})
_LIMITS = {name: (low, high) for name, low, high in RANGES}
# The definition of every setting, by field name, as DescribeConfigs describes it.
BROKER_SETTINGS: Mapping[str, Setting] = {
    field.name: _create_setting(field.name, str(field.type), field.default)
    for field in fields(BrokerConfig)
    if field.name in _SETTING_TYPES
}
