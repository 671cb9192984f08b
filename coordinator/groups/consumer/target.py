"""The target assignment: an assignor of the server gives every member its share.

It is computed at a heartbeat, when the group's epoch is above the target's, but not more often than
the assignment interval allows: in between members go on with the target that there is.
Source: TargetAssignmentBuilder, and maybeUpdateTargetAssignment of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from coordinator.assignors.server import range as range_assignor
from coordinator.assignors.server import uniform
from coordinator.assignors.server.subscription import MemberSubscription
from coordinator.groups.consumer.facts import (
    Record,
    TargetAssignmentSaved,
    TargetEpochSaved,
    TopicPartitions,
)
from coordinator.groups.consumer.state import NO_TARGET, ConsumerGroup, Member
from coordinator.groups.consumer.topics import TopicList, ids_of

Assign = Callable[
    [Mapping[str, MemberSubscription], Mapping[UUID, int]], dict[str, TopicPartitions]
]
ASSIGNORS: Mapping[str, Assign] = {
    uniform.NAME: uniform.assign,
    range_assignor.NAME: range_assignor.assign,
}


def may_assign(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """The last target is old enough, or there is none."""
    return not group.assigned_ms or not interval_ms or now_ms >= group.assigned_ms + interval_ms


def preferred_assignor(
    group: ConsumerGroup, default: str, old: Member | None = None, new: Member | None = None
) -> str:
    """What most members ask for, once `old` has become `new`; on a tie `uniform`, as with Kafka.
    One that this broker doesn't have, in records of another, isn't asked for."""
    votes = dict(group.assignor_votes)
    if old is not None and old.assignor is not None:
        votes[old.assignor] -= 1
    if new is not None and new.assignor is not None:
        votes[new.assignor] = votes.get(new.assignor, 0) + 1
    asked = {name: count for name, count in votes.items() if count and name in ASSIGNORS}
    return max(asked, key=lambda name: (asked[name], name)) if asked else default


def assign_target(
    group: ConsumerGroup,
    epoch: int,
    updated: Member,
    replaced: str | None,
    assignor: str,
    topics: TopicList,
    now_ms: int,
) -> tuple[list[Record], TopicPartitions]:
    """The records that make this epoch's target, and what is the updated member's in it.

    `replaced`: the id of the member whose place the updated one takes, with its share.
    """
    members = {**group.members, updated.member_id: updated}
    inherited = updated.member_id
    if replaced is not None and replaced != updated.member_id:
        members.pop(replaced, None)
        inherited = replaced
    ids: dict[tuple[frozenset[str], str | None], frozenset[UUID]] = {}
    wanted = {}
    for member_id, member in members.items():
        key = (member.topics, member.regex)
        subscribed = ids.get(key)
        if subscribed is None:
            subscribed = ids[key] = ids_of(group.topics_of(member), topics)
        has = group.target.get(inherited if member is updated else member_id, NO_TARGET)
        wanted[member_id] = MemberSubscription(subscribed, has, member.rack_id, member.instance_id)
    counts = {
        topic.id: len(topic.partitions)
        for topic in map(topics.by_id, frozenset().union(*ids.values()))
        if topic is not None
    }
    targets = ASSIGNORS[assignor](wanted, counts)
    records: list[Record] = []
    for member_id, target in targets.items():
        before = group.target.get(member_id)
        if before is None or (target is not before and target != before):
            records.append(TargetAssignmentSaved(group.group_id, member_id, target))
    records.append(TargetEpochSaved(group.group_id, epoch, now_ms))
    return records, targets[updated.member_id]
