"""Decide JoinGroup of a new member, of one that comes back, or for the next generation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import ClassicRebalanceCause, JoinAnswer, SyncAnswer
from coordinator.groups.classic.group_transition import (
    ClassicGroupConfig,
    GroupTransition,
    check_group_id,
    require_member,
)
from coordinator.groups.classic.state import (
    ClassicGroup,
    ClassicGroupMember,
    ClassicGroupPhase,
    GroupSaved,
)
from coordinator.shard.decision import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """Represents a JoinGroup request.

    `member_id` is empty for a newcomer, who becomes `new_member_id`; in a consumer group
    `new_bare_id`, which isn't made of the client's id.
    `requires_member_id` (v4): a newcomer has to join again with the id that it is given.
    `can_skip_assignment` (v9): a leader can be told that nothing is to be assigned.
    """

    group_id: str
    member_id: str
    new_member_id: str
    new_bare_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    requires_member_id: bool
    can_skip_assignment: bool


def join_group(
    group: ClassicGroup | None, command: JoinGroup, config: ClassicGroupConfig, now_ms: int
) -> Decision[GroupSaved, JoinAnswer | None]:
    """Decide a JoinGroup; respond with the answer.

    An answer of None comes later, to the member that the decision waits as. A newcomer makes a
    group that doesn't exist, even one that is turned away at once.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    is_new_group = group is None
    if group is None:
        if command.member_id:
            raise Refused(Code.UNKNOWN_MEMBER_ID, f"there is no group {command.group_id}")
        group = ClassicGroup(command.group_id, phase_started_at_ms=now_ms)
    transition = GroupTransition(group, config, now_ms)
    answer = _process_join(transition, command)
    if is_new_group:
        transition.save_group_as_empty()
    return transition.to_decision(answer)


def validate_join_request(command: JoinGroup, config: ClassicGroupConfig) -> None:
    """Raise Refused if a JoinGroup's group id or session timeout is not allowed.

    Raises Refused: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT.
    """
    check_group_id(command.group_id)
    if not (
        config.min_session_timeout_ms <= command.session_timeout_ms <= config.max_session_timeout_ms
    ):
        raise Refused(
            Code.INVALID_SESSION_TIMEOUT,
            f"{command.session_timeout_ms} ms; {config.min_session_timeout_ms} to "
            f"{config.max_session_timeout_ms} are allowed",
        )


def _process_join(transition: GroupTransition, command: JoinGroup) -> JoinAnswer | None:
    """Decide a JoinGroup on the transition's copy of the group; None: the answer comes later."""
    group = transition.group
    if not _has_room_for(group, command.member_id, transition.config.max_size):
        transition.remove_member_and_refuse_requests(command.member_id)  # it exceeds the maximum
        return JoinAnswer(code=Code.GROUP_MAX_SIZE_REACHED)
    if not group.supports_protocols(command.protocol_type, {name for name, _ in command.protocols}):
        return JoinAnswer(code=Code.INCONSISTENT_GROUP_PROTOCOL, member_id=command.member_id)
    if not command.member_id:
        return _join_newcomer(transition, command)
    if command.member_id in group.pending_join:
        if command.instance_id is not None:  # Kafka fails on this request, too.
            raise Refused(Code.UNKNOWN_SERVER_ERROR, f"{command.member_id} is no static member")
        _add_member(transition, command, command.member_id)
        return None
    return rejoin_member(
        transition, command, require_member(group, command.member_id, command.instance_id)
    )


