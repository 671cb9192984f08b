"""The broker's settings: Kafka's names with underscores, Kafka's defaults, checked when made.

A wrong configuration cannot exist: every value is checked in `__post_init__`, and `from_settings`
turns the dotted names of a command line (`transaction.state.log.num.partitions=4`) into one.
Where a default is not Kafka's, a comment beside it says why.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_INT32_MAX = 2**31 - 1
_DAY_MS = 24 * 3600 * 1000


class WrongSetting(ValueError):
    """A setting that doesn't exist, or a value that it can't have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """One broker's settings. WrongSetting for a value out of range."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 9092  # 0: any free one
    node_id: int = 1

    num_partitions: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    message_max_bytes: int = 1_048_588
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_after_max_ms: int = 3_600_000
    log_segment_bytes: int = 1_073_741_824
    log_index_interval_bytes: int = 4_096
    log_retention_ms: int = 7 * _DAY_MS
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    socket_request_max_bytes: int = 104_857_600
    # Both are a connection's: beyond them nothing more is read from the client. Kafka has no limit
    # on the bytes (-1), but reads one request of a connection and then none until it is answered.
    queued_max_requests: int = 500
    queued_max_request_bytes: int = 1_048_576
    producer_id_expiration_ms: int = _DAY_MS
    producer_id_expiration_check_interval_ms: int = 600_000

    offsets_topic_num_partitions: int = 50
    offset_metadata_max_bytes: int = 4_096
    # Kafka waits 3 s for more members before the first rebalance of a group. That is for clusters
    # whose members start on many machines; here it would be the longest part of every start.
    group_initial_rebalance_delay_ms: int = 0
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = _INT32_MAX

    transaction_state_log_num_partitions: int = 50
    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transactional_id_expiration_ms: int = 7 * _DAY_MS
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise WrongSetting(f"{_dotted(name)}={value}: must be from {low} to {high}")
        if self.log_message_timestamp_type not in ("CreateTime", "LogAppendTime"):
            raise WrongSetting(
                f"log.message.timestamp.type={self.log_message_timestamp_type}: "
                "must be CreateTime or LogAppendTime"
            )
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise WrongSetting(
                f"group.min.session.timeout.ms={self.group_min_session_timeout_ms}: must not be "
                f"above group.max.session.timeout.ms={self.group_max_session_timeout_ms}"
            )

    @classmethod
    def from_settings(
        cls, data_dir: Path, settings: Mapping[str, object], **given: Any
    ) -> BrokerConfig:
        """A configuration with the settings, by dotted name, over what is given by field name."""
        values: dict[str, Any] = dict(given)
        for name, value in settings.items():
            field = name.strip().replace(".", "_")
            if field not in _SETTABLE:
                near = difflib.get_close_matches(name, map(_dotted, _SETTABLE), n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else "it is not a setting of this broker"
                raise WrongSetting(f"unknown setting {name}: {hint}")
            values[field] = _parsed(name, value, _SETTABLE[field])
        return cls(data_dir=data_dir, **values)

    def by_dotted_name(self) -> dict[str, str]:
        """Every setting as Kafka writes it, for DescribeConfigs."""
        values = {_dotted(name): _written(getattr(self, name)) for name in _SETTABLE}
        values["log.dirs"] = str(self.data_dir)
        return values


# The other fields are options of the command line, not settings.
_SETTABLE: dict[str, str] = {
    field.name: str(field.type)
    for field in fields(BrokerConfig)
    if field.name not in ("data_dir", "host", "port")
}

_RANGES: tuple[tuple[str, int, int], ...] = (
    ("port", 0, 65_535),
    ("node_id", 0, _INT32_MAX),
    ("num_partitions", 1, _INT32_MAX),
    ("message_max_bytes", 0, _INT32_MAX),
    ("log_message_timestamp_after_max_ms", 0, 2**63 - 1),
    ("log_segment_bytes", 14, _INT32_MAX),
    ("log_index_interval_bytes", 0, _INT32_MAX),
    ("log_retention_ms", -1, 2**63 - 1),
    ("fetch_max_bytes", 1_024, _INT32_MAX),
    ("max_incremental_fetch_session_cache_slots", 0, _INT32_MAX),
    ("socket_request_max_bytes", 1, _INT32_MAX),
    ("queued_max_requests", 1, _INT32_MAX),
    ("queued_max_request_bytes", 1, _INT32_MAX),
    ("producer_id_expiration_ms", 1, _INT32_MAX),
    ("producer_id_expiration_check_interval_ms", 1, _INT32_MAX),
    ("offsets_topic_num_partitions", 1, 10_000),
    ("offset_metadata_max_bytes", 0, _INT32_MAX),
    ("group_initial_rebalance_delay_ms", 0, _INT32_MAX),
    ("group_min_session_timeout_ms", 1, _INT32_MAX),
    ("group_max_session_timeout_ms", 1, _INT32_MAX),
    ("group_max_size", 1, _INT32_MAX),
    ("transaction_state_log_num_partitions", 1, 10_000),
    ("transaction_max_timeout_ms", 1, _INT32_MAX),
    ("transaction_abort_timed_out_transaction_cleanup_interval_ms", 1, _INT32_MAX),
    ("transactional_id_expiration_ms", 1, _INT32_MAX),
    ("transaction_remove_expired_transaction_cleanup_interval_ms", 1, _INT32_MAX),
)


def _dotted(field: str) -> str:
    return field.replace("_", ".")


def _parsed(name: str, value: object, kind: str) -> object:
    """The value that a setting's text stands for."""
    text = str(value).strip()
    if kind == "bool":
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise WrongSetting(f"{name}={text}: must be true or false")
    if kind == "int":
        try:
            return int(text)
        except ValueError:
            raise WrongSetting(f"{name}={text}: must be a whole number") from None
    return text


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
