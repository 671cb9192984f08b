"""Simulate the membership of a driver: a group of one, which has all tasks."""

from __future__ import annotations

from collections.abc import Iterable

from streams.membership.protocol import Assigned, Subscribed
from streams.membership.terms import Membership, Plan, Signal
from streams.positions import Committed, CommittedOffsets, Partition
from streams.testing.cluster import Cluster

_MEMBER = "driver"


class OnlyMember:
    """Assigns itself all tasks, as the group's leader, by the product's own plan."""

    def __init__(self, cluster: Cluster, instance_id: str, plan: Plan) -> None:
        self.instance_id = instance_id
        self.leads = False  # the leader would look for new partitions of the inputs: none come
        self.silent_since_s: float | None = None
        self._cluster = cluster
        self._plan_tasks = plan
        self._membership = Membership(-1, "")

    @property
    def current(self) -> Membership:
        """Return the membership: generation and member id."""
        return self._membership

    def turned(self) -> None:
        """Do nothing: no watchdog looks at this thread."""

    def signal(self) -> Signal:
        """Return that nothing has changed: there is no other member."""
        return Signal.NOTHING

    def join(self, subscribed: Subscribed) -> Assigned | None:
        """Begin a new generation and return the assignment, which has all tasks."""
        self._membership = Membership(self._membership.generation + 1, _MEMBER)
        return self._plan_tasks({_MEMBER: subscribed})[_MEMBER]

    def is_current(self) -> bool:
        """Return True: no other member can take the tasks."""
        return True

    def commit_offsets(self, offsets: Iterable[tuple[tuple[str, int], Committed]]) -> bool:
        """Commit offsets to the cluster and return True."""
        self._cluster.offsets |= {Partition(*partition): held for partition, held in offsets}
        return True

    def committed_offsets(self, partitions: Iterable[tuple[str, int]]) -> CommittedOffsets:
        """Return the committed offsets of partitions, and those that a transaction may change."""
        found = CommittedOffsets({}, [])
        for partition in (Partition(*each) for each in partitions):
            if self._cluster.pending(partition):
                found.pending.append(partition)
            elif partition in self._cluster.offsets:
                found.offsets[partition] = self._cluster.offsets[partition]
        return found

    def leave(self, *, handed_over: bool = False) -> None:
        """Do nothing: there is no coordinator to tell."""

    def hand_over(self) -> None:
        """Do nothing: there is no coordinator to tell."""
