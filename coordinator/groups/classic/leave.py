"""Decide LeaveGroup: members leave by member id, or static ones by instance id alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import ClassicRebalanceCause
from coordinator.groups.classic.group_transition import (
    ClassicGroupConfig,
    GroupTransition,
    require_member,
)
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupSaved
from coordinator.shard.decision import Decision


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """Names one member in a LeaveGroup request."""

    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Represents a LeaveGroup request."""

    group_id: str
    members: Sequence[LeavingMember]


def leave_group(
    group: ClassicGroup | None, command: LeaveGroup, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, list[Code]]:
    """Decide a LeaveGroup; respond with one code for each member, in order."""
    if group is None or (group.phase is ClassicGroupPhase.EMPTY and not group.pending_join):
        return Decision((), [Code.UNKNOWN_MEMBER_ID] * len(command.members))
    transition = GroupTransition(group, config, now_ms)
    codes = [_remove_leaving_member(transition, leaving) for leaving in command.members]
    if Code.NONE in codes and transition.group.phase is not ClassicGroupPhase.EMPTY:
        transition.rebalance_or_complete_join(ClassicRebalanceCause.MEMBER_LEFT)
    return transition.to_decision(codes)


def _remove_leaving_member(transition: GroupTransition, leaving: LeavingMember) -> Code:
    """Remove one member that leaves, if it is known; return the code for it."""
    group = transition.group
    member_id: str | None = leaving.member_id
    if not member_id:
        instance_id = leaving.instance_id
        member_id = None if instance_id is None else group.find_static_member_id(instance_id)
        if member_id is None:
            return Code.UNKNOWN_MEMBER_ID
    elif member_id not in group.pending_join:
        try:
            require_member(group, member_id, leaving.instance_id)
        except Refused as refused:
            return refused.code
    transition.remove_member_and_refuse_requests(member_id)
    return Code.NONE
