"""Decide that a member leaves, for good or to come back, or is fenced."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from coordinator.groups.consumer.effects import (
    CancelMemberTimers,
    CountEpochSettled,
    CountEpochStart,
)
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.heartbeat import build_member_tombstones
from coordinator.groups.consumer.record_types import (
    ConsumerGroupSaved,
    Record,
    RegexForgotten,
    TargetEpochSaved,
)
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    NO_PARTITIONS,
    ConsumerGroup,
    ConsumerGroupMember,
)
from coordinator.groups.consumer.topics import TopicList, compute_metadata_hash
from coordinator.shard.decision import Decision


def leave_temporarily(group: ConsumerGroup, member: ConsumerGroupMember) -> Decision[Record, None]:
    """Decide that a static member leaves to come back."""
    return Decision([_mark_away(member).to_assignment_record(group.group_id)], None)


def _mark_away(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """Return a static member as one that is away and keeps its partitions for its return.

    What the member that comes back commits counts from the beginning, hence assignment epoch 0.
    """
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return replace(member, epoch=AWAY_EPOCH, assigned=assigned, revoking=NO_PARTITIONS)


def fence_members(
    group: ConsumerGroup,
    members: Collection[ConsumerGroupMember],
    cause: GroupEpochCause,
    topics: TopicList,
) -> Decision[Record, None]:
    """Decide that members are removed from their group, as they have left or been silent."""
    member_ids = tuple(member.member_id for member in members)
    return Decision(
        build_fencing_records(group, members, topics),
        None,
        (
            CancelMemberTimers(member_ids),
            CountEpochStart(cause, member_ids),
            CountEpochSettled(),
        ),
    )


def build_fencing_records(
    group: ConsumerGroup, members: Collection[ConsumerGroupMember], topics: TopicList
) -> list[Record]:
    """Return the records that fence members, free their partitions and raise the epoch.

    A group that has no members then has its target assignment, which is empty, at that epoch.
    """
    group_id = group.group_id
    records: list[Record] = []
    names: dict[str, int] = dict(group.subscriber_counts)
    regexes: dict[str, int] = dict(group.regex_subscriber_counts)
    for member in members:
        records += build_member_tombstones(group_id, member.member_id)
        for topic in member.topics:
            names[topic] -= 1
        if member.regex:
            regexes[member.regex] -= 1
    records += [
        RegexForgotten(group_id, regex)
        for regex, subscriber_count in regexes.items()
        if not subscriber_count
    ]
    subscribed = {topic for topic, subscriber_count in names.items() if subscriber_count}
    for regex, resolution in group.resolved_regexes.items():
        if regexes.get(regex, 1):
            subscribed |= resolution.topics
    records.append(
        ConsumerGroupSaved(group_id, group.epoch + 1, compute_metadata_hash(subscribed, topics))
    )
    if len(members) == len(group.members):
        records.append(TargetEpochSaved(group_id, group.epoch + 1))
    return records
