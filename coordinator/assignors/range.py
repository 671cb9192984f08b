"""The `range` assignor: of each topic, partitions that follow one another for each subscriber.

Subscribers go in the order of `static_members_first`; where the number doesn't divide the first
ones get one more. So topics that are alike are co-partitioned.

Where racks matter (KIP-881) the members get partitions that have a replica in their rack first, as
far as their share goes, and then what is left in ranges. Topics with the same subscribers and as
many partitions stay co-partitioned: a member gets a partition of all of them, if all have a replica
in its rack, or of none.
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
    """The partitions of each member; see `subscriptions`."""
    members, topics = as_kafka_walks(members, topics)
    ordered = static_members_first(members)
    subscribed = {member: frozenset(each.topics) for member, each in members.items()}
    shares = [
        _Share(
            topic,
            {m: members[m].rack_id or None for m in ordered if topic in subscribed[m]},
            partitions,
        )
        for topic, partitions in topics.items()
    ]
    assignment: Assignment = {member: [] for member in members}
    by_rack = any(share.racks_matter for share in shares)
    if by_rack:
        _assign_by_rack(shares, assignment)
    for share in shares:
        share.give_ranges(assignment, same_rack=False)
    if by_rack:
        for mine in assignment.values():
            mine.sort()
    return assignment


class _Share:
    """One topic: its consumers with their racks, what is left of it, and who may have how much."""

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
        rack = self.consumers[consumer]
        return rack is None or rack in self.partitions[partition]

    def room(self, consumer: str) -> int:
        return max(0, self._size + (self._larger > 0) - self._given[consumer])

    def give(self, consumer: str, partitions: Sequence[int], assignment: Assignment) -> None:
        assignment[consumer] += [(self.topic, partition) for partition in partitions]
        self._given[consumer] += len(partitions)
        self._larger -= self._given[consumer] > self._size
        for partition in partitions:
            del self._left[partition]

    def give_ranges(self, assignment: Assignment, *, same_rack: bool) -> None:
        """Fill the consumers one after the other; only from their rack, if `same_rack`."""
        for consumer in self.consumers:
            wanted = [p for p in self._left if not same_rack or self.matches(consumer, p)]
            mine = wanted[: self.room(consumer)]
            if mine:
                self.give(consumer, mine, assignment)


def _assign_by_rack(shares: Sequence[_Share], assignment: Assignment) -> None:
    alike: dict[tuple[frozenset[str], int], list[_Share]] = {}
    for share in shares:
        alike.setdefault((frozenset(share.consumers), len(share.partitions)), []).append(share)
    for group in alike.values():
        if len(group) > 1:
            _assign_together(group, assignment)
        elif group[0].racks_matter:
            group[0].give_ranges(assignment, same_rack=True)


def _assign_together(shares: Sequence[_Share], assignment: Assignment) -> None:
    """Give each partition, of all these topics, to the first with room whose rack has them all."""
    if not any(shares[0].consumers.values()):
        return  # nobody says where it is
    remaining = list(shares[0].consumers)
    for partition in range(len(shares[0].partitions)):
        taker = next(
            (
                consumer
                for consumer in remaining
                if all(s.matches(consumer, partition) and s.room(consumer) for s in shares)
            ),
            None,
        )
        if taker is None:
            continue
        for share in shares:
            share.give(taker, [partition], assignment)
        if not any(share.room(taker) for share in shares):
            remaining.remove(taker)
