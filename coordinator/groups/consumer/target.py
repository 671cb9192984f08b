"""Compute the target assignment of a consumer group by an assignor of the broker.

It is computed at a heartbeat, when the group's epoch is above the target's, but not more often than
the assignment interval allows: in between members go on with the target that there is.
Source: TargetAssignmentBuilder, and maybeUpdateTargetAssignment of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from coordinator.assignors.server import range as range_assignor
from coordinator.assignors.server import uniform
from coordinator.assignors.server.subscription import MemberSubscription
from coordinator.groups.consumer.record_types import (
    Record,
    TargetAssignmentSaved,
    TargetEpochSaved,
    TopicPartitions,
)
from coordinator.groups.consumer.state import NO_TARGET, ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import TopicList, find_topic_ids

AssignFunction = Callable[
    [Mapping[str, MemberSubscription], Mapping[UUID, int]], dict[str, TopicPartitions]
]
ASSIGNORS: Mapping[str, AssignFunction] = {
    uniform.NAME: uniform.assign,
    range_assignor.NAME: range_assignor.assign,
}


def has_assignment_interval_passed(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Return whether the assignment interval has passed since the last target, or there is none."""
    return (
        not group.assigned_at_ms or not interval_ms or now_ms >= group.assigned_at_ms + interval_ms
    )


def select_assignor(
    group: ConsumerGroup,
    default_assignor: str,
    old_member: ConsumerGroupMember | None = None,
    new_member: ConsumerGroupMember | None = None,
) -> str:
    """Return the assignor that most members ask for, once `old_member` has become `new_member`.

    On a tie it is `uniform`, as with Kafka. One that this broker doesn't have, in records of
    another, isn't counted.
    """
    votes = dict(group.assignor_votes)
    if old_member is not None and old_member.assignor is not None:
        votes[old_member.assignor] -= 1
    if new_member is not None and new_member.assignor is not None:
        votes[new_member.assignor] = votes.get(new_member.assignor, 0) + 1
    asked = {name: count for name, count in votes.items() if count and name in ASSIGNORS}
    return max(asked, key=lambda name: (asked[name], name)) if asked else default_assignor


def count_moved_partitions(group: ConsumerGroup, target_records: Iterable[Record]) -> int:
    """Return how many partitions records of a new target take from members that had them."""
    nothing: frozenset[int] = frozenset()
    return sum(
        len(partitions - record.partitions.get(topic_id, nothing))
        for record in target_records
        if isinstance(record, TargetAssignmentSaved)
        for topic_id, partitions in group.target_assignment.get(record.member_id, NO_TARGET).items()
    )


class ComputedTarget(NamedTuple):
    """Represents a new target assignment: its records, and what one member has of it."""

    records: list[Record]
    of_member: TopicPartitions


def compute_target_assignment(
    group: ConsumerGroup,
    epoch: int,
    updated: ConsumerGroupMember,
    replaced_member_id: str | None,
    assignor: str,
    topics: TopicList,
    now_ms: int,
) -> ComputedTarget:
    """Return the records of this epoch's target assignment, and the updated member's part of it.

    `replaced_member_id`: the id of the member whose place, and target, the updated one takes.
    """
    members = {**group.members, updated.member_id: updated}
    inherited_member_id = updated.member_id
    if replaced_member_id is not None and replaced_member_id != updated.member_id:
        members.pop(replaced_member_id, None)
        inherited_member_id = replaced_member_id
    ids: dict[tuple[frozenset[str], str | None], frozenset[UUID]] = {}
    subscriptions = {}
    for member_id, member in members.items():
        key = (member.topics, member.regex)
        subscribed = ids.get(key)
        if subscribed is None:
            subscribed = ids[key] = find_topic_ids(group.subscribed_topics_of(member), topics)
        assigned = group.target_assignment.get(
            inherited_member_id if member is updated else member_id, NO_TARGET
        )
        subscriptions[member_id] = MemberSubscription(
            subscribed, assigned, member.rack_id, member.instance_id
        )
    counts = {
        topic.id: len(topic.partitions)
        for topic in map(topics.by_id, frozenset().union(*ids.values()))
        if topic is not None
    }
    targets = ASSIGNORS[assignor](subscriptions, counts)
    records: list[Record] = []
    for member_id, target in targets.items():
        previous_target = group.target_assignment.get(member_id)
        if previous_target is None or (target is not previous_target and target != previous_target):
            records.append(TargetAssignmentSaved(group.group_id, member_id, target))
    records.append(TargetEpochSaved(group.group_id, epoch, now_ms))
    return ComputedTarget(records, targets[updated.member_id])
