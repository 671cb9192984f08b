"""Tell whether consumers and replicas are in the same racks, where that matters (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from coordinator.assignors.subscriptions import (
    Members,
    TopicPartition,
    Topics,
    racks_affect_assignment,
)

ConsumerIndex: TypeAlias = int


class RackInfo:
    """Holds the racks of consumers and replicas; falsy if racks don't matter.

    Then everybody may have everything. Kafka's counterpart is RackInfo of its
    AbstractStickyAssignor.
    """

    def __init__(self, members: Members, topics: Topics) -> None:
        consumers = {member: each.rack_id for member, each in members.items() if each.rack_id}
        partitions = {
            (topic, number): racks
            for topic, each in topics.items()
            for number, racks in enumerate(each)
        }
        matter = racks_affect_assignment(set(consumers.values()), list(partitions.values()))
        self._consumer_racks = consumers if matter else {}
        self._partition_racks = partitions if matter else {}
        self._consumer_counts = Counter(self._consumer_racks.values())

    def __bool__(self) -> bool:
        return bool(self._consumer_racks)

    def racks_of(self, partition: TopicPartition) -> AbstractSet[str]:
        """Return the racks with a replica of a partition."""
        return self._partition_racks.get(partition, frozenset())

    def is_near(self, consumer: str, partition: TopicPartition) -> bool:
        """Return whether the consumer names a rack that has a replica of the partition."""
        return self._consumer_racks.get(consumer) in self.racks_of(partition)

    def is_far(self, consumer: str, partition: TopicPartition) -> bool:
        """Return whether the consumer names a rack that has no replica of the partition."""
        rack = self._consumer_racks.get(consumer)
        return rack is not None and rack not in self.racks_of(partition)

    def sort_fewest_near_first(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return partitions sorted so that those with the fewest consumers near them come first."""
        return sorted(
            partitions,
            key=lambda partition: sum(self._consumer_counts[r] for r in self.racks_of(partition)),
        )

    def find_next_near(
        self, partition: TopicPartition, consumers: Sequence[str], first_index: int
    ) -> ConsumerIndex | None:
        """Return the index of the next consumer near the partition, or None if there is none.

        The search goes from `first_index` to the end, then from the beginning.
        """
        for offset in range(len(consumers)):
            index = (first_index + offset) % len(consumers)
            if self.is_near(consumers[index], partition):
                return index
        return None
