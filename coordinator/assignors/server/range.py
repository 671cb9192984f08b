"""Assign like the `range` assignor of KIP-848: each member gets the same range of every topic.

For each topic the subscribers, in order, get partitions that follow one another; the first ones get
one more where the number doesn't divide. So topics with as many partitions and the same subscribers
are co-partitioned: whoever has partition 3 of one has partition 3 of the other. Static members come
first, by instance id, so that the ranges of those who return don't shift; the others follow by
member id. Nothing else is sticky. The rule is that of Kafka's RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from coordinator.assignors.server.subscription import MemberSubscription, TopicPartitions

NAME = "range"


def assign(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, TopicPartitions]:
    """Return the target assignment of each member: consecutive partitions of each topic.

    See the package for the contract.
    """
    ordered = sorted(members.items(), key=_rank_static_members_first)
    targets: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic, count in partition_counts.items():
        subscribers = [member_id for member_id, member in ordered if topic in member.topics]
        if not subscribers:
            continue
        range_size, larger_range_count = divmod(count, len(subscribers))
        start = 0
        for turn, member_id in enumerate(subscribers[:count]):
            end = start + range_size + (turn < larger_range_count)
            targets[member_id][topic] = frozenset(range(start, end))
            start = end
    return {
        member_id: member.assigned if targets[member_id] == member.assigned else targets[member_id]
        for member_id, member in members.items()
    }


def _rank_static_members_first(item: tuple[str, MemberSubscription]) -> tuple[bool, str]:
    member_id, member = item
    instance_id = member.instance_id
    return (True, member_id) if instance_id is None else (False, instance_id)
