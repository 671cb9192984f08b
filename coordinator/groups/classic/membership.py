"""Run the members of classic groups: connects decisions with shards, timers and callers.

Where a request goes: api file -> this -> a decision -> shard -> apply. Once the records of a
decision are applied, its effects are carried out here: the group's join state is kept, its timers
are set, and whoever waits is answered. JoinGroup and SyncGroup may be answered long after they
came, so they bring a plain callback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from coordinator.clock import Clock, Scheduler
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
from coordinator.groups.classic.expire import expire_join, expire_session, expire_sync
from coordinator.groups.classic.group_transition import ClassicGroupConfig, GroupTransition
from coordinator.groups.classic.heartbeat import Heartbeat, validate_heartbeat_and_select_code
from coordinator.groups.classic.join import JoinGroup, join_group
from coordinator.groups.classic.leave import LeaveGroup, leave_group
from coordinator.groups.classic.state import (
    ClassicGroup,
    ClassicGroupPhase,
    GroupSaved,
    keep_join_state,
)
from coordinator.groups.classic.sync import SyncGroup, rebalance_without_assignment, sync_group
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.shard.decision import Decision
from coordinator.shard.timers import KeyedTimers

logger = logging.getLogger(__name__)

A = TypeVar("A")

RETRY_MS = 1_000
_PHASES_WITH_SESSIONS = ClassicGroupPhase.STABLE, ClassicGroupPhase.PREPARING_REBALANCE


class ClassicMembership:
    """Serves JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups.

    Refused carries the code of a refusal. What is wrong whatever the group has been checked before
    (see `groups.classic_protocol`).
    """

    def __init__(
        self, shards: GroupShards, config: ClassicGroupConfig, clock: Clock, scheduler: Scheduler
    ) -> None:
        self._shards = shards
        self._config = config
        self._clock = clock
        self._timers: KeyedTimers[ClassicTimerKey] = KeyedTimers(
            clock, scheduler, self._expire_and_commit_transition
        )
        self._join_callbacks: dict[tuple[str, str], Callable[[JoinAnswer], None]] = {}
        self._sync_callbacks: dict[tuple[str, str], Callable[[SyncAnswer], None]] = {}

    # Loading and resignation of a shard

    def restart_sessions_after_load(self, shard: GroupShard) -> None:
        """Restart every member's session timeout after the shard has loaded.

        A group that is larger than `group.max.size` by now rebalances: its members can commit
        before the last ones are refused.
        """
        for group in tuple(shard.state.classic.values()):
            for member in group.members.values():
                key = (ClassicTimer.SESSION, group.group_id, member.member_id)
                self._timers.set_timer(key, member.session_timeout_ms)
            if len(group.members) > self._config.max_size:
                self._start_rebalance(group, ClassicRebalanceCause.GROUP_TOO_LARGE)

    def cancel_timers_of_resigned_shard(self, shard: GroupShard) -> None:
        """Cancel all timers of a shard's groups; answer pending requests with NOT_COORDINATOR.

        It is called before the shard clears its state.
        """
        for group in shard.state.classic.values():
            self.cancel_timers_and_answer_pending(group, Code.NOT_COORDINATOR)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self._timers.cancel_all_timers()

    # Conversions from and to consumer groups

    def cancel_timers_and_answer_pending(self, group: ClassicGroup, code: Code) -> None:
        """Cancel a group's timers and answer its pending requests with the code."""
        group_id = group.group_id
        for member_id in (*group.members, *group.pending_join, ""):
            for due in ClassicTimer:
                self._timers.cancel_timer((due, group_id, member_id))
        for member_id in group.joining:
            answer = JoinAnswer(code=code, member_id=member_id)
            _answer_waiting_request(self._join_callbacks, group_id, member_id, answer)
        for member_id in group.syncing:
            _answer_waiting_request(
                self._sync_callbacks, group_id, member_id, SyncAnswer(code=code)
            )

    def adopt_downgraded_group(
        self, shard: GroupShard, group: ClassicGroup, cause: ClassicRebalanceCause | None
    ) -> None:
        """Take up a group that was a consumer group, and rebalance it if there is a cause."""
        keep_join_state(shard.state.classic, group, is_saved=True)
        for member in group.members.values():
            key = (ClassicTimer.SESSION, group.group_id, member.member_id)
            self._timers.set_timer(key, member.session_timeout_ms)
        if cause is not None:
            self._start_rebalance(shard.state.classic[group.group_id], cause)

    def _start_rebalance(self, group: ClassicGroup, cause: ClassicRebalanceCause) -> None:
        transition = GroupTransition(group, self._config, self._clock.now_ms())
        transition.prepare_rebalance(cause)
        self.execute_decision(group.group_id, transition.to_decision(None))

    # Requests

    def handle_join(
        self,
        command: JoinGroup,
        on_answer: Callable[[JoinAnswer], None],
        tombstones: Sequence[Record] = (),
    ) -> None:
        """Serve a JoinGroup; `on_answer` is called once, now or when the generation is complete.

        `tombstones`: those of an empty group of another kind, which this one takes the place of.
        """
        decision = join_group(
            self._find_group(command.group_id), command, self._config, self._clock.now_ms()
        )
        immediate_answer = self.execute_decision(
            command.group_id, decision, join_callback=on_answer, tombstones=tombstones
        )
        if immediate_answer is not None:
            on_answer(immediate_answer)

    def handle_sync(self, command: SyncGroup, on_answer: Callable[[SyncAnswer], None]) -> None:
        """Serve a SyncGroup; `on_answer` is called once, now or when the assignment is there."""
        group, now_ms = self._find_group(command.group_id), self._clock.now_ms()
        decision = sync_group(group, command, self._config, now_ms)
        try:
            immediate_answer = self.execute_decision(
                command.group_id, decision, sync_callback=on_answer
            )
        except Refused as refused:
            if group is not None:
                lost = rebalance_without_assignment(
                    group, command.member_id, refused.code, self._config, now_ms
                )
                self.execute_decision(command.group_id, lost)
            raise
        if immediate_answer is not None:
            on_answer(immediate_answer)

    def handle_heartbeat(self, shard: GroupShard, command: Heartbeat) -> Code:
        """Restart the member's session timer and return the code to answer its heartbeat with.

        It is REBALANCE_IN_PROGRESS if the member is to join again, else NONE.
        """
        shard.classic_counters.heartbeats += 1
        member, code = validate_heartbeat_and_select_code(
            shard.state.classic.get(command.group_id), command
        )
        key = (ClassicTimer.SESSION, command.group_id, member.member_id)
        self._timers.set_timer(key, member.session_timeout_ms)
        return code

    def handle_leave(self, command: LeaveGroup) -> list[Code]:
        """Serve a LeaveGroup; return one code for each member, in their order."""
        decision = leave_group(
            self._find_group(command.group_id), command, self._config, self._clock.now_ms()
        )
        return self.execute_decision(command.group_id, decision)

    def restart_session(self, group: ClassicGroup, member_id: str) -> None:
        """Restart the session timer of a member that has committed an offset."""
        member = group.members.get(member_id)
        if member is not None and group.phase in _PHASES_WITH_SESSIONS:
            key = (ClassicTimer.SESSION, group.group_id, member_id)
            self._timers.set_timer(key, member.session_timeout_ms)

    # Executing decisions

    def _find_group(self, group_id: str) -> ClassicGroup | None:
        return self._shards.require_shard(group_id).state.classic.get(group_id)

    def execute_decision(
        self,
        group_id: str,
        decision: Decision[GroupSaved, A],
        join_callback: Callable[[JoinAnswer], None] | None = None,
        sync_callback: Callable[[SyncAnswer], None] | None = None,
        tombstones: Sequence[Record] = (),
    ) -> A:
        """Append a decision's records, apply them, carry out its effects, return its response.

        Raises Refused if the append failed: then nothing has changed, and no effect is carried out.
        """
        shard = self._shards.require_shard(group_id)
        before = shard.count_members(group_id)
        shard.log.execute_decision(Decision([*tombstones, *decision.records], None))
        for effect in decision.effects:
            match effect:
                case AwaitAnswer(member_id):
                    if join_callback is not None:
                        self._join_callbacks[group_id, member_id] = join_callback
                    if sync_callback is not None:
                        self._sync_callbacks[group_id, member_id] = sync_callback
                case _:
                    self._carry_out_effect(shard, group_id, effect)
        shard.count_member_changes_since(group_id, before)
        return decision.response

    def _carry_out_effect(self, shard: GroupShard, group_id: str, effect: object) -> None:
        """Carry out one effect of a decision about a group."""
        match effect:
            case SetTimer(key, timeout_ms):
                self._timers.set_timer(key, timeout_ms)
            case CancelTimer(key):
                self._timers.cancel_timer(key)
            case KeepJoinState(changed_group, is_saved):
                keep_join_state(shard.state.classic, changed_group, is_saved=is_saved)
            case AnswerJoin(member_id, join_answer):
                _answer_waiting_request(self._join_callbacks, group_id, member_id, join_answer)
            case AnswerSync(member_id, sync_answer):
                _answer_waiting_request(self._sync_callbacks, group_id, member_id, sync_answer)
            case CountRebalanceStart(cause, generation):
                shard.classic_counters.count_rebalance_start(group_id, cause.value)
                logger.info("%s: generation %d ends: %s", group_id, generation, cause.value)
            case CountRebalanceEnd(generation, member_count, elapsed_ms):
                shard.classic_counters.count_rebalance_end(
                    group_id, elapsed_ms, self._clock.monotonic_ms()
                )
                log_arguments = group_id, generation, member_count, elapsed_ms
                logger.info("%s: generation %d has %d members, after %d ms", *log_arguments)
            case _:
                raise AssertionError(f"{effect!r} is no effect of a classic group's decision")

    def _expire_and_commit_transition(self, key: ClassicTimerKey) -> None:
        """Commit the transition that an expired timer brings; retry later if the log refuses it."""
        timer, group_id, member_id = key
        shard = self._shards.find_shard(group_id)
        group = shard.state.classic.get(group_id)  # There is none if the shard has resigned.
        if group is None:
            return
        expire = {
            ClassicTimer.SESSION: partial(expire_session, group, member_id),
            ClassicTimer.JOIN: partial(expire_join, group),
            ClassicTimer.SYNC: partial(expire_sync, group),
        }[timer]
        decision = expire(self._config, self._clock.now_ms())
        if decision is None:
            return
        logger.info("%s: %s of %s has run out", group_id, timer.name, member_id or "the group")
        try:
            self.execute_decision(group_id, decision)
            if timer is ClassicTimer.SESSION:
                shard.classic_counters.sessions_expired += 1
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self._timers.set_timer(key, RETRY_MS)


def _answer_waiting_request(
    callbacks: dict[tuple[str, str], Callable[[A], None]], group_id: str, member_id: str, answer: A
) -> None:
    callback = callbacks.pop((group_id, member_id), None)
    if callback is not None:
        callback(answer)
