"""Decide ConsumerGroupHeartbeat: a member joins or reports changes, and learns its assignment.

The member is created or updated here; what follows for the group, and for the member in it, is
decided by `advance_member`. Most heartbeats change nothing: no record, and nothing is read but the
member itself.
Source: consumerGroupHeartbeat of GroupMetadataManager.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.advance import (
    GroupContext,
    TransientGroupState,
    advance_member,
)
from coordinator.groups.consumer.config import ConsumerGroupConfig
from coordinator.groups.consumer.effects import ConsumerTimer, SetMemberTimer
from coordinator.groups.consumer.reconcile import OwnedPartitions
from coordinator.groups.consumer.record_types import (
    ConsumerMemberForgotten,
    CurrentAssignmentForgotten,
    MemberState,
    PartitionEpochs,
    Record,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
)
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
)
from coordinator.groups.consumer.topics import TopicList
from coordinator.shard.decision import Decision

ReplacedMember: TypeAlias = ConsumerGroupMember

_STABLE = MemberState.STABLE  # every heartbeat compares with it, and an enum looks it up slowly


class ConsumerHeartbeat(NamedTuple):
    """Represents a ConsumerGroupHeartbeat request; a field is None if the member reports no change.

    `member_id` is made up by the caller for a member that joins without one; `has_generated_id`
    then.
    """

    group_id: str
    member_id: str
    epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: OwnedPartitions = None
    has_generated_id: bool = False

    @property
    def is_full_request(self) -> bool:
        """Return whether a heartbeat has all fields, as a member sends it first or after an error.

        Its answer has the assignment in any case.
        """
        return (
            self.rebalance_timeout_ms is not None
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )


class ConsumerHeartbeatAnswer(NamedTuple):
    """Represents the answer to a heartbeat; `assigned` None: the assignment hasn't changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: PartitionEpochs | None = None


def join_or_stay_in_group(
    group: ConsumerGroup, command: ConsumerHeartbeat, context: GroupContext
) -> Decision[Record, ConsumerHeartbeatAnswer]:
    """Decide a heartbeat of a member that joins or stays in a group.

    A group that doesn't exist yet is handed in empty, if the member joins.

    Raises Refused: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID (another member still has the instance id), FENCED_MEMBER_EPOCH,
    INVALID_REGULAR_EXPRESSION.
    """
    check_group_size(group, None if command.has_generated_id else command.member_id, context.config)
    member, replaced = _find_or_create_member(group, command)
    updated = _apply_reported_changes(member, command)
    step = advance_member(
        group,
        member,
        updated,
        None if replaced is None else replaced.member_id,
        command.owned,
        context,
        context.settings.session_timeout_ms,
    )
    advanced_member = step.response
    includes_assignment = (
        command.epoch == JOINING_EPOCH
        or command.is_full_request
        or advanced_member.assigned != member.assigned
    )
    answer = ConsumerHeartbeatAnswer(
        advanced_member.member_id,
        advanced_member.epoch,
        context.settings.heartbeat_interval_ms,
        advanced_member.assigned if includes_assignment else None,
    )
    if replaced is None:
        return Decision(step.records, answer, step.effects)
    replacement_records = build_replacement_records(group, replaced, member)
    return Decision([*replacement_records, *step.records], answer, step.effects)


def has_nothing_new(
    group: ConsumerGroup,
    command: ConsumerHeartbeat,
    transient_state: TransientGroupState | None,
    topics: TopicList,
) -> bool:
    """Return whether neither the member reports anything nor the group has anything for it.

    Nearly all heartbeats are such, and `decide_unchanged_heartbeat` decides them. For those of
    which this can't be said at a glance, such as a static member's, it is False.
    """
    member = group.members.get(command.member_id)
    return (
        member is not None
        and command.epoch == member.epoch == group.target_epoch == group.epoch
        and command.epoch > JOINING_EPOCH
        and command.owned is None
        and command.topics is None
        and command.regex is None
        and command.rebalance_timeout_ms is None
        and command.assignor is None
        and command.rack_id is None
        and command.instance_id is None
        and command.client_id == member.client_id
        and command.client_host == member.client_host
        and member.state is _STABLE
        and member.classic is None
        and transient_state is not None
        and transient_state.hashed_topics_version == topics.version
        and not group.regex_subscriber_counts
    )


@lru_cache(4_096)  # a member's decision is the same until it or its group changes
def decide_unchanged_heartbeat(
    member_id: str, epoch: int, session_timeout_ms: int, heartbeat_interval_ms: int
) -> Decision[Record, ConsumerHeartbeatAnswer]:
    """Decide a heartbeat with nothing new as `join_or_stay_in_group` does: its session restarts."""
    session = SetMemberTimer(ConsumerTimer.SESSION, member_id, session_timeout_ms)
    answer = ConsumerHeartbeatAnswer(member_id, epoch, heartbeat_interval_ms)
    return Decision((), answer, (session,))


