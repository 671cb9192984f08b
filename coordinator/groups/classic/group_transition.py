"""Prepare a decision about a classic group: the changed copy, records, timers and answers.

Nothing of it is visible until the membership has appended its records. Then the group is what its
record says, if there is one, and the rest of the changed copy is kept beside it as join state;
timers are set, answers are given, in that order. If the append fails, all of it is dropped.

Also the changes that several decisions share: preparing a rebalance and completing its join phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import (
    AnswerJoin,
    AnswerSync,
    AwaitAnswer,
    CancelTimer,
    ClassicRebalanceCause,
    ClassicTimer,
    ClassicTimerKey,
    CountRebalanceEnd,
    CountRebalanceStart,
    JoinAnswer,
    KeepJoinState,
    SetTimer,
    SyncAnswer,
)
from coordinator.groups.classic.state import (
    VALID_PREVIOUS_PHASES,
    ClassicGroup,
    ClassicGroupMember,
    ClassicGroupPhase,
    GroupSaved,
)
from coordinator.shard.decision import Decision

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroupConfig:
    """Holds Kafka's settings for classic groups, in milliseconds."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    new_member_join_timeout_ms: int = 300_000
    max_size: int = 2**31 - 1  # members


class GroupTransition:
    """Collects the records and effects of one decision on a copy of a classic group.

    See the module's docstring.
    """

    def __init__(self, group: ClassicGroup, config: ClassicGroupConfig, now_ms: int) -> None:
        self.group = group.copy_group()
        self.config = config
        self.now_ms = now_ms
        self.records: list[GroupSaved] = []
        self.timers: dict[ClassicTimerKey, int | None] = {}  # delays in ms; None: cancel
        self.join_answers: list[AnswerJoin] = []
        self.sync_answers: list[AnswerSync] = []
        self.waiting_member_id: str | None = None  # whose answer comes later
        self.rebalance_cause: ClassicRebalanceCause | None = None  # set if a rebalance has begun
        self.rebalance_elapsed_ms: int | None = None  # set if a rebalance is complete

    def to_decision(self, response: A) -> Decision[GroupSaved, A]:
        """Return the decision that makes this transition true."""
        group = self.group
        effects: list[object] = [KeepJoinState(group, is_saved=bool(self.records))]
        if self.rebalance_cause is not None:
            effects.append(CountRebalanceStart(self.rebalance_cause, group.generation))
        if self.rebalance_elapsed_ms is not None:
            elapsed_ms = self.rebalance_elapsed_ms
            effects.append(CountRebalanceEnd(group.generation, len(group.members), elapsed_ms))
        effects += [
            CancelTimer(key) if timeout_ms is None else SetTimer(key, timeout_ms)
            for key, timeout_ms in self.timers.items()
        ]
        # A static member's old id is answered, too: by its own callback, not the newcomer's.
        if self.waiting_member_id is not None:
            effects.append(AwaitAnswer(self.waiting_member_id))
        effects += self.join_answers
        effects += self.sync_answers
        return Decision(self.records, response, effects)

    # Effects that the membership carries out.

    def save_group(self) -> None:
        """Add the record that persists the group as it is now."""
        self.records = [self.group.to_record()]

    def save_group_as_empty(self) -> None:
        """Add the record of a new group as Empty: its members are saved once it is Stable."""
        group = self.group
        self.records = [
            GroupSaved(group.group_id, None, 0, None, None, group.phase_started_at_ms, ())
        ]

    def set_session_timer(self, member_id: str, timeout_ms: int | None = None) -> None:
        """Restart a member's session timer, with its session timeout unless told otherwise."""
        if timeout_ms is None:
            timeout_ms = self.group.members[member_id].session_timeout_ms
        self.timers[ClassicTimer.SESSION, self.group.group_id, member_id] = timeout_ms

    def cancel_session_timer(self, member_id: str) -> None:
        self.timers[ClassicTimer.SESSION, self.group.group_id, member_id] = None

    def set_timer(self, timer: ClassicTimer, timeout_ms: int | None) -> None:
        """Set the group's timer of this kind, or cancel it if the timeout is None."""
        self.timers[timer, self.group.group_id, ""] = timeout_ms

    def defer_join_answer(self, member_id: str) -> None:
        """Answer this member's JoinGroup later, when the join phase is complete."""
        self.group.joining.add(member_id)
        self.waiting_member_id = member_id

    def defer_sync_answer(self, member_id: str) -> None:
        """Answer this member's SyncGroup later, when the assignments are there."""
        self.group.syncing.add(member_id)
        self.waiting_member_id = member_id

    def answer_join(self, member_id: str, answer: JoinAnswer) -> None:
        """Answer the member's pending JoinGroup, if it has one."""
        if member_id in self.group.joining:
            self.group.joining.discard(member_id)
            self.join_answers.append(AnswerJoin(member_id, answer))

    def answer_sync(self, member_id: str, answer: SyncAnswer) -> None:
        """Answer the member's pending SyncGroup, if it has one."""
        if member_id in self.group.syncing:
            self.group.syncing.discard(member_id)
            self.sync_answers.append(AnswerSync(member_id, answer))

    # Changes that decisions share.

    def transition_to(self, phase: ClassicGroupPhase) -> None:
        """Put the group into a phase; raise AssertionError if that can't follow the present one."""
        group = self.group
        if group.phase not in VALID_PREVIOUS_PHASES[phase]:
            raise AssertionError(f"{group.group_id}: {phase} can't follow {group.phase}")
        group.previous_phase, group.phase, group.phase_started_at_ms = (
            group.phase,
            phase,
            self.now_ms,
        )

    def remove_member_and_refuse_requests(self, member_id: str) -> None:
        """Remove a member, or one that has only got an id, and refuse its pending requests.

        These are answered with UNKNOWN_MEMBER_ID.
        """
        group = self.group
        refused = JoinAnswer(code=Code.UNKNOWN_MEMBER_ID)
        self.answer_join(member_id, refused)
        self.answer_sync(member_id, SyncAnswer(code=Code.UNKNOWN_MEMBER_ID))
        group.members.pop(member_id, None)
        group.pending_join.discard(member_id)
        self.remove_pending_sync(member_id)
        self.cancel_session_timer(member_id)
        if group.leader == member_id:
            group.leader = next(iter(group.members), None)

    def remove_pending_sync(self, member_id: str) -> None:
        """Stop waiting for a member's SyncGroup; cancel the sync timer if it was the last."""
        self.group.pending_sync.discard(member_id)
        if not self.group.pending_sync:
            self.set_timer(ClassicTimer.SYNC, None)

    def refuse_pending_syncs(self, code: Code) -> None:
        """Clear the assignments of this generation; answer pending SyncGroups with the code."""
        group = self.group
        for member in tuple(group.members.values()):
            group.members[member.member_id] = replace(member, assignment=b"")
            if member.member_id in group.syncing:
                self.set_session_timer(member.member_id)
            self.answer_sync(member.member_id, SyncAnswer(code=code))

    def rebalance_or_complete_join(self, cause: ClassicRebalanceCause) -> None:
        """Start a rebalance as members have changed, or complete the join phase under way.

        It is completed only if nobody else is to join.
        """
        if self.group.phase in VALID_PREVIOUS_PHASES[ClassicGroupPhase.PREPARING_REBALANCE]:
            self.prepare_rebalance(cause)
        else:
            self.maybe_complete_join()

    def prepare_rebalance(self, cause: ClassicRebalanceCause) -> None:
        """Start a rebalance: wait for all members to join again.

        A new group waits for the initial rebalance delay instead.
        """
        group = self.group
        if group.phase is ClassicGroupPhase.COMPLETING_REBALANCE:
            self.refuse_pending_syncs(Code.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self.set_timer(ClassicTimer.SYNC, None)
        is_initial = group.phase is ClassicGroupPhase.EMPTY
        self.transition_to(ClassicGroupPhase.PREPARING_REBALANCE)
        self.rebalance_cause, group.rebalance_started_at_ms = cause, self.now_ms
        if is_initial:
            delay_ms = self.config.initial_rebalance_delay_ms
            group.initial_delay_ms = delay_ms
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self.set_timer(ClassicTimer.JOIN, delay_ms)
        elif group.has_all_joined:
            self.complete_join()
        else:
            self.set_timer(ClassicTimer.JOIN, group.rebalance_timeout_ms)

    def maybe_complete_join(self) -> None:
        """Complete the join phase if all members have joined and no initial delay is running."""
        group = self.group
        if (
            group.phase is ClassicGroupPhase.PREPARING_REBALANCE
            and group.previous_phase is not ClassicGroupPhase.EMPTY
            and group.has_all_joined
        ):
            self.complete_join()

    def complete_join(self) -> None:
        """Begin the next generation with the members that have joined, or become Empty.

        Static members stay even if they have not joined; if none of them has, wait once more.
        """
        group = self.group
        self.set_timer(ClassicTimer.JOIN, None)
        for member in tuple(group.members.values()):
            if member.member_id not in group.joining and member.instance_id is None:
                self.remove_member_and_refuse_requests(member.member_id)
        if group.members and not self._try_elect_leader():
            # There are only static members and none has joined: wait for them once more.
            self.set_timer(ClassicTimer.JOIN, group.rebalance_timeout_ms)
            return
        group.generation += 1
        group.pending_sync.clear()
        if not group.members:
            group.protocol = None
            self.transition_to(ClassicGroupPhase.EMPTY)
            self.save_group()
            return
        group.protocol = group.select_protocol()
        self.transition_to(ClassicGroupPhase.COMPLETING_REBALANCE)
        for member in tuple(group.members.values()):
            self.answer_join(member.member_id, self.build_join_answer(member.member_id))
            if member.is_new:
                group.members[member.member_id] = replace(member, is_new=False)
            group.pending_sync.add(member.member_id)
            self.set_session_timer(member.member_id)
        self.set_timer(ClassicTimer.SYNC, group.rebalance_timeout_ms)

    def build_join_answer(self, member_id: str) -> JoinAnswer:
        """Return the answer to a member that joins the current generation."""
        group = self.group
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member_id == group.leader:
            members = tuple(
                (m.member_id, m.instance_id, m.metadata_of(group.protocol))
                for m in group.members.values()
            )
        return JoinAnswer(
            member_id=member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            leader=group.leader or "",
            members=members,
        )

    def _try_elect_leader(self) -> bool:
        """Keep the leader if it has joined, else choose the first member that has.

        Returns False if nobody has joined.
        """
        group = self.group
        if group.leader in group.joining:
            return True
        joined = next(
            (member_id for member_id in group.members if member_id in group.joining), None
        )
        if joined is None:
            return False
        group.leader = joined
        return True


def check_group_id(group_id: str) -> None:
    """Raise Refused if a group id is empty, which no group with members may have.

    Raises Refused: INVALID_GROUP_ID.
    """
    if not group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")


def require_member(
    group: ClassicGroup, member_id: str, instance_id: str | None
) -> ClassicGroupMember:
    """Return the member that a request names by member id and by instance id, or raise Refused.

    Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID if its instance id has another member id.
    """
    if instance_id is not None:
        current_id = group.find_static_member_id(instance_id)
        if current_id is None:
            raise Refused(Code.UNKNOWN_MEMBER_ID, f"no member has the instance id {instance_id}")
        if current_id != member_id:
            raise Refused(
                Code.FENCED_INSTANCE_ID, f"{instance_id} is {current_id} by now, not {member_id}"
            )
    member = group.members.get(member_id)
    if member is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{member_id!r} is not in {group.group_id}")
    return member
