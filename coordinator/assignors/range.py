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
    order_like_kafka,
    racks_affect_assignment,
    sort_static_members_first,
)

NAME = "range"


def assign(members: Members, topics: Topics) -> Assignment:
    """Return the partitions of each member: consecutive ones of each topic.

    See `subscriptions` for the contract.
    """
    members, topics = order_like_kafka(members, topics)
    ordered = sort_static_members_first(members)
    subscribed = {member: frozenset(each.topics) for member, each in members.items()}
    topic_assignments = [
        _TopicAssignment(
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
        topic_assignment.fill_quotas_with_free_partitions(assignment, same_rack=False)
    if by_rack:
        for assigned in assignment.values():
            assigned.sort()
    return assignment


class _TopicAssignment:
    """Tracks one topic: its consumers with their racks, free partitions and quotas."""

    def __init__(
        self, topic: str, consumers: dict[str, str | None], partitions: Sequence[AbstractSet[str]]
    ) -> None:
        self.topic = topic
        self.consumers = consumers
        self.partitions = partitions
        racks = {rack for rack in consumers.values() if rack is not None}
        self.racks_matter = racks_affect_assignment(racks, partitions)
        self._unassigned = dict.fromkeys(range(len(partitions)))
        self._given_counts = dict.fromkeys(consumers, 0)
        self._quota, self._larger_quota_count = divmod(len(partitions), len(consumers))

    def matches_rack(self, consumer: str, partition: int) -> bool:
        """Return whether the consumer names no rack, or one with a replica of the partition."""
        rack = self.consumers[consumer]
        return rack is None or rack in self.partitions[partition]

    def remaining_quota(self, consumer: str) -> int:
        """Return how many more partitions of the topic the consumer may get."""
        return max(0, self._quota + (self._larger_quota_count > 0) - self._given_counts[consumer])

    def give_partitions(
        self, consumer: str, partitions: Sequence[int], assignment: Assignment
    ) -> None:
        """Assign partitions of the topic to a consumer."""
        assignment[consumer] += [(self.topic, partition) for partition in partitions]
        self._given_counts[consumer] += len(partitions)
        self._larger_quota_count -= self._given_counts[consumer] > self._quota
        for partition in partitions:
            del self._unassigned[partition]

    def fill_quotas_with_free_partitions(self, assignment: Assignment, *, same_rack: bool) -> None:
        """Fill each consumer's quota with free partitions; with `same_rack` only from its rack."""
        for consumer in self.consumers:
            candidates = [
                p for p in self._unassigned if not same_rack or self.matches_rack(consumer, p)
            ]
            given = candidates[: self.remaining_quota(consumer)]
            if given:
                self.give_partitions(consumer, given, assignment)


def _assign_by_rack(topic_assignments: Sequence[_TopicAssignment], assignment: Assignment) -> None:
    """Assign partitions within racks, together for topics that stay co-partitioned."""
    copartitioned: dict[tuple[frozenset[str], int], list[_TopicAssignment]] = {}
    for topic_assignment in topic_assignments:
        copartitioned.setdefault(
            (frozenset(topic_assignment.consumers), len(topic_assignment.partitions)), []
        ).append(topic_assignment)
    for group in copartitioned.values():
        if len(group) > 1:
            _assign_copartitioned(group, assignment)
        elif group[0].racks_matter:
            group[0].fill_quotas_with_free_partitions(assignment, same_rack=True)


def _assign_copartitioned(
    topic_assignments: Sequence[_TopicAssignment], assignment: Assignment
) -> None:
    """Assign each partition, of all topics at once, to the first consumer in its rack with room.

    The consumer is below its quota of every topic, and in the rack of a replica of that partition
    of every topic, unless it names no rack. A partition without such a consumer stays free.
    """
    if not any(topic_assignments[0].consumers.values()):
        return  # No consumer has said its rack.
    remaining = list(topic_assignments[0].consumers)
    for partition in range(len(topic_assignments[0].partitions)):
        receiver = next(
            (
                consumer
                for consumer in remaining
                if all(
                    each.matches_rack(consumer, partition) and each.remaining_quota(consumer)
                    for each in topic_assignments
                )
            ),
            None,
        )
        if receiver is None:
            continue
        for topic_assignment in topic_assignments:
            topic_assignment.give_partitions(receiver, [partition], assignment)
        if not any(
            topic_assignment.remaining_quota(receiver) for topic_assignment in topic_assignments
        ):
            remaining.remove(receiver)
