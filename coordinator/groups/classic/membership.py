"""Run the members of classic groups: connects decisions with shards, timers and callers.

Where a request goes: api file -> this -> a decision -> shard -> apply. A decision about a rebalance
comes back as a transition (see `classic.group_transition`): its records are appended, then its
group takes the old one's place, its timers are set, and whoever waits is answered. JoinGroup and
SyncGroup may be answered long after they came, so they bring a plain callback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import (
    Cause,
    Draft,
    Due,
    GroupConfig,
    JoinAnswer,
    SyncAnswer,
    TimerKey,
)
from coordinator.groups.classic.expire import expire_join, expire_session, expire_sync
from coordinator.groups.classic.heartbeat import Heartbeat, heartbeat
from coordinator.groups.classic.join import JoinGroup, join
from coordinator.groups.classic.leave import LeaveGroup, leave
from coordinator.groups.classic.state import Group, Phase
from coordinator.groups.classic.sync import SyncGroup, lose_assignment, sync
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.shard.decision import Decision
from coordinator.shard.timers import Timers

logger = logging.getLogger(__name__)

W = TypeVar("W")

RETRY_MS = 1_000


class ClassicMembership:
    """Serves JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups.

    Refused carries the code of a refusal. What is wrong whatever the group has been checked before
    (see `migration.membership`).
    """

    def __init__(
        self, shards: GroupShards, config: GroupConfig, clock: Clock, scheduler: Scheduler
    ) -> None:
        self._shards = shards
        self._config = config
        self._clock = clock
        self._timers: Timers[TimerKey] = Timers(clock, scheduler, self._fire)
        self._joining: dict[tuple[str, str], Callable[[JoinAnswer], None]] = {}
        self._syncing: dict[tuple[str, str], Callable[[SyncAnswer], None]] = {}

    # Loading and resignation of a shard

    def loaded(self, shard: GroupShard) -> None:
        """Restart every member's session timeout after the shard has loaded.

        A group that is larger than `group.max.size` by now rebalances: its members can commit
        before the last ones are refused.
        """
        for group in tuple(shard.groups.values()):
            for member in group.members.values():
                key = (Due.SESSION, group.group_id, member.member_id)
                self._timers.set(key, member.session_timeout_ms)
            if len(group.members) > self._config.max_size:
                self._rebalance(group, Cause.GROUP_TOO_LARGE)

    def resign(self, shard: GroupShard) -> None:
        """Cancel all timers of a shard's groups; answer pending requests with NOT_COORDINATOR.

        It is called before the shard clears its state.
        """
        for group in shard.groups.values():
            self._let_go(group, Code.NOT_COORDINATOR)

    def close(self) -> None:
        """Cancel all timers."""
        self._timers.close()

    # Conversions from and to consumer groups

    def drop(self, shard: GroupShard, group: Group) -> None:
        """Drop a group that has become a consumer group, and answer its pending requests.

        These are answered with REBALANCE_IN_PROGRESS, so that the members join the consumer group.
        """
        del shard.groups[group.group_id]
        self._let_go(group, Code.REBALANCE_IN_PROGRESS)

    def adopt(self, shard: GroupShard, group: Group, cause: Cause | None) -> None:
        """Add a group that was a consumer group, and rebalance it if there is a cause."""
        shard.groups[group.group_id] = group
        for member in group.members.values():
            key = (Due.SESSION, group.group_id, member.member_id)
            self._timers.set(key, member.session_timeout_ms)
        if cause is not None:
            self._rebalance(group, cause)

    def _rebalance(self, group: Group, cause: Cause) -> None:
        transition = Draft(group, self._config, self._clock.now_ms())
        transition.prepare_rebalance(cause)
        self._install(transition)

    def _let_go(self, group: Group, code: Code) -> None:
        """Cancel a group's timers and answer its pending requests with the code."""
        group_id = group.group_id
        for member_id in (*group.members, *group.pending_join, ""):
            for due in Due:
                self._timers.cancel((due, group_id, member_id))
        for member_id in group.joining:
            answer = JoinAnswer(code=code, member_id=member_id)
            _answer(self._joining, group_id, [(member_id, answer)])
        for member_id in group.syncing:
            _answer(self._syncing, group_id, [(member_id, SyncAnswer(code=code))])

    # Requests

    def join(
        self,
        command: JoinGroup,
        answer: Callable[[JoinAnswer], None],
        ends: Sequence[Record] = (),
    ) -> None:
        """Serve a JoinGroup; `on_answer` is called once, now or when the generation is complete.

        `tombstones`: those of an empty group of another kind, which this one takes the place of.
        """
        transition, immediate_answer = join(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        self._install(transition, join_callback=answer, ends=ends)
        if immediate_answer is not None:
            answer(immediate_answer)

    def sync(self, command: SyncGroup, answer: Callable[[SyncAnswer], None]) -> None:
        """Serve a SyncGroup; `on_answer` is called once, now or when the assignment is there."""
        group, now_ms = self._group(command.group_id), self._clock.now_ms()
        transition, immediate_answer = sync(group, command, self._config, now_ms)
        try:
            self._install(transition, sync_callback=answer)
        except Refused as refused:
            if group is not None:
                lost_transition = lose_assignment(
                    group, command.member_id, refused.code, self._config, now_ms
                )
                self._install(lost_transition)
            raise
        if immediate_answer is not None:
            answer(immediate_answer)

    def heartbeat(self, shard: GroupShard, command: Heartbeat) -> Code:
        """Restart the member's session timer and return the code to answer its heartbeat with.

        It is REBALANCE_IN_PROGRESS if the member is to join again, else NONE.
        """
        shard.classic_counters.heartbeats += 1
        member, code = heartbeat(shard.groups.get(command.group_id), command)
        key = (Due.SESSION, command.group_id, member.member_id)
        self._timers.set(key, member.session_timeout_ms)
        return code

    def leave(self, command: LeaveGroup) -> list[Code]:
        """Serve a LeaveGroup; return one code for each member, in their order."""
        transition, codes = leave(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        if transition is not None:
            self._install(transition)
        return codes

    def prolong_session(self, group: Group, member_id: str) -> None:
        """Restart the session timer of a member that has committed an offset."""
        member = group.members.get(member_id)
        if member is not None and group.phase in (Phase.STABLE, Phase.PREPARING_REBALANCE):
            key = (Due.SESSION, group.group_id, member_id)
            self._timers.set(key, member.session_timeout_ms)

    # Carrying out transitions

    def _group(self, group_id: str) -> Group | None:
        return self._shards.of(group_id).groups.get(group_id)

    def _install(
        self,
        draft: Draft,
        join_callback: Callable[[JoinAnswer], None] | None = None,
        sync_callback: Callable[[SyncAnswer], None] | None = None,
        ends: Sequence[Record] = (),
    ) -> None:
        """Append a transition's records, replace the group, set its timers and give its answers."""
        group = draft.group
        shard = self._shards.of(group.group_id)
        shard.log.execute(Decision([*ends, *draft.records], None))
        shard.groups[group.group_id] = group
        if draft.began is not None:
            shard.classic_counters.count_begun(draft.began.value)
            cause = draft.began.value
            logger.info("%s: generation %d ends: %s", group.group_id, group.generation, cause)
        if draft.took_ms is not None:
            shard.classic_counters.count_completed(draft.took_ms)
            log_arguments = group.group_id, group.generation, len(group.members), draft.took_ms
            logger.info("%s: generation %d has %d members, after %d ms", *log_arguments)
        for key, delay_ms in draft.timers.items():
            if delay_ms is None:
                self._timers.cancel(key)
            else:
                self._timers.set(key, delay_ms)
        # A static member's old id is answered from here too: its own callback, not the newcomer's.
        if draft.waits_as is not None:
            waiter = (group.group_id, draft.waits_as)
            if join_callback is not None:
                self._joining[waiter] = join_callback
            if sync_callback is not None:
                self._syncing[waiter] = sync_callback
        _answer(self._joining, group.group_id, draft.join_answers)
        _answer(self._syncing, group.group_id, draft.sync_answers)

    def _fire(self, key: TimerKey) -> None:
        """Commit the transition that an expired timer brings; retry later if the log refuses it."""
        timer, group_id, member_id = key
        shard = self._shards.owner(group_id)
        group = shard.groups.get(group_id)  # There is none if the shard has resigned.
        if group is None:
            return
        expire = {
            Due.SESSION: partial(expire_session, group, member_id),
            Due.JOIN: partial(expire_join, group),
            Due.SYNC: partial(expire_sync, group),
        }[timer]
        transition = expire(self._config, self._clock.now_ms())
        if transition is None:
            return
        logger.info("%s: %s of %s has run out", group_id, timer.name, member_id or "the group")
        try:
            self._install(transition)
            if timer is Due.SESSION:
                shard.classic_counters.sessions_expired += 1
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self._timers.set(key, RETRY_MS)


def _answer(
    waiting: dict[tuple[str, str], Callable[[W], None]],
    group_id: str,
    answers: Iterable[tuple[str, W]],
) -> None:
    for member_id, answer in answers:
        callback = waiting.pop((group_id, member_id), None)
        if callback is not None:
            callback(answer)
