"""SyncGroup: the leader brings the assignments, everybody takes theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import Cause, Draft, GroupConfig, SyncAnswer, validate_member
from coordinator.groups.classic.state import Group, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """`protocol_type` and `protocol` are None where the request's version has no such field."""

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
    """An answer of None comes when the leader's assignments are in the log.

    Refuses with 25, 82, 22, 23, and 27 while members are still joining.
    """
    if group is None or group.phase is Phase.EMPTY:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{command.group_id} has no members")
    validate_member(group, command.member_id, command.instance_id)
    if command.generation != group.generation:
        raise Refused(
            Code.ILLEGAL_GENERATION, f"generation {command.generation}, not {group.generation}"
        )
    for said, known in (
        (command.protocol_type, group.protocol_type),
        (command.protocol, group.protocol),
    ):
        if said is not None and known is not None and said != known:
            raise Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{said!r}, not {known!r}")
    if group.phase is Phase.PREPARING_REBALANCE:
        raise Refused(Code.REBALANCE_IN_PROGRESS, f"{command.group_id} is rebalancing")
    draft = Draft(group, config, now_ms)
    draft.forget_pending_sync(command.member_id)
    if group.phase is Phase.STABLE:
        return draft, assignment_of(draft.group, command.member_id)
    draft.wait_for_sync(command.member_id)
    if command.member_id == group.leader:
        _assign(draft, command.assignments)
    return draft, None


def _assign(draft: Draft, assignments: Mapping[str, bytes]) -> None:
    """A member that the leader left out gets an empty assignment."""
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
    """What the leader assigned could not be persisted: who waits for it is told why, as the leader
    is, and everybody is to join again."""
    draft = Draft(group, config, now_ms)
    draft.set_session(leader_id)
    draft.refuse_syncs(code)
    draft.prepare_rebalance(Cause.ASSIGNMENT_LOST)
    return draft


def assignment_of(group: Group, member_id: str) -> SyncAnswer:
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=group.members[member_id].assignment,
    )
