"""Count what a shard's groups of one kind have done, and their offsets, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class GroupCounters:
    """Counts heartbeats, expired sessions and rebalances; read whenever metrics are collected."""

    heartbeats: int = 0
    sessions_expired: int = 0
    rebalances: dict[str, int] = field(default_factory=dict)  # started ones, by cause
    completed: int = 0  # rebalances
    rebalance_ms: int = 0  # the duration of all completed ones together
    rebalance_ms_max: int = 0

    def count_rebalance_start(self, cause: str) -> None:
        """Count a rebalance that starts, by its cause."""
        self.rebalances[cause] = self.rebalances.get(cause, 0) + 1

    def count_rebalance_end(self, elapsed_ms: int) -> None:
        """Count a rebalance that is complete, with its duration."""
        self.completed += 1
        self.rebalance_ms += elapsed_ms
        if elapsed_ms > self.rebalance_ms_max:
            self.rebalance_ms_max = elapsed_ms


@dataclass(slots=True)
class OffsetCounters:
    """Counts partitions whose offset was committed, has expired, or was deleted by OffsetDelete.

    Commits count in a transaction or not. Topics and groups that are deleted take their offsets
    along uncounted, as in Kafka.
    """

    commits: int = 0
    expirations: int = 0
    deletions: int = 0
