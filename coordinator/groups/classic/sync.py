"""Decide SyncGroup: the leader brings the assignments, every member receives its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import Cause, Draft, GroupConfig, SyncAnswer, validate_member
from coordinator.groups.classic.state import Group, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """Represents a SyncGroup request.

    `protocol_type` and `protocol` are None where the request's version has no such field.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]


def sync(
    group: Group | None, command: SyncGroup, config: GroupConfig, now_ms: int
) -> tuple[Draft, SyncAnswer | None]:
    """Decide a SyncGroup: return the group's transition and the answer.

    An answer of None comes when the leader's assignments are in the log.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, and REBALANCE_IN_PROGRESS while members are still joining.
    """
    if group is None or group.phase is Phase.EMPTY:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{command.group_id} has no members")
    validate_member(group, command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise Refused(
            Code.ILLEGAL_GENERATION, f"generation {command.generation}, not {group.generation}"
        )
    for requested, actual in (
        (command.protocol_type, group.protocol_type),
        (command.protocol, group.protocol),
    ):
        if requested is not None and actual is not None and requested != actual:
            raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{requested!r}, not {actual!r}")
    if group.phase is Phase.PREPARING_REBALANCE:
        raise Refused(Code.REBALANCE_IN_PROGRESS, f"{command.group_id} is rebalancing")
    transition = Draft(group, config, now_ms)
    transition.forget_pending_sync(command.member_id)
    if group.phase is Phase.STABLE:
        return transition, assignment_of(transition.group, command.member_id)
    transition.wait_for_sync(command.member_id)
    if command.member_id == group.leader:
        _assign(transition, command.assignments)
    return transition, None


def _assign(draft: Draft, assignments: Mapping[str, bytes]) -> None:
    """Store the leader's assignments and answer all members that wait for theirs.

    A member that the leader left out gets an empty assignment.
    """
    group = draft.group
    for member in tuple(group.members.values()):
        assigned = assignments.get(member.member_id, b"")
        group.members[member.member_id] = replace(member, assignment=assigned)
    draft.go(Phase.STABLE)
    draft.took_ms = draft.now_ms - group.round_ms
    draft.save()
    for member_id in group.members:
        if member_id in group.syncing:
            draft.answer_sync(member_id, assignment_of(group, member_id))
            draft.set_session(member_id)


def lose_assignment(
    group: Group, leader_id: str, code: Code, config: GroupConfig, now_ms: int
) -> Draft:
    """Answer pending SyncGroups with a code and rebalance, as the assignments can't be persisted.

    The leader is told the same code.
    """
    transition = Draft(group, config, now_ms)
    transition.set_session(leader_id)
    transition.refuse_syncs(code)
    transition.prepare_rebalance(Cause.ASSIGNMENT_LOST)
    return transition


def assignment_of(group: Group, member_id: str) -> SyncAnswer:
    """Return the answer to the SyncGroup of a member that has its assignment."""
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=group.members[member_id].assignment,
    )
