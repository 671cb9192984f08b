"""Track which partitions move between which members while an assignment is balanced.

When a partition of a topic is to move from A to B and another one of that topic has moved from B to
A before, that one moves back instead: no two members swap partitions of a topic.
"""

from __future__ import annotations

from coordinator.assignors.java_order import JavaPartitionSet
from coordinator.assignors.subscriptions import TopicPartition

_MemberPair = tuple[str, str]  # from, to


class PartitionMovements:
    """Tracks the moves of partitions between members, as PartitionMovements in Kafka."""

    def __init__(self) -> None:
        self._members_by_partition: dict[TopicPartition, _MemberPair] = {}
        self._partitions_by_members: dict[tuple[str, _MemberPair], JavaPartitionSet] = {}

    def record_move(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record a move; one that returns a partition to where it was at first is forgotten."""
        if partition in self._members_by_partition:
            source = self._remove_move(partition)[0]
        if source == target:
            return
        pair = self._members_by_partition[partition] = source, target
        self._partitions_by_members.setdefault(
            (partition[0], pair), JavaPartitionSet()
        ).add_partition(partition)

    def choose_partition(
        self, partition: TopicPartition, source: str, target: str
    ) -> TopicPartition:
        """Return a partition that was moved from `target` to `source` before, else this one."""
        if partition in self._members_by_partition:
            source = self._members_by_partition[partition][0]
        reverse = self._partitions_by_members.get((partition[0], (target, source)))
        return reverse.first_partition() if reverse else partition

    def _remove_move(self, partition: TopicPartition) -> _MemberPair:
        pair = self._members_by_partition.pop(partition)
        partitions = self._partitions_by_members[partition[0], pair]
        partitions.remove_partition(partition)
        if not partitions:
            del self._partitions_by_members[partition[0], pair]
        return pair
