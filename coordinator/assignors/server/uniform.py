"""Assign like the `uniform` assignor of KIP-848: equally many partitions each, and few move.

Where all members are subscribed to the same topics, each gets the same number within one, and only
what is over a member's quota moves (here). Where subscriptions differ, see `balancing`. The rule is
that of Kafka's UniformAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from uuid import UUID

from coordinator.assignors.server.balancing import balance_partitions
from coordinator.assignors.server.subscription import MemberSubscription, TopicPartitions

NAME = "uniform"


def assign(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, TopicPartitions]:
    """Return the target assignment of each member, whose sizes differ by one partition at most.

    Where subscriptions differ, sizes may differ more. See the package for the contract.
    """
    existing = {
        topics: topics.intersection(partition_counts)
        for topics in {member.topics for member in members.values()}
    }
    distinct_subscriptions = set(existing.values())
    if len(distinct_subscriptions) > 1:
        return balance_partitions(
            {member_id: existing[member.topics] for member_id, member in members.items()},
            {member_id: member.assigned for member_id, member in members.items()},
            partition_counts,
        )
    return _assign_by_quota(
        members,
        {topic: partition_counts[topic] for topics in distinct_subscriptions for topic in topics},
    )


def _assign_by_quota(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, TopicPartitions]:
    """Return the targets of members that are all subscribed to the same topics.

    Members give up what is over their quota; those below it take what is free, topic by topic.
    """
    if not members:
        return {}
    base, larger_quota_count = divmod(sum(partition_counts.values()), len(members))
    free = {
        topic: set(range(partition_counts[topic]))
        for topic in sorted(partition_counts, key=_topic_sort_key)
    }
    targets: dict[str, TopicPartitions] = {}
    wanting_members: list[tuple[str, int]] = []
    for waiting, member_id in zip(range(len(members), 0, -1), sorted(members), strict=True):
        assigned = members[member_id].assigned
        kept = _keep_within_quota(assigned, base + (larger_quota_count > 0), free)
        count = sum(map(len, kept.values()))
        # A larger quota is for those who fill it, and in the end for whoever is left.
        quota = base + (count > base or waiting <= larger_quota_count)
        larger_quota_count -= quota - base
        if count < quota:
            wanting_members.append((member_id, quota - count))
        targets[member_id] = kept
    free_partitions = ((topic, partition) for topic in free for partition in sorted(free[topic]))
    for member_id, missing_count in wanting_members:
        taken = {topic: set(kept) for topic, kept in targets[member_id].items()}
        for topic, partition in islice(free_partitions, missing_count):
            taken.setdefault(topic, set()).add(partition)
        targets[member_id] = {topic: frozenset(mine) for topic, mine in taken.items()}
    return targets


def _keep_within_quota(
    assigned: TopicPartitions, quota: int, free: dict[UUID, set[int]]
) -> TopicPartitions:
    """Return the partitions that a member keeps, up to its quota, and remove them from `free`.

    Partitions that don't exist, or that a member before this one has kept, are not kept.
    """
    if sum(map(len, assigned.values())) <= quota and all(
        topic in free and topic_partitions <= free[topic]
        for topic, topic_partitions in assigned.items()
    ):
        kept = assigned
    else:
        reduced: dict[UUID, frozenset[int]] = {}
        for topic in sorted(assigned.keys() & free.keys(), key=_topic_sort_key):
            topic_partitions = frozenset(sorted(assigned[topic] & free[topic])[:quota])
            quota -= len(topic_partitions)
            if topic_partitions:
                reduced[topic] = topic_partitions
        kept = reduced
    for topic, partitions in kept.items():
        free[topic] -= partitions
    return kept


def _topic_sort_key(topic: UUID) -> int:
    return topic.int
