"""Track which partitions move between which members while an assignment is balanced.

When a partition of a topic is to move from A to B and another one of that topic has moved from B to
A before, that one moves back instead: no two members swap partitions of a topic.
"""

from __future__ import annotations

from coordinator.assignors.java_order import PartitionSet
from coordinator.assignors.subscriptions import TopicPartition

_Pair = tuple[str, str]  # from, to


class Movements:
    """Tracks the moves of partitions between members, as PartitionMovements in Kafka."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, _Pair] = {}
        self._moved: dict[tuple[str, _Pair], PartitionSet] = {}

    def moved(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record a move; one that returns a partition to where it was at first is forgotten."""
        if partition in self._pairs:
            source = self._forget(partition)[0]
        if source == target:
            return
        pair = self._pairs[partition] = source, target
        self._moved.setdefault((partition[0], pair), PartitionSet()).add(partition)

    def better_choice(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move: this one, or one of its topic that moved the other way."""
        if partition in self._pairs:
            source = self._pairs[partition][0]
        reverse = self._moved.get((partition[0], (target, source)))
        return reverse.first() if reverse else partition

    def _forget(self, partition: TopicPartition) -> _Pair:
        pair = self._pairs.pop(partition)
        partitions = self._moved[partition[0], pair]
        partitions.remove(partition)
        if not partitions:
            del self._moved[partition[0], pair]
        return pair
