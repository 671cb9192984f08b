"""Decide ConsumerGroupHeartbeat: a member joins or reports changes, and learns its assignment.

The member is created or updated here; what follows for the group, and for the member in it, is
decided by `advance_member`. Most heartbeats change nothing: no record, and nothing is read but the
member itself.
Source: consumerGroupHeartbeat of GroupMetadataManager.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.advance import Step, Surroundings, advance
from coordinator.groups.consumer.config import ConsumerGroupConfig
from coordinator.groups.consumer.facts import (
    ConsumerMemberForgotten,
    CurrentAssignmentForgotten,
    PartitionEpochs,
    Record,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
)
from coordinator.groups.consumer.reconcile import Owned
from coordinator.groups.consumer.state import AWAY_EPOCH, JOINING_EPOCH, ConsumerGroup, Member


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
    owned: Owned = None
    is_nameless: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the request has all fields, as after an error.

        Its answer has the assignment in any case.
        """
        return (
            self.rebalance_timeout_ms is not None
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )


class HeartbeatAnswer(NamedTuple):
    """Represents the answer to a heartbeat; `assigned` None: the assignment hasn't changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: PartitionEpochs | None = None


class Beat(NamedTuple):
    """Holds a heartbeat's records, its answer, and what follows once the records are written."""

    records: list[Record]
    answer: HeartbeatAnswer
    step: Step


def heartbeat(group: ConsumerGroup, command: ConsumerHeartbeat, around: Surroundings) -> Beat:
    """Decide a heartbeat of a member that joins or stays in a group.

    A group that doesn't exist yet is handed in empty, if the member joins.

    Raises Refused: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID (another member still has the instance id), FENCED_MEMBER_EPOCH,
    INVALID_REGULAR_EXPRESSION.
    """
    records: list[Record] = []
    check_room(group, None if command.is_nameless else command.member_id, around.config)
    member, replaced_member_id = _find(group, command, records)
    updated = _updated(member, command)
    step = advance(group, member, updated, replaced_member_id, command.owned, around, records)
    advanced_member = step.member
    includes_assignment = (
        command.epoch == JOINING_EPOCH
        or command.is_full
        or advanced_member.assigned != member.assigned
    )
    answer = HeartbeatAnswer(
        advanced_member.member_id,
        advanced_member.epoch,
        around.settings.heartbeat_interval_ms,
        advanced_member.assigned if includes_assignment else None,
    )
    return Beat(records, answer, step)


def check_room(group: ConsumerGroup, member_id: str | None, config: ConsumerGroupConfig) -> None:
    """Raise Refused if a newcomer joins a group that is full.

    `member_id` None: the newcomer has no id yet.

    Raises Refused: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= config.max_size and member_id not in group.members:
        raise Refused(
            Code.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {config.max_size} members.",
        )


# Who it is


def _find(
    group: ConsumerGroup, command: ConsumerHeartbeat, records: list[Record]
) -> tuple[Member, str | None]:
    """Return the member that sends a heartbeat, or a new one, and the id of the one it replaces.

    It replaces one if it is a static member that has come back under another id.
    """
    if command.epoch != JOINING_EPOCH:
        member = member_named(group, command.member_id, command.instance_id)
        _check_epoch(member, command)
        return member, None
    static_member = (
        None if command.instance_id is None else group.static_member(command.instance_id)
    )
    if static_member is None:
        return group.members.get(command.member_id) or Member(command.member_id), None
    if static_member.classic is None and static_member.epoch != AWAY_EPOCH:
        raise Refused(
            Code.UNRELEASED_INSTANCE_ID,
            f"Static member {command.member_id} with instance id {command.instance_id} cannot "
            f"join the group because the instance id is owned by {static_member.member_id} member.",
        )
    return replace_member(group, static_member, command.member_id, records), static_member.member_id


def member_named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Return the member of either protocol that a request names.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is not None:
        return check_instance(group, member_id, instance_id)
    member = group.members.get(member_id)
    if member is None:
        raise Refused(
            Code.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )
    return member


def check_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """Return the member that has an instance id.

    Raises Refused: UNKNOWN_MEMBER_ID if there is none, FENCED_INSTANCE_ID if it has another member
    id.
    """
    static_member = group.static_member(instance_id)
    if static_member is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static_member.member_id != member_id:
        raise Refused(
            Code.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{static_member.member_id}.",
        )
    return static_member


def _check_epoch(member: Member, command: ConsumerHeartbeat) -> None:
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
        and _has_no_more_than(command.owned, member.assigned)
    ):
        return
    raise Refused(
        Code.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_ahead else 'smaller'} member epoch "
        f"({command.epoch}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _has_no_more_than(owned: Owned, assigned: PartitionEpochs) -> bool:
    """Whether a member reports no other partitions than those assigned to it."""
    if owned is None:
        return False
    return all(
        topic_id in assigned and mine <= assigned[topic_id].keys()
        for topic_id, mine in owned.items()
    )


def replace_member(
    group: ConsumerGroup, known: Member, member_id: str, records: list[Record]
) -> Member:
    """Return a static member under its new id, and add the records that move all it had to that."""
    group_id = group.group_id
    member = replace(known, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    records += removal(group_id, known.member_id)
    records.append(member.saved(group_id))
    target = group.target_of(known.member_id, None)
    records.append(TargetAssignmentSaved(group_id, member_id, target))
    records.append(member.assignment_saved(group_id))
    return member


def removal(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones that end a member, in the order that Kafka needs."""
    return [
        CurrentAssignmentForgotten(group_id, member_id),
        TargetAssignmentForgotten(group_id, member_id),
        ConsumerMemberForgotten(group_id, member_id),
    ]


# What it says

SAID = (
    "instance_id",
    "rack_id",
    "rebalance_timeout_ms",
    "assignor",
    "topics",
    "regex",
    "client_id",
    "client_host",
)


def _updated(member: Member, command: ConsumerHeartbeat) -> Member:
    """Return the member with the fields that the request reports; the very same if none is new."""
    changed_fields: dict[str, Any] = {}
    for name in SAID:
        value = getattr(command, name)
        if value is not None and value != getattr(member, name):
            changed_fields[name] = value
    if member.classic is not None:
        changed_fields["classic"] = None
    return replace(member, **changed_fields) if changed_fields else member
