"""Define the broker's settings for offsets."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetConfig:
    """Holds the broker's limits and retention for committed offsets.

    They are `offset.metadata.max.bytes`, `offsets.retention.minutes` in milliseconds, and
    `offsets.retention.check.interval.ms`.
    """

    metadata_max_bytes: int = 4_096
    retention_ms: int = 7 * DAY_MS
    retention_check_interval_ms: int = 600_000
