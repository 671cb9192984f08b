"""The members of classic groups: joins decisions with their shards, timers and callers.

A request finds: api file -> this -> a decision -> shard -> apply. A decision about a rebalance
comes back as a draft (see `classic.draft`): its records are appended, then the draft's group takes
its place, its timers are set, and whoever waits is answered. JoinGroup and SyncGroup may be
answered long after they came, so they bring a plain callback.
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
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups. Refused carries the code
    of a refusal. What is wrong whatever the group has been looked at (see `migration.membership`).
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

    # The life of a shard

    def loaded(self, shard: GroupShard) -> None:
        """Every member of every group has its whole session from now on. A group that is larger
        than it may be by now rebalances: its members can commit before the last ones are refused.
        """
        for group in tuple(shard.groups.values()):
            for member in group.members.values():
                key = (Due.SESSION, group.group_id, member.member_id)
                self._timers.set(key, member.session_timeout_ms)
            if len(group.members) > self._config.max_size:
                self._rebalance(group, Cause.GROUP_TOO_LARGE)

    def resign(self, shard: GroupShard) -> None:
        """Before the shard forgets; who waits for a rebalance is to look for the coordinator."""
        for group in shard.groups.values():
            self._let_go(group, Code.NOT_COORDINATOR)

    def close(self) -> None:
        self._timers.close()

    # Groups that change their kind

    def drop(self, shard: GroupShard, group: Group) -> None:
        """It is a consumer group by now: who waits for a round is to join that."""
        del shard.groups[group.group_id]
        self._let_go(group, Code.REBALANCE_IN_PROGRESS)

    def adopt(self, shard: GroupShard, group: Group, cause: Cause | None) -> None:
        """It was a consumer group. If there is a cause to, it rebalances at once."""
        shard.groups[group.group_id] = group
        for member in group.members.values():
            key = (Due.SESSION, group.group_id, member.member_id)
            self._timers.set(key, member.session_timeout_ms)
        if cause is not None:
            self._rebalance(group, cause)

    def _rebalance(self, group: Group, cause: Cause) -> None:
        draft = Draft(group, self._config, self._clock.now_ms())
        draft.prepare_rebalance(cause)
        self._install(draft)

    def _let_go(self, group: Group, code: Code) -> None:
        """Its timers are off, and whoever waits is told the code."""
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
        """`answer` is called once, now or when the generation is complete. `ends`: tombstones of
        an empty group of another kind, which this one takes the place of."""
        draft, at_once = join(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        self._install(draft, join_callback=answer, ends=ends)
        if at_once is not None:
            answer(at_once)

    def sync(self, command: SyncGroup, answer: Callable[[SyncAnswer], None]) -> None:
        """`answer` is called once, now or when the assignment is there."""
        group, now_ms = self._group(command.group_id), self._clock.now_ms()
        draft, at_once = sync(group, command, self._config, now_ms)
        try:
            self._install(draft, sync_callback=answer)
        except Refused as refused:
            if group is not None:
                lost = lose_assignment(group, command.member_id, refused.code, self._config, now_ms)
                self._install(lost)
            raise
        if at_once is not None:
            answer(at_once)

    def heartbeat(self, shard: GroupShard, command: Heartbeat) -> Code:
        """NONE, or REBALANCE_IN_PROGRESS (27)."""
        shard.classic_counters.heartbeats += 1
        member, code = heartbeat(shard.groups.get(command.group_id), command)
        key = (Due.SESSION, command.group_id, member.member_id)
        self._timers.set(key, member.session_timeout_ms)
        return code

    def leave(self, command: LeaveGroup) -> list[Code]:
        """One code a member, in their order."""
        draft, codes = leave(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        if draft is not None:
            self._install(draft)
        return codes

    def prolong_session(self, group: Group, member_id: str) -> None:
        """The member has been heard of, by an offset that it committed."""
        member = group.members.get(member_id)
        if member is not None and group.phase in (Phase.STABLE, Phase.PREPARING_REBALANCE):
            key = (Due.SESSION, group.group_id, member_id)
            self._timers.set(key, member.session_timeout_ms)

    # How a draft becomes true

    def _group(self, group_id: str) -> Group | None:
        return self._shards.of(group_id).groups.get(group_id)

    def _install(
        self,
        draft: Draft,
        join_callback: Callable[[JoinAnswer], None] | None = None,
        sync_callback: Callable[[SyncAnswer], None] | None = None,
        ends: Sequence[Record] = (),
    ) -> None:
        group = draft.group
        shard = self._shards.of(group.group_id)
        shard.log.execute(Decision([*ends, *draft.records], None))
        shard.groups[group.group_id] = group
        if draft.began is not None:
            shard.classic_counters.count_begun(draft.began.value)
            why = draft.began.value
            logger.info("%s: generation %d ends: %s", group.group_id, group.generation, why)
        if draft.took_ms is not None:
            shard.classic_counters.count_completed(draft.took_ms)
            what = group.group_id, group.generation, len(group.members), draft.took_ms
            logger.info("%s: generation %d has %d members, after %d ms", *what)
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
        due, group_id, member_id = key
        shard = self._shards.owner(group_id)
        group = shard.groups.get(group_id)  # none, if it has resigned
        if group is None:
            return
        expire = {
            Due.SESSION: partial(expire_session, group, member_id),
            Due.JOIN: partial(expire_join, group),
            Due.SYNC: partial(expire_sync, group),
        }[due]
        draft = expire(self._config, self._clock.now_ms())
        if draft is None:
            return
        logger.info("%s: %s of %s has run out", group_id, due.name, member_id or "the group")
        try:
            self._install(draft)
            if due is Due.SESSION:
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
