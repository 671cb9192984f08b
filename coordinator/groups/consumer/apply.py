"""Apply the records of consumer groups: the one place that changes a ConsumerGroup.

A log that is loaded may have been compacted, so that in the middle of it a partition is given to a
member while the record that took it from another is gone: the later record holds. Live, that would
be two owners in one epoch, and stops the broker. Two who have been loaded as such (by a log of
another broker, which is not ours to doubt) go on until the target takes it from one of them.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.consumer.record_types import (
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
    ConsumerGroupMember,
    ResolvedRegex,
)
from coordinator.shard.decision import LogRecordOrigin


def apply_record(groups: dict[str, ConsumerGroup], record: Record, origin: LogRecordOrigin) -> None:
    """Change the consumer groups of a shard as a record says.

    A tombstone of a group that doesn't exist changes nothing.
    """
    group = groups.get(record.group_id)
    if group is None:
        if isinstance(record, TOMBSTONES):
            return
        group = groups[record.group_id] = ConsumerGroup(record.group_id)
    match record:
        case ConsumerGroupForgotten():
            if group.members and not origin.replaying:
                raise AssertionError(f"{group.group_id} ends with {len(group.members)} members")
            del groups[group.group_id]
        case ConsumerMemberSaved():
            _store_member_in_indexes(group, record)
        case ConsumerMemberForgotten():
            _remove_member(group, record.member_id)
        case CurrentAssignmentSaved():
            _store_assignment_and_owners(group, record, origin)
        case CurrentAssignmentForgotten():
            _clear_current_assignment(group, record.member_id)
        case TargetAssignmentSaved():
            group.target_assignment[record.member_id] = record.partitions
        case TargetAssignmentForgotten():
            group.target_assignment.pop(record.member_id, None)
        case _:
            _apply_record_of_whole_group(group, record)


def _apply_record_of_whole_group(group: ConsumerGroup, record: Record) -> None:
    """Apply a record that is about the group as a whole."""
    match record:
        case ConsumerGroupSaved():
            group.epoch, group.metadata_hash = record.epoch, record.metadata_hash
        case TargetEpochSaved():
            group.target_epoch, group.assigned_at_ms = record.epoch, record.assigned_at_ms
        case TargetEpochForgotten():
            group.target_epoch, group.assigned_at_ms = -1, 0
        case RegexResolved():
            topics = frozenset(record.topics)
            group.resolved_regexes[record.regex] = ResolvedRegex(
                topics, record.topics_version, record.resolved_at_ms
            )
        case RegexForgotten():
            group.resolved_regexes.pop(record.regex, None)
        case SubscriptionMetadataSaved():
            group.has_subscription_metadata = True
        case SubscriptionMetadataForgotten():
            group.has_subscription_metadata = False


TOMBSTONES = (
    ConsumerGroupForgotten,
    SubscriptionMetadataForgotten,
    ConsumerMemberForgotten,
    TargetEpochForgotten,
    TargetAssignmentForgotten,
    CurrentAssignmentForgotten,
    RegexForgotten,
)


# Members


def _store_member_in_indexes(group: ConsumerGroup, record: ConsumerMemberSaved) -> None:
    """Store what a member said of itself, and keep the group's indexes in step with it."""
    old_member = group.members.get(record.member_id)
    new_member = replace(
        old_member or ConsumerGroupMember(record.member_id),
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
        _add_member_to_counts(group, old_member, -1)
        _remove_static_member(group, old_member)
    _add_member_to_counts(group, new_member, 1)
    group.members[new_member.member_id] = new_member
    if new_member.instance_id is not None:
        group.static_members[new_member.instance_id] = new_member.member_id


def _remove_member(group: ConsumerGroup, member_id: str) -> None:
    old = group.members.pop(member_id, None)
    if old is None:
        return
    _add_member_to_counts(group, old, -1)
    _release_partitions(group, old)
    _remove_static_member(group, old)


def _remove_static_member(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Remove a static member's instance id, unless another member has it by now."""
    instance_id = member.instance_id
    if instance_id is not None and group.static_members.get(instance_id) == member.member_id:
        del group.static_members[instance_id]


def _add_member_to_counts(group: ConsumerGroup, member: ConsumerGroupMember, delta: int) -> None:
    """Add a member to the group's counts, or take it from them, by a delta of 1 or -1."""
    for topic in member.topics:
        _add_to_count(group.subscriber_counts, topic, delta)
    if member.regex:
        _add_to_count(group.regex_subscriber_counts, member.regex, delta)
    if member.assignor is not None:
        _add_to_count(group.assignor_votes, member.assignor, delta)
    if member.classic is not None:
        group.classic_member_count += delta


def _add_to_count(counts: dict[str, int], key: str, delta: int) -> None:
    count = counts.get(key, 0) + delta
    if count:
        counts[key] = count
    else:
        del counts[key]


# Current assignments


def _store_assignment_and_owners(
    group: ConsumerGroup, record: CurrentAssignmentSaved, origin: LogRecordOrigin
) -> None:
    """Store a member's current assignment, and make it the owner of those partitions."""
    old_member = group.members.get(record.member_id) or ConsumerGroupMember(record.member_id)
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
        _release_partitions(group, old_member)
        for topics in (new_member.assigned, new_member.revoking):
            set_partition_owner(group, old_member, topics, origin)
    group.members[new_member.member_id] = new_member


def _clear_current_assignment(group: ConsumerGroup, member_id: str) -> None:
    """Clear a member's current assignment and epoch, and release its partitions."""
    old = group.members.get(member_id)
    if old is None:
        return
    _release_partitions(group, old)
    group.members[member_id] = replace(
        old,
        epoch=LEFT_EPOCH,
        previous_epoch=LEFT_EPOCH,
        assigned=NO_PARTITIONS,
        revoking=NO_PARTITIONS,
    )


def set_partition_owner(
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    topics: PartitionEpochs,
    origin: LogRecordOrigin,
) -> None:
    """Make a member the owner of partitions that it may have had before, or that nobody has.

    Raises AssertionError if another member has one, unless the log is being loaded.
    """
    for topic_id, epochs in topics.items():
        owners = group.owners.setdefault(topic_id, {})
        for partition in epochs:
            owner = owners.get(partition)
            if owner is None or origin.replaying:
                owners[partition] = member.member_id
            elif not member.has_partition(topic_id, partition):
                raise AssertionError(
                    f"{group.group_id}: {topic_id}-{partition} is given to {member.member_id}, "
                    f"and {owner} has it"
                )


def _release_partitions(group: ConsumerGroup, member: ConsumerGroupMember) -> None:
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
