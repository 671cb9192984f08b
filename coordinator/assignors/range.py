"""Assign like the `range` assignor: consecutive partitions of each topic for each subscriber.

Subscribers go in the order of `sort_static_members_first`; where the number doesn't divide the
first ones get one more. So topics that are alike are co-partitioned.

Where racks matter (KIP-881) the members get partitions that have a replica in their rack first, as
far as their quota goes, and then what is left in ranges. Topics with the same subscribers and as
many partitions stay co-partitioned: a member gets a partition of all of them, if all have a replica
in its rack, or of none.
Kafka's counterpart is RangeAssignor of the clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from coordinator.assignors.subscriptions import (
    Assignment,
    Members,
    Topics,
    as_kafka_walks,
    racks_matter,
    static_members_first,
)

NAME = "range"


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member: consecutive ones of each topic.

    See `subscriptions` for the contract.
    """
    members, topics = as_kafka_walks(members, topics)
    ordered = static_members_first(members)
    subscribed = {member: frozenset(each.topics) for member, each in members.items()}
    topic_assignments = [
        _Share(
            topic,
            {m: members[m].rack_id or None for m in ordered if topic in subscribed[m]},
            partitions,
        )
        for topic, partitions in topics.items()
    ]
    assignment: Assignment = {member: [] for member in members}
    by_rack = any(topic_assignment.racks_matter for topic_assignment in topic_assignments)
    if by_rack:
        _assign_by_rack(topic_assignments, assignment)
    for topic_assignment in topic_assignments:
        topic_assignment.give_ranges(assignment, same_rack=False)
    if by_rack:
        for assigned in assignment.values():
            assigned.sort()
    return assignment


class _Share:
    """Tracks one topic: its consumers with their racks, free partitions and quotas."""

    def __init__(
        self, topic: str, consumers: dict[str, str | None], partitions: Sequence[AbstractSet[str]]
    ) -> None:
        self.topic = topic
        self.consumers = consumers
        self.partitions = partitions
        racks = {rack for rack in consumers.values() if rack is not None}
        self.racks_matter = racks_matter(racks, partitions)
        self._left = dict.fromkeys(range(len(partitions)))
        self._given = dict.fromkeys(consumers, 0)
        self._size, self._larger = divmod(len(partitions), len(consumers))

    def matches(self, consumer: str, partition: int) -> bool:
        """Whether the consumer says no rack, or a replica of the partition is in its rack."""
        rack = self.consumers[consumer]
        return rack is None or rack in self.partitions[partition]

    def room(self, consumer: str) -> int:
        """Return how many more partitions of the topic the consumer may get."""
        return max(0, self._size + (self._larger > 0) - self._given[consumer])

    def give(self, consumer: str, partitions: Sequence[int], assignment: Assignment) -> None:
        """Assign partitions of the topic to a consumer."""
        assignment[consumer] += [(self.topic, partition) for partition in partitions]
        self._given[consumer] += len(partitions)
        self._larger -= self._given[consumer] > self._size
        for partition in partitions:
            del self._left[partition]

    def give_ranges(self, assignment: Assignment, *, same_rack: bool) -> None:
        """Fill the consumers' quotas one after the other; only from their rack, if `same_rack`."""
        for consumer in self.consumers:
            candidates = [p for p in self._left if not same_rack or self.matches(consumer, p)]
            given = candidates[: self.room(consumer)]
            if given:
                self.give(consumer, given, assignment)


def _assign_by_rack(shares: Sequence[_Share], assignment: Assignment) -> None:
    """Assign partitions within racks, together for topics that stay co-partitioned."""
    copartitioned: dict[tuple[frozenset[str], int], list[_Share]] = {}
    for topic_assignment in shares:
        copartitioned.setdefault(
            (frozenset(topic_assignment.consumers), len(topic_assignment.partitions)), []
        ).append(topic_assignment)
    for group in copartitioned.values():
        if len(group) > 1:
            _assign_together(group, assignment)
        elif group[0].racks_matter:
            group[0].give_ranges(assignment, same_rack=True)


def _assign_together(shares: Sequence[_Share], assignment: Assignment) -> None:
    """Give each partition, of all these topics, to the first with room whose rack has them all."""
    if not any(shares[0].consumers.values()):
        return  # No consumer has said its rack.
    remaining = list(shares[0].consumers)
    for partition in range(len(shares[0].partitions)):
        receiver = next(
            (
                consumer
                for consumer in remaining
                if all(each.matches(consumer, partition) and each.room(consumer) for each in shares)
            ),
            None,
        )
        if receiver is None:
            continue
        for topic_assignment in shares:
            topic_assignment.give(receiver, [partition], assignment)
        if not any(topic_assignment.room(receiver) for topic_assignment in shares):
            remaining.remove(receiver)
