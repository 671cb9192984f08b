"""Count members, rebalances and offsets of a shard's groups of one kind, for the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.histogram import Histogram, RecentMax

# Causes of a rebalance that tell that the one before it has failed: an assignment was lost, or
# members did not join, sync or revoke in time.
_FAILURE_CAUSES = frozenset({"append", "rejoin", "revoke", "sync"})


@dataclass(slots=True)
class GroupCounters:
    """Counts heartbeats, members and rebalances of the groups of one kind, for the metrics."""

    heartbeats: int = 0
    sessions_expired: int = 0
    created: int = 0
    deleted: int = 0
    joined: int = 0  # members
    left: int = 0
    rebalances: dict[str, int] = field(default_factory=dict)  # started ones, by cause
    results: dict[str, int] = field(default_factory=dict)  # rebalances that ended, by result
    rebalance_times: Histogram = field(default_factory=Histogram)  # of completed ones
    rebalance_max_ms: RecentMax = field(default_factory=RecentMax)
    rebalancing: set[str] = field(default_factory=set)  # groups whose rebalance is under way

    def count_rebalance_start(self, group_id: str, cause: str) -> None:
        """Count a rebalance that starts, by its cause, and the end of the one that it replaces."""
        self.rebalances[cause] = self.rebalances.get(cause, 0) + 1
        if group_id in self.rebalancing:
            self._count_rebalance_result("failed" if cause in _FAILURE_CAUSES else "superseded")
        else:
            self.rebalancing.add(group_id)

    def count_rebalance_end(self, group_id: str, elapsed_ms: int, now_ms: int) -> None:
        """Count a rebalance that is complete, with its duration, at a monotonic time."""
        self.rebalancing.discard(group_id)
        self._count_rebalance_result("complete")
        self.rebalance_times.record_ms(elapsed_ms)
        self.rebalance_max_ms.record_value(elapsed_ms, now_ms)

    def count_member_changes(self, group_id: str, members_before: int, members_now: int) -> None:
        """Count a group that came or went, and its members; -1 stands for no group."""
        if members_now == members_before:
            return
        if members_before < 0:
            self.created += 1
        elif members_now < 0:
            self.deleted += 1
        change = max(members_now, 0) - max(members_before, 0)
        if change > 0:
            self.joined += change
        else:
            self.left -= change
        if members_now <= 0 and group_id in self.rebalancing:
            self.rebalancing.discard(group_id)
            self._count_rebalance_result("abandoned")

    def _count_rebalance_result(self, result: str) -> None:
        self.results[result] = self.results.get(result, 0) + 1


@dataclass(slots=True)
class AssignorCounters:
    """Counts the runs of an assignor of the broker by their time, and the partitions moved."""

    times: Histogram = field(default_factory=Histogram)
    partitions_moved: int = 0


@dataclass(slots=True)
class OffsetCounters:
    """Counts partitions whose offset was committed, has expired, or was deleted by OffsetDelete.

    Topics and groups that are deleted take their offsets along uncounted, as in Kafka.
    """

    member_commits: int = 0
    simple_commits: int = 0  # of nobody who claims to be a member
    transaction_commits: int = 0
    expirations: int = 0
    deletions: int = 0

    @property
    def commits(self) -> int:
        """Return how many offsets were committed, in a transaction or not."""
        return self.member_commits + self.simple_commits + self.transaction_commits
