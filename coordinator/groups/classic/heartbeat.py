"""Decide Heartbeat: the member is alive, and learns whether it has to join again."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from coordinator.errors import Code, Refused
from coordinator.groups.classic.group_transition import require_member
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupMember, ClassicGroupPhase

AnswerCode: TypeAlias = Code


class Heartbeat(NamedTuple):
    """Represents a Heartbeat request of the classic protocol."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


def validate_heartbeat_and_select_code(
    group: ClassicGroup | None, command: Heartbeat
) -> tuple[ClassicGroupMember, AnswerCode]:
    """Return the member that a heartbeat comes from, and the code to answer it with.

    The code is REBALANCE_IN_PROGRESS if the member is to join again, else NONE.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; then the session does
    not go on.
    """
    if group is None or group.phase is ClassicGroupPhase.EMPTY:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{command.group_id} has no members")
    member = require_member(group, command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise Refused(
            Code.ILLEGAL_GENERATION, f"generation {command.generation}, not {group.generation}"
        )
    is_joining = group.phase is ClassicGroupPhase.PREPARING_REBALANCE
    return member, Code.REBALANCE_IN_PROGRESS if is_joining else Code.NONE
