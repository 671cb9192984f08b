"""What has been done to offsets since the broker started. Topics and groups that are deleted take
their offsets along uncounted, as in Kafka."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class OffsetCounters:
    """Partitions: committed, in a transaction or not; expired; deleted by OffsetDelete."""

    commits: int = 0
    expirations: int = 0
    deletions: int = 0