def _has_room_for(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Return whether the group's maximum size lets this member join in the present phase."""
    match group.phase:
        case ClassicGroupPhase.PREPARING_REBALANCE:
            return member_id in group.joining or len(group.joining) < max_size
        case ClassicGroupPhase.COMPLETING_REBALANCE | ClassicGroupPhase.STABLE:
            return member_id in group.members or len(group.members) < max_size
        case _:
            return True


def _join_newcomer(transition: GroupTransition, command: JoinGroup) -> JoinAnswer | None:
    """Decide the JoinGroup of a member without an id, static ones that come back included."""
    if command.instance_id is not None:
        current_id = transition.group.find_static_member_id(command.instance_id)
        if current_id is not None:
            _replace_static_member(transition, command, current_id)
            return None
    elif command.requires_member_id:
        transition.group.pending_join.add(command.new_member_id)
        transition.set_session_timer(command.new_member_id, command.session_timeout_ms)
        return JoinAnswer(code=Code.MEMBER_ID_REQUIRED, member_id=command.new_member_id)
    _add_member(transition, command, command.new_member_id)
    return None


def _add_member(transition: GroupTransition, command: JoinGroup, member_id: str) -> None:
    """Add a new member to the group, and rebalance."""
    group = transition.group
    if not group.members:
        group.protocol_type = command.protocol_type
    if (
        group.phase is ClassicGroupPhase.PREPARING_REBALANCE
        and group.previous_phase is ClassicGroupPhase.EMPTY
    ):
        group.new_member_added = True
    group.members[member_id] = ClassicGroupMember(
        member_id=member_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
        protocols=command.protocols,
        is_new=True,
    )
    if group.leader is None:
        group.leader = member_id
    group.pending_join.discard(member_id)
    transition.defer_join_answer(member_id)
    transition.set_session_timer(member_id, transition.config.new_member_join_timeout_ms)
    transition.rebalance_or_complete_join(ClassicRebalanceCause.MEMBER_JOINED)


def _update_member(
    transition: GroupTransition, command: JoinGroup, member: ClassicGroupMember
) -> None:
    """Update a known member from its JoinGroup, and let it wait for the answer."""
    transition.group.members[member.member_id] = replace(
        member,
        protocols=command.protocols,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        session_timeout_ms=command.session_timeout_ms,
    )
    transition.defer_join_answer(member.member_id)


def rejoin_member(
    transition: GroupTransition, command: JoinGroup, member: ClassicGroupMember
) -> JoinAnswer | None:
    """Decide the JoinGroup of a known member: answer it at once, or rebalance.

    In Stable a leader always starts a rebalance: something that it assigns by, such as a topic's
    partitions, may have changed. A follower does if it has changed.
    """
    group = transition.group
    has_changed = member.protocols != command.protocols
    match group.phase:
        case ClassicGroupPhase.COMPLETING_REBALANCE if not has_changed:
            return transition.build_join_answer(member.member_id)  # a repeated request
        case ClassicGroupPhase.STABLE if not has_changed and member.member_id != group.leader:
            return transition.build_join_answer(member.member_id)
        case (
            ClassicGroupPhase.PREPARING_REBALANCE
            | ClassicGroupPhase.COMPLETING_REBALANCE
            | ClassicGroupPhase.STABLE
        ):
            _update_member(transition, command, member)
            transition.rebalance_or_complete_join(ClassicRebalanceCause.MEMBER_CHANGED)
            return None
        case _:
            raise Refused(Code.UNKNOWN_MEMBER_ID, f"{group.group_id} is {group.phase.value}")


def _replace_static_member(
    transition: GroupTransition, command: JoinGroup, old_member_id: str
) -> None:
    """Replace a static member that comes back with an empty member id by one with a new id.

    In Stable, if the protocol stays the same, nothing is rebalanced: the new id is persisted with
    the old one's assignment, which SyncGroup will hand out. A leader that comes back must not
    assign anew: from v9 on it is told to skip the assignment, before that it is told that the
    leader is its own old id, so that it takes itself for a follower.
    """
    group = transition.group
    new_id = command.new_member_id
    leader_before = group.leader or ""
    fenced = Code.FENCED_INSTANCE_ID
    transition.answer_join(old_member_id, JoinAnswer(code=fenced, member_id=old_member_id))
    transition.answer_sync(old_member_id, SyncAnswer(code=fenced))
    transition.cancel_session_timer(old_member_id)
    member = replace(group.members.pop(old_member_id), member_id=new_id)
    if group.leader == old_member_id:
        group.leader = new_id
    if old_member_id in group.pending_sync:
        group.pending_sync.remove(old_member_id)
        group.pending_sync.add(new_id)
    _update_member(transition, command, member)
    transition.set_session_timer(new_id)
    if group.phase is ClassicGroupPhase.COMPLETING_REBALANCE:
        transition.prepare_rebalance(ClassicRebalanceCause.MEMBER_REPLACED)
    elif group.phase is not ClassicGroupPhase.STABLE:
        transition.maybe_complete_join()
    elif group.select_protocol() != group.protocol:
        transition.prepare_rebalance(ClassicRebalanceCause.MEMBER_REPLACED)
    else:
        transition.save_group()
        answer = transition.build_join_answer(new_id)
        if command.can_skip_assignment:
            answer = replace(answer, skip_assignment=new_id == group.leader)
        else:
            answer = replace(answer, leader=leader_before, members=())
        transition.answer_join(new_id, answer)
