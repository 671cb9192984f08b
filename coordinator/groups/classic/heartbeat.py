"""Decide Heartbeat: the member is alive, and learns whether it has to join again."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import validate_member
from coordinator.groups.classic.state import Group, Member, Phase


class Heartbeat(NamedTuple):
    """Represents a Heartbeat request of the classic protocol."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


def heartbeat(group: Group | None, command: Heartbeat) -> tuple[Member, Code]:
    """Return the member that a heartbeat comes from, and the code to answer it with.

    The code is REBALANCE_IN_PROGRESS if the member is to join again, else NONE.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; then the session does
    not go on.
    """
    if group is None or group.phase is Phase.EMPTY:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{command.group_id} has no members")
    member = validate_member(group, command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise Refused(
            Code.ILLEGAL_GENERATION, f"generation {command.generation}, not {group.generation}"
        )
    is_joining = group.phase is Phase.PREPARING_REBALANCE
    return member, Code.REBALANCE_IN_PROGRESS if is_joining else Code.NONE
