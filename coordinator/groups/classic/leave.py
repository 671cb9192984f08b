"""Decide LeaveGroup: members leave by member id, or static ones by instance id alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import Cause, Draft, GroupConfig, validate_member
from coordinator.groups.classic.state import Group, Phase


@dataclass(frozen=True, slots=True)
class Leaving:
    """Names one member in a LeaveGroup request."""

    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Represents a LeaveGroup request."""

    group_id: str
    members: Sequence[Leaving]


def leave(
    group: Group | None, command: LeaveGroup, config: GroupConfig, now_ms: int
) -> tuple[Draft | None, list[Code]]:
    """Decide a LeaveGroup: return the group's transition and one code for each member, in order.

    There is no transition if the group has nobody who could leave.
    """
    if group is None or (group.phase is Phase.EMPTY and not group.pending_join):
        return None, [Code.UNKNOWN_MEMBER_ID] * len(command.members)
    transition = Draft(group, config, now_ms)
    codes = [_remove(transition, leaving) for leaving in command.members]
    if Code.NONE in codes and transition.group.phase is not Phase.EMPTY:
        transition.rebalance_or_complete_join(Cause.MEMBER_LEFT)
    return transition, codes


def _remove(draft: Draft, leaving: Leaving) -> Code:
    """Remove one member that leaves, if it is known; return the code for it."""
    group = draft.group
    member_id: str | None = leaving.member_id
    if not member_id:
        instance_id = leaving.instance_id
        member_id = None if instance_id is None else group.static_member_id(instance_id)
        if member_id is None:
            return Code.UNKNOWN_MEMBER_ID
    elif member_id not in group.pending_join:
        try:
            validate_member(group, member_id, leaving.instance_id)
        except Refused as refused:
            return refused.code
    draft.remove(member_id)
    return Code.NONE
