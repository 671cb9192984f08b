"""Define the settings that a log takes from its topic's configuration."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Holds Kafka's topic configurations as numbers; -1 for no limit of retention."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4_096
    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_max_ms: int = NEVER
    timestamp_after_max_ms: int = 3_600_000
    is_deleted: bool = True  # cleanup.policy has delete
    is_compacted: bool = False  # cleanup.policy has compact
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    delete_retention_ms: int = 86_400_000
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