def check_group_size(
    group: ConsumerGroup, member_id: str | None, config: ConsumerGroupConfig
) -> None:
    """Raise Refused (GROUP_MAX_SIZE_REACHED) if a new member would join a full group.

    `member_id` None: the member has no id yet.
    """
    if len(group.members) >= config.max_size and member_id not in group.members:
        raise Refused(
            Code.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {config.max_size} members.",
        )


# Who it is


def _find_or_create_member(
    group: ConsumerGroup, command: ConsumerHeartbeat
) -> tuple[ConsumerGroupMember, ReplacedMember | None]:
    """Return the member that sends a heartbeat, or a new one, and the member that it replaces.

    It replaces one if it is a static member that has come back under another id.
    """
    if command.epoch != JOINING_EPOCH:
        member = require_member(group, command.member_id, command.instance_id)
        _check_epoch(member, command)
        return member, None
    static_member = (
        None if command.instance_id is None else group.find_static_member(command.instance_id)
    )
    if static_member is None:
        return group.members.get(command.member_id) or ConsumerGroupMember(command.member_id), None
    if static_member.classic is None and static_member.epoch != AWAY_EPOCH:
        raise Refused(
            Code.UNRELEASED_INSTANCE_ID,
            f"Static member {command.member_id} with instance id {command.instance_id} cannot "
            f"join the group because the instance id is owned by {static_member.member_id} member.",
        )
    return replace_static_member(static_member, command.member_id), static_member


def require_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """Return the member that a request names, of either protocol, or raise Refused.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is not None:
        return require_static_member(group, member_id, instance_id)
    member = group.members.get(member_id)
    if member is None:
        raise Refused(
            Code.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )
    return member


def require_static_member(
    group: ConsumerGroup, member_id: str, instance_id: str
) -> ConsumerGroupMember:
    """Return the member that has both an instance id and a member id, or raise Refused.

    Raises Refused: UNKNOWN_MEMBER_ID if there is none, FENCED_INSTANCE_ID if it has another member
    id.
    """
    static_member = group.find_static_member(instance_id)
    if static_member is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static_member.member_id != member_id:
        raise Refused(
            Code.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{static_member.member_id}.",
        )
    return static_member


def _check_epoch(member: ConsumerGroupMember, command: ConsumerHeartbeat) -> None:
    """Raise Refused unless the request has the member's epoch, or the one before it.

    A member may be one epoch behind if it has no more than it is to have, as an answer was lost.

    Raises Refused: FENCED_MEMBER_EPOCH.
    """
    if command.epoch == member.epoch:
        return
    is_ahead = command.epoch > member.epoch
    if (
        not is_ahead
        and command.epoch == member.previous_epoch
        and _owns_only_assigned(command.owned, member.assigned)
    ):
        return
    raise Refused(
        Code.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_ahead else 'smaller'} member epoch "
        f"({command.epoch}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _owns_only_assigned(owned: OwnedPartitions, assigned: PartitionEpochs) -> bool:
    """Return whether a member reports no other partitions than those assigned to it."""
    if owned is None:
        return False
    return all(
        topic_id in assigned and mine <= assigned[topic_id].keys()
        for topic_id, mine in owned.items()
    )


def replace_static_member(old_member: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
    """Return a static member under its new id, which has yet to join."""
    return replace(
        old_member, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH
    )


def build_replacement_records(
    group: ConsumerGroup, old_member: ConsumerGroupMember, member: ConsumerGroupMember
) -> list[Record]:
    """Return the records that move all that a static member had to its new id."""
    group_id = group.group_id
    target = group.target_assignment_of(old_member.member_id, None)
    return [
        *build_member_tombstones(group_id, old_member.member_id),
        member.to_member_record(group_id),
        TargetAssignmentSaved(group_id, member.member_id, target),
        member.to_assignment_record(group_id),
    ]


def build_member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones that end a member, in the order that Kafka needs."""
    return [
        CurrentAssignmentForgotten(group_id, member_id),
        TargetAssignmentForgotten(group_id, member_id),
        ConsumerMemberForgotten(group_id, member_id),
    ]


# What it says

REPORTED_FIELDS = (
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "assignor",
    "topics",
    "regex",
    "client_id",
    "client_host",
)


def _apply_reported_changes(
    member: ConsumerGroupMember, command: ConsumerHeartbeat
) -> ConsumerGroupMember:
    """Return the member with the fields that the request reports; the very same if none is new."""
    changed_fields: dict[str, Any] = {}
    for name in REPORTED_FIELDS:
        value = getattr(command, name)
        if value is not None and value != getattr(member, name):
            changed_fields[name] = value
    if member.classic is not None:
        changed_fields["classic"] = None
    return replace(member, **changed_fields) if changed_fields else member
