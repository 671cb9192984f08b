"""Assign where subscriptions differ: partitions move one by one until no move balances better.

Theory of operation. Members keep what they owned of topics that they are subscribed to (and, where
racks matter, are near to). Each free partition goes to the subscriber that has the fewest. Then the
partitions are gone through, those with the fewest subscribers first, again and again: one whose
owner has two more than another subscriber moves, back to its owner of an earlier generation if that
helps, else to the subscriber that has the fewest. It ends when nothing moves, or nothing can get
better. What comes out is thrown away again if it is balanced no better than before. Topics with one
subscriber and members that have no choice stay out of this.

Kafka's class would also move a partition back to an earlier owner that has unsubscribed from the
topic since, and may then move it to and fro without end. This one asks whether it is subscribed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from coordinator.assignors.stickiness.claims import ResolvedOwnership
from coordinator.assignors.stickiness.movements import PartitionMovements
from coordinator.assignors.stickiness.racks import RackInfo
from coordinator.assignors.subscriptions import Assignment, Members, TopicPartition, Topics

HasMovedAny: TypeAlias = bool


def assign_general(
    members: Members,
    topics: Topics,
    racks: RackInfo,
    ownership: ResolvedOwnership,
    earlier_owners: Mapping[TopicPartition, str],
) -> Assignment:
    """Return the partitions of each member; `earlier_owners` are of generations before the last."""
    balancer = _AssignmentBalancer(members, topics, racks, earlier_owners)
    balancer.keep_owned_where_allowed(ownership.by_member)
    unassigned = [
        partition for partition in balancer.partitions if partition not in balancer.owners
    ]
    balancer.assign_free(unassigned)
    balancer.improve_balance(unassigned)
    return balancer.assignment


# Few groups need more than three passes. Kafka has no bound, and may never end (see above).
_MAX_PASSES = 100


class _AssignmentBalancer:
    """Balances an assignment by moving single partitions between members."""

    def __init__(
        self,
        members: Members,
        topics: Topics,
        racks: RackInfo,
        earlier_owners: Mapping[TopicPartition, str],
    ) -> None:
        self._racks = racks
        self._earlier_owners = earlier_owners
        self._subscribed_topics = {
            member: frozenset(each.topics) for member, each in members.items()
        }
        self._subscribers = {
            topic: [member for member, wanted in self._subscribed_topics.items() if topic in wanted]
            for topic in topics
        }
        self._partition_counts = {topic: len(each) for topic, each in topics.items()}
        by_choice = sorted(topics, key=lambda topic: (len(self._subscribers[topic]), topic))
        self.partitions = [
            (topic, number)
            for topic in by_choice
            for number in range(self._partition_counts[topic])
        ]
        self._max_counts = {  # the most that a member can have
            member: sum(count for topic, count in self._partition_counts.items() if topic in wanted)
            for member, wanted in self._subscribed_topics.items()
        }
        self._movements = PartitionMovements()
        self._has_revoked = False  # whether a member had to give something up
        self._started_empty = False
        self._ranked: list[tuple[int, str]] = []  # members that take part, fewest partitions first
        self._balance_state: bool | None = None  # None: not known since something moved
        self.owners: dict[TopicPartition, str] = {}
        self.assignment: Assignment = {member: [] for member in members}

    def keep_owned_where_allowed(self, owned: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Let members keep owned partitions of subscribed topics that aren't far from them."""
        for member, partitions in owned.items():
            for partition in partitions:
                if partition[0] in self._subscribed_topics[member] and not self._racks.is_far(
                    member, partition
                ):
                    self.assignment[member].append(partition)
                    self.owners[partition] = member
                else:
                    self._has_revoked = True
        self._ranked = sorted((len(mine), member) for member, mine in self.assignment.items())
        self._started_empty = not self._ranked[-1][0]

    def assign_free(self, unassigned: Sequence[TopicPartition]) -> None:
        """Give each free partition to the subscriber that has the fewest, a near one first."""
        if self._racks:
            unassigned = [
                partition
                for partition in unassigned
                if not self._try_give_partition(partition, near_only=True)
            ]
        for partition in unassigned:
            self._try_give_partition(partition, near_only=False)

    def improve_balance(self, added_partitions: Sequence[TopicPartition]) -> None:
        """Move partitions as long as that balances better, at first only `added_partitions`."""
        movable_topics = {topic for topic, each in self._subscribers.items() if len(each) >= 2}
        self._ranked = [
            (size, member)
            for size, member in self._ranked
            if size < self._max_counts[member]
            or any(topic in movable_topics for topic, _ in self.assignment[member])
        ]
        previous = {
            member: list(member_partitions) for member, member_partitions in self.assignment.items()
        }
        if not self._has_revoked:
            self._move_to_better_owners(
                [each for each in added_partitions if each[0] in movable_topics]
            )
        has_moved = self._move_to_better_owners(
            [each for each in self.partitions if each[0] in movable_topics]
        )
        taking_part = [member for _, member in self._ranked]
        if (
            has_moved
            and not self._started_empty
            and _measure_imbalance(self.assignment, taking_part)
            >= _measure_imbalance(previous, taking_part)
        ):
            self.assignment = previous

    def _try_give_partition(self, partition: TopicPartition, *, near_only: bool) -> bool:
        """Give a partition to the subscriber with the fewest; return False if there is none."""
        for size, member in self._ranked:
            if partition[0] in self._subscribed_topics[member] and not (
                near_only and self._racks.is_far(member, partition)
            ):
                self.assignment[member].append(partition)
                self.owners[partition] = member
                self._update_rank(member, size)
                return True
        return False

    def _move_to_better_owners(self, partitions: Sequence[TopicPartition]) -> HasMovedAny:
        """Move partitions until no move balances better; return whether anything has moved."""
        has_moved = False
        for _ in range(_MAX_PASSES):
            move_count = 0
            for partition in partitions:
                if self._is_balanced():
                    break
                new_owner = self._find_better_owner(partition)
                if new_owner is not None:
                    self._move_partition(partition, new_owner)
                    move_count += 1
            if not move_count:
                break
            has_moved = True
        return has_moved

    def _find_better_owner(self, partition: TopicPartition) -> str | None:
        """Return a subscriber that has two partitions fewer than the owner, or None.

        An owner of an earlier generation comes first, then the subscriber with the fewest.
        """
        topic = partition[0]
        size = len(self.assignment[self.owners[partition]])
        earlier = self._earlier_owners.get(partition)
        if (
            earlier is not None
            and topic in self._subscribed_topics.get(earlier, ())
            and size > len(self.assignment[earlier]) + 1
        ):
            return earlier
        # The subscriber with the fewest, near or not: racks only count for free partitions.
        fewest, member = next(
            each for each in self._ranked if topic in self._subscribed_topics[each[1]]
        )
        return member if size > fewest + 1 else None

    def _move_partition(self, wanted_partition: TopicPartition, target: str) -> None:
        """Move a partition to `target`, or in its place one that came from there; update ranks."""
        partition = self._movements.choose_partition(
            wanted_partition, self.owners[wanted_partition], target
        )
        source = self.owners[partition]
        self._movements.record_move(partition, source, target)
        self.assignment[source].remove(partition)
        self.assignment[target].append(partition)
        self.owners[partition] = target
        self._update_rank(source, len(self.assignment[source]) + 1)
        self._update_rank(target, len(self.assignment[target]) - 1)
        self._balance_state = None

    def _update_rank(self, member: str, previous_count: int) -> None:
        """Move a member to its place in the ranking after its number of partitions changed."""
        del self._ranked[bisect_left(self._ranked, (previous_count, member))]
        insort(self._ranked, (len(self.assignment[member]), member))

    def _is_balanced(self) -> bool:
        if self._balance_state is None:
            self._balance_state = self._ranked[0][0] >= self._ranked[-1][0] - 1 or not any(
                self._has_better_owner(topic) for topic in self._subscribers
            )
        return self._balance_state

    def _has_better_owner(self, topic: str) -> bool:
        """Return whether it would even out the assignment to move a partition of a topic.

        That is so if a subscriber has at least two partitions fewer than an owner.
        """
        fewest = min(len(self.assignment[member]) for member in self._subscribers[topic])
        owners = {self.owners[topic, number] for number in range(self._partition_counts[topic])}
        return any(len(self.assignment[member]) > fewest + 1 for member in owners)


def _measure_imbalance(assignment: Assignment, members: Sequence[str]) -> int:
    """Return the sum of the differences in partition count between all pairs of members."""
    return sum(
        abs(one - other) for one, other in combinations([len(assignment[m]) for m in members], 2)
    )
