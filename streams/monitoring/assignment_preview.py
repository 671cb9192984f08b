"""Preview which partitions each consumer of a group would get from one of Kafka's assignors.

Pure functions on what the brokers tell of a group, or on a plan of members and partitions. What
`coordinator.assignors` returns is what Kafka's class of the same name returns. Sticky assignors see
today's partitions as owned by their members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.assignors import cooperative_sticky, round_robin, sticky
from coordinator.assignors import range as ranges
from coordinator.assignors.subscriptions import (
    Assignment,
    ConsumerSubscription,
    Members,
    TopicPartition,
    Topics,
)
from streams.membership.consumer_group_description import ConsumerMember

_ASSIGNORS: Mapping[str, Callable[[Members, Topics], Assignment]] = {
    each.NAME: each.assign for each in (ranges, round_robin, sticky, cooperative_sticky)
}
ASSIGNORS = tuple(_ASSIGNORS)
"""The names of the assignors, as groups of the classic protocol show them."""
_GENERATION = 1


@dataclass(frozen=True)
class MemberPreview:
    """Shows what a member has now, what it would have, and what of it would come and go.

    Partitions are topics with the numbers of their partitions.
    """

    member: str
    instance_id: str | None
    now: dict[str, list[int]]
    then: dict[str, list[int]]
    gains: dict[str, list[int]]
    loses: dict[str, list[int]]


@dataclass(frozen=True)
class AssignmentPreview:
    """Shows what an assignor would give each member; `moved` counts partitions with other owners.

    `group` is null for a plan without a group.
    """

    group: str | None
    assignor: str
    moved: int
    members: list[MemberPreview]


def preview_assignment(
    group: str | None,
    members: Mapping[str, ConsumerMember],
    partition_counts: Mapping[str, int],
    assignor: str,
) -> AssignmentPreview:
    """Return what the assignor would give each member in the end, beside what it has now.

    `cooperative-sticky` leaves a partition that moves out of its first assignment, until its owner
    has given it up; the preview has the assignment after that. Racks are not looked at. Topics that
    are not in `partition_counts` are left out.
    """
    owned = {member: list(each.partitions) for member, each in members.items()}
    then = _assign_partitions(assignor, members, owned, partition_counts)
    if assignor == cooperative_sticky.NAME:
        then = _assign_partitions(assignor, members, then, partition_counts)
    owners = {partition: member for member, had in owned.items() for partition in had}
    previews = [
        _compare_partitions(member, members[member].instance_id, owned[member], then[member])
        for member in sorted(members)
    ]
    moved = sum(owners.get(p, member) != member for member, got in then.items() for p in got)
    return AssignmentPreview(group, assignor, moved, previews)


def _assign_partitions(
    assignor: str,
    members: Mapping[str, ConsumerMember],
    owned: Mapping[str, Sequence[TopicPartition]],
    partition_counts: Mapping[str, int],
) -> Assignment:
    """Return what the assignor gives members that own these partitions."""
    user_data: Callable[[str], bytes | None] = {
        sticky.NAME: lambda member: sticky.encode_user_data(owned[member], _GENERATION),
        cooperative_sticky.NAME: lambda _: cooperative_sticky.encode_user_data(_GENERATION),
    }.get(assignor, lambda _: None)
    subscriptions = {
        member: ConsumerSubscription(
            each.topics,
            user_data(member),
            owned=owned[member],
            generation=_GENERATION,
            instance_id=each.instance_id,
        )
        for member, each in members.items()
    }
    topics: Topics = {
        topic: [frozenset[str]()] * count for topic, count in partition_counts.items()
    }
    return _ASSIGNORS[assignor](subscriptions, topics)


def _compare_partitions(
    member: str,
    instance_id: str | None,
    now: Sequence[TopicPartition],
    then: Sequence[TopicPartition],
) -> MemberPreview:
    """Return a member's partitions before and after, and the difference, by topic."""
    before, after = set(now), set(then)
    return MemberPreview(
        member,
        instance_id,
        *(_group_by_topic(each) for each in (before, after, after - before, before - after)),
    )


def _group_by_topic(partitions: set[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        grouped.setdefault(topic, []).append(number)
    return grouped
