"""Decide SyncGroup: the leader brings the assignments, every member receives its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import ClassicRebalanceCause, SyncAnswer
from coordinator.groups.classic.group_transition import (
    ClassicGroupConfig,
    GroupTransition,
    require_member,
)
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupSaved
from coordinator.shard.decision import Decision


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


def sync_group(
    group: ClassicGroup | None, command: SyncGroup, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, SyncAnswer | None]:
    """Decide a SyncGroup; respond with the answer.

    An answer of None comes when the leader's assignments are in the log.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, and REBALANCE_IN_PROGRESS while members are still joining.
    """
    if group is None or group.phase is ClassicGroupPhase.EMPTY:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{command.group_id} has no members")
    require_member(group, command.member_id, command.instance_id)
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
    if group.phase is ClassicGroupPhase.PREPARING_REBALANCE:
        raise Refused(Code.REBALANCE_IN_PROGRESS, f"{command.group_id} is rebalancing")
    transition = GroupTransition(group, config, now_ms)
    transition.remove_pending_sync(command.member_id)
    if group.phase is ClassicGroupPhase.STABLE:
        return transition.to_decision(build_sync_answer(transition.group, command.member_id))
    transition.defer_sync_answer(command.member_id)
    if command.member_id == group.leader:
        _store_assignments(transition, command.assignments)
    return transition.to_decision(None)


def _store_assignments(transition: GroupTransition, assignments: Mapping[str, bytes]) -> None:
    """Store the leader's assignments and answer all members that wait for theirs.

    A member that the leader left out gets an empty assignment.
    """
    group = transition.group
    for member in tuple(group.members.values()):
        assigned = assignments.get(member.member_id, b"")
        group.members[member.member_id] = replace(member, assignment=assigned)
    transition.transition_to(ClassicGroupPhase.STABLE)
    transition.rebalance_elapsed_ms = transition.now_ms - group.rebalance_started_at_ms
    transition.save_group()
    for member_id in group.members:
        if member_id in group.syncing:
            transition.answer_sync(member_id, build_sync_answer(group, member_id))
            transition.set_session_timer(member_id)


def rebalance_without_assignment(
    group: ClassicGroup, leader_id: str, code: Code, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, None]:
    """Answer pending SyncGroups with a code and rebalance, as the assignments can't be persisted.

    The leader is told the same code.
    """
    transition = GroupTransition(group, config, now_ms)
    transition.set_session_timer(leader_id)
    transition.refuse_pending_syncs(code)
    transition.prepare_rebalance(ClassicRebalanceCause.ASSIGNMENT_LOST)
    return transition.to_decision(None)


def build_sync_answer(group: ClassicGroup, member_id: str) -> SyncAnswer:
    """Return the answer to a member's SyncGroup, with its assignment of this generation."""
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=group.members[member_id].assignment,
    )
