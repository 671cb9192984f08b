"""Apply the records of consumer groups: the one place that changes a ConsumerGroup.

A log that is loaded may have been compacted, so that in the middle of it a partition is given to a
member while the record that took it from another is gone: the later record holds. Live, that would
be two owners in one epoch, and stops the broker. Two who have been loaded as such (by a log of
another broker, which is not ours to doubt) go on until the target takes it from one of them.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.consumer.facts import (
    ConsumerGroupForgotten,
    ConsumerGroupSaved,
    ConsumerMemberForgotten,
    ConsumerMemberSaved,
    CurrentAssignmentForgotten,
    CurrentAssignmentSaved,
    PartitionEpochs,
    Record,
    RegexForgotten,
    RegexResolved,
    SubscriptionMetadataForgotten,
    SubscriptionMetadataSaved,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
    TargetEpochForgotten,
    TargetEpochSaved,
)
from coordinator.groups.consumer.state import (
    LEFT_EPOCH,
    NO_PARTITIONS,
    ConsumerGroup,
    Member,
    ResolvedRegex,
)
from coordinator.shard.decision import Origin


def apply(groups: dict[str, ConsumerGroup], record: Record, origin: Origin) -> None:
    """Change the consumer groups of a shard as a record says.

    A tombstone of a group that doesn't exist changes nothing.
    """
    group = groups.get(record.group_id)
    if group is None:
        if isinstance(record, ENDINGS):
            return
        group = groups[record.group_id] = ConsumerGroup(record.group_id)
    match record:
        case ConsumerGroupForgotten():
            if group.members and not origin.replaying:
                raise AssertionError(f"{group.group_id} ends with {len(group.members)} members")
            del groups[group.group_id]
        case ConsumerMemberSaved():
            _describe(group, record)
        case ConsumerMemberForgotten():
            _remove(group, record.member_id)
        case CurrentAssignmentSaved():
            _assign(group, record, origin)
        case CurrentAssignmentForgotten():
            _unassign(group, record.member_id)
        case TargetAssignmentSaved():
            group.target[record.member_id] = record.partitions
        case TargetAssignmentForgotten():
            group.target.pop(record.member_id, None)
        case _:
            _apply_to_group(group, record)


def _apply_to_group(group: ConsumerGroup, record: Record) -> None:
    """Apply a record that is about the group as a whole."""
    match record:
        case ConsumerGroupSaved():
            group.epoch, group.metadata_hash = record.epoch, record.metadata_hash
        case TargetEpochSaved():
            group.target_epoch, group.assigned_ms = record.epoch, record.assigned_ms
        case TargetEpochForgotten():
            group.target_epoch, group.assigned_ms = -1, 0
        case RegexResolved():
            topics = frozenset(record.topics)
            group.resolved[record.regex] = ResolvedRegex(topics, record.version, record.resolved_ms)
        case RegexForgotten():
            group.resolved.pop(record.regex, None)
        case SubscriptionMetadataSaved():
            group.has_subscription_metadata = True
        case SubscriptionMetadataForgotten():
            group.has_subscription_metadata = False


ENDINGS = (
    ConsumerGroupForgotten,
    SubscriptionMetadataForgotten,
    ConsumerMemberForgotten,
    TargetEpochForgotten,
    TargetAssignmentForgotten,
    CurrentAssignmentForgotten,
    RegexForgotten,
)


# Members


def _describe(group: ConsumerGroup, record: ConsumerMemberSaved) -> None:
    """Store what a member said of itself, and keep the group's indexes in step with it."""
    old_member = group.members.get(record.member_id)
    new_member = replace(
        old_member or Member(record.member_id),
        instance_id=record.instance_id,
        rack_id=record.rack_id,
        client_id=record.client_id,
        client_host=record.client_host,
        topics=frozenset(record.topics),
        regex=record.regex,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        assignor=record.assignor,
        classic=record.classic,
    )
    if old_member is not None:
        _count(group, old_member, -1)
        _forget_instance(group, old_member)
    _count(group, new_member, 1)
    group.members[new_member.member_id] = new_member
    if new_member.instance_id is not None:
        group.static_members[new_member.instance_id] = new_member.member_id


def _remove(group: ConsumerGroup, member_id: str) -> None:
    old = group.members.pop(member_id, None)
    if old is None:
        return
    _count(group, old, -1)
    _release(group, old)
    _forget_instance(group, old)


def _forget_instance(group: ConsumerGroup, member: Member) -> None:
    """Remove a static member's instance id, unless another member has it by now."""
    instance_id = member.instance_id
    if instance_id is not None and group.static_members.get(instance_id) == member.member_id:
        del group.static_members[instance_id]


def _count(group: ConsumerGroup, member: Member, by: int) -> None:
    """Add a member to the group's counts, or take it from them, by a delta of 1 or -1."""
    for topic in member.topics:
        _add(group.subscribers, topic, by)
    if member.regex:
        _add(group.regex_subscribers, member.regex, by)
    if member.assignor is not None:
        _add(group.assignor_votes, member.assignor, by)
    if member.classic is not None:
        group.classic_members += by


def _add(counts: dict[str, int], key: str, by: int) -> None:
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        del counts[key]


# Current assignments


def _assign(group: ConsumerGroup, record: CurrentAssignmentSaved, origin: Origin) -> None:
    """Store a member's current assignment, and make it the owner of those partitions."""
    old_member = group.members.get(record.member_id) or Member(record.member_id)
    new_member = replace(
        old_member,
        epoch=record.epoch,
        previous_epoch=record.previous_epoch,
        state=record.state,
        assigned=record.assigned,
        revoking=record.revoking,
    )
    if (
        new_member.assigned is not old_member.assigned
        or new_member.revoking is not old_member.revoking
    ):
        _release(group, old_member)
        for topics in (new_member.assigned, new_member.revoking):
            _take(group, old_member, topics, origin)
    group.members[new_member.member_id] = new_member


def _unassign(group: ConsumerGroup, member_id: str) -> None:
    """Clear a member's current assignment and epoch, and release its partitions."""
    old = group.members.get(member_id)
    if old is None:
        return
    _release(group, old)
    group.members[member_id] = replace(
        old,
        epoch=LEFT_EPOCH,
        previous_epoch=LEFT_EPOCH,
        assigned=NO_PARTITIONS,
        revoking=NO_PARTITIONS,
    )


def _take(group: ConsumerGroup, old: Member, topics: PartitionEpochs, origin: Origin) -> None:
    """Make a member the owner of partitions that it may have had before, or that nobody has.

    Raises AssertionError if another member has one, unless the log is being loaded.
    """
    for topic_id, epochs in topics.items():
        owners = group.owners.setdefault(topic_id, {})
        for partition in epochs:
            owner = owners.get(partition)
            if owner is None or origin.replaying:
                owners[partition] = old.member_id
            elif not old.has(topic_id, partition):
                raise AssertionError(
                    f"{group.group_id}: {topic_id}-{partition} is given to {old.member_id}, "
                    f"and {owner} has it"
                )


def _release(group: ConsumerGroup, member: Member) -> None:
    """Remove a member as the owner of partitions, where it still is."""
    for topics in (member.assigned, member.revoking):
        for topic_id, epochs in topics.items():
            owners = group.owners.get(topic_id)
            if owners is None:
                continue
            for partition in epochs:
                if owners.get(partition) == member.member_id:
                    del owners[partition]
            if not owners:
                del group.owners[topic_id]
