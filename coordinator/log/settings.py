"""What a topic's configuration says about its logs."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Kafka's topic configurations, as numbers; -1 for no limit of retention."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    index_interval_bytes: int = 4_096
    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_max_ms: int = NEVER
    timestamp_after_max_ms: int = 3_600_000
    is_deleted: bool = True  # cleanup.policy has delete,
    is_compacted: bool = False  # has compact; empty, neither
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
