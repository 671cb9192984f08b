"""ConsumerGroupHeartbeat: a member joins, says what has changed, and learns what it is to have.

The member is made or updated; what follows for the group, and for the member in it, is `advance`'s.
Most heartbeats change nothing: no record, and no look at more than the member itself.
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
    """A request. None: the member says nothing new about it. `member_id` is made up by the caller
    for a member that joins without one; `is_nameless` then."""

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
        """It says everything, as after an error: what it is to have is then told in any case."""
        return (
            self.rebalance_timeout_ms is not None
            and (self.topics is not None or self.regex is not None)
            and self.owned is not None
        )


class HeartbeatAnswer(NamedTuple):
    """`assigned` None: what the member is to have hasn't changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: PartitionEpochs | None = None


class Beat(NamedTuple):
    """What a heartbeat is to do: records, its answer, and what follows once they are written."""

    records: list[Record]
    answer: HeartbeatAnswer
    step: Step


def heartbeat(group: ConsumerGroup, command: ConsumerHeartbeat, around: Surroundings) -> Beat:
    """A group that isn't there yet is handed in empty, if the member joins.

    Refuses with 81 (the group is full), 25, 82, 111 (its instance id is still in use), 110 and 128.
    """
    records: list[Record] = []
    check_room(group, None if command.is_nameless else command.member_id, around.config)
    member, replaced = _find(group, command, records)
    updated = _updated(member, command)
    step = advance(group, member, updated, replaced, command.owned, around, records)
    moved = step.member
    tells = command.epoch == JOINING_EPOCH or command.is_full or moved.assigned != member.assigned
    answer = HeartbeatAnswer(
        moved.member_id,
        moved.epoch,
        around.settings.heartbeat_interval_ms,
        moved.assigned if tells else None,
    )
    return Beat(records, answer, step)


def check_room(group: ConsumerGroup, member_id: str | None, config: ConsumerGroupConfig) -> None:
    """Refuses with 81 a newcomer to a group that is full; None: one that has no id yet."""
    if len(group.members) >= config.max_size and member_id not in group.members:
        raise Refused(
            Code.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {config.max_size} members.",
        )


# Who it is


def _find(
    group: ConsumerGroup, command: ConsumerHeartbeat, records: list[Record]
) -> tuple[Member, str | None]:
    """The member that sends this, or a new one; and whose place it takes, if it is a static one
    that has come back under another id."""
    if command.epoch != JOINING_EPOCH:
        member = member_named(group, command.member_id, command.instance_id)
        _check_epoch(member, command)
        return member, None
    known = None if command.instance_id is None else group.static_member(command.instance_id)
    if known is None:
        return group.members.get(command.member_id) or Member(command.member_id), None
    if known.classic is None and known.epoch != AWAY_EPOCH:
        raise Refused(
            Code.UNRELEASED_INSTANCE_ID,
            f"Static member {command.member_id} with instance id {command.instance_id} cannot "
            f"join the group because the instance id is owned by {known.member_id} member.",
        )
    return replace_member(group, known, command.member_id, records), known.member_id


def member_named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Who a request names, of either protocol. Refuses with 25 and 82."""
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
    """The member of an instance id. Refuses with 25 if there is none, 82 if it is another one."""
    known = group.static_member(instance_id)
    if known is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise Refused(
            Code.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.member_id}.",
        )
    return known


def _check_epoch(member: Member, command: ConsumerHeartbeat) -> None:
    """A member may be one step behind, if it has no more than it is to have: an answer was lost.

    Refuses with 110.
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
    if owned is None:
        return False
    return all(
        topic_id in assigned and mine <= assigned[topic_id].keys()
        for topic_id, mine in owned.items()
    )


def replace_member(
    group: ConsumerGroup, known: Member, member_id: str, records: list[Record]
) -> Member:
    """A static member is back under another id: all that it had goes over to that."""
    group_id = group.group_id
    member = replace(known, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    records += removal(group_id, known.member_id)
    records.append(member.saved(group_id))
    target = group.target_of(known.member_id, None)
    records.append(TargetAssignmentSaved(group_id, member_id, target))
    records.append(member.assignment_saved(group_id))
    return member


def removal(group_id: str, member_id: str) -> list[Record]:
    """The records that end a member. The order matters to Kafka."""
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
    """The member with what the request says; the very same if that is nothing new."""
    new: dict[str, Any] = {}
    for name in SAID:
        value = getattr(command, name)
        if value is not None and value != getattr(member, name):
            new[name] = value
    if member.classic is not None:
        new["classic"] = None
    return replace(member, **new) if new else member
