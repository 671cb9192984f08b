"""The `uniform` assignor of KIP-848: as many partitions for each member, and few of them move.

Where all members are subscribed to the same topics, each gets the same number within one, and only
what is over a member's quota moves (here). Where subscriptions differ, see `balancing`. The rule is
that of Kafka's UniformAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from uuid import UUID

from coordinator.assignors.server.balancing import balance
from coordinator.assignors.server.subscription import MemberSubscription, TopicPartitions

NAME = "uniform"


def assign(
    members: Mapping[str, MemberSubscription], partitions: Mapping[UUID, int]
) -> dict[str, TopicPartitions]:
    """The target of each member; see the package."""
    existing = {
        topics: topics.intersection(partitions)
        for topics in {member.topics for member in members.values()}
    }
    alike = set(existing.values())
    if len(alike) > 1:
        return balance(
            {member_id: existing[member.topics] for member_id, member in members.items()},
            {member_id: member.assigned for member_id, member in members.items()},
            partitions,
        )
    return _share(members, {topic: partitions[topic] for topics in alike for topic in topics})


def _share(
    members: Mapping[str, MemberSubscription], partitions: Mapping[UUID, int]
) -> dict[str, TopicPartitions]:
    """The targets of members who are subscribed to all of `partitions`, all of them.

    Members give up what is over their quota; those below it take what is free, topic by topic.
    """
    if not members:
        return {}
    base, larger = divmod(sum(partitions.values()), len(members))
    free = {topic: set(range(partitions[topic])) for topic in sorted(partitions, key=_bits)}
    targets: dict[str, TopicPartitions] = {}
    wanting: list[tuple[str, int]] = []
    for waiting, member_id in zip(range(len(members), 0, -1), sorted(members), strict=True):
        assigned = members[member_id].assigned
        kept = _keep(assigned, base + (larger > 0), free)
        count = sum(map(len, kept.values()))
        # A larger quota is for those who fill it, and in the end for whoever is left.
        quota = base + (count > base or waiting <= larger)
        larger -= quota - base
        if count < quota:
            wanting.append((member_id, quota - count))
        targets[member_id] = kept
    rest = ((topic, partition) for topic in free for partition in sorted(free[topic]))
    for member_id, number in wanting:
        taken = {topic: set(kept) for topic, kept in targets[member_id].items()}
        for topic, partition in islice(rest, number):
            taken.setdefault(topic, set()).add(partition)
        targets[member_id] = {topic: frozenset(mine) for topic, mine in taken.items()}
    return targets


def _keep(assigned: TopicPartitions, quota: int, free: dict[UUID, set[int]]) -> TopicPartitions:
    """What a member keeps of its assignment, up to its quota; it is free no longer.

    Partitions that don't exist, or that a member before this one has kept, are not kept.
    """
    if sum(map(len, assigned.values())) <= quota and all(
        topic in free and mine <= free[topic] for topic, mine in assigned.items()
    ):
        kept = assigned
    else:
        cut: dict[UUID, frozenset[int]] = {}
        for topic in sorted(assigned.keys() & free.keys(), key=_bits):
            mine = frozenset(sorted(assigned[topic] & free[topic])[:quota])
            quota -= len(mine)
            if mine:
                cut[topic] = mine
        kept = cut
    for topic, partitions in kept.items():
        free[topic] -= partitions
    return kept


def _bits(topic: UUID) -> int:
    return topic.int
