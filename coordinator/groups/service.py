"""The group coordinator of this broker: joins decisions with their shards, timers and callers.

A request finds: api file -> this service -> a decision -> shard -> apply. A decision about a
rebalance comes back as a draft (see `classic.draft`): its records are appended, then the draft's
group takes its place, its timers are set, and whoever waits is answered. JoinGroup and SyncGroup
may be answered long after they came, so they bring a plain callback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.describe import DescribedGroup, ListedGroup, describe, listed
from coordinator.groups.classic.draft import (
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
from coordinator.groups.classic.sync import SyncGroup, sync
from coordinator.groups.classic.validate import Committer, validate_offset_commit
from coordinator.groups.state import GroupCodec, GroupShardState, Record
from coordinator.offsets.commit import CommitOffsets, commit_offsets
from coordinator.offsets.fetch import FetchedOffset, fetch_all_offsets, fetch_offsets
from coordinator.offsets.forget import forget_topic
from coordinator.shard.decision import Decision, TransactionEnded
from coordinator.shard.life import Life
from coordinator.shard.loading import LoadSlice
from coordinator.shard.placement import shard_of
from coordinator.shard.shard import Log, Shard
from coordinator.shard.timers import Timers

logger = logging.getLogger(__name__)

W = TypeVar("W")

RETRY_MS = 1_000


class GroupShard:
    """One partition of `__consumer_offsets`: durable state, and the volatile groups beside it."""

    def __init__(self, name: str, log: Log, clock: Clock) -> None:
        self.state = GroupShardState()
        self.groups: dict[str, Group] = {}
        self.log: Shard[Record] = Shard(name, log, GroupCodec(), self.state.apply, clock)

    def load_slice(self) -> bool:
        """True: all is loaded, and the groups are made of it."""
        if not self.log.load_slice():
            return False
        self.groups = {name: Group.of(saved) for name, saved in self.state.groups.items()}
        return True

    def forget(self) -> None:
        """The shard has resigned."""
        self.groups = {}
        self.state.groups.clear()
        self.state.offsets.committed.clear()
        self.state.offsets.pending.clear()


class GroupService:
    """What the api files of groups and offsets call. Refused carries the code of a refusal."""

    def __init__(
        self,
        logs: Sequence[Log],
        config: GroupConfig,
        offset_metadata_max_bytes: int,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self.shards = [
            GroupShard(f"__consumer_offsets-{i}", log, clock) for i, log in enumerate(logs)
        ]
        self._config = config
        self._offset_metadata_max_bytes = offset_metadata_max_bytes
        self._clock = clock
        self._timers: Timers[TimerKey] = Timers(clock, scheduler, self._fire)
        self._joining: dict[tuple[str, str], Callable[[JoinAnswer], None]] = {}
        self._syncing: dict[tuple[str, str], Callable[[SyncAnswer], None]] = {}

    # The life of a shard

    def load(self) -> None:
        """Load every shard, at a stretch."""
        for load_slice in self.loading():
            while not load_slice():
                pass

    def loading(self) -> list[LoadSlice]:
        """What loads the shards, slice by slice."""
        return [partial(self._load_slice, shard) for shard in self.shards]

    def resign(self, index: int) -> None:
        """Give up a shard; whoever waits for a rebalance there is to look for the coordinator."""
        shard = self.shards[index]
        shard.log.resign()
        for group in shard.groups.values():
            for member_id in (*group.members, ""):
                for due in Due:
                    self._timers.cancel((due, group.group_id, member_id))
        joining = [waiter for waiter in self._joining if waiter[0] in shard.groups]
        syncing = [waiter for waiter in self._syncing if waiter[0] in shard.groups]
        shard.forget()
        for waiter in joining:
            self._joining.pop(waiter)(JoinAnswer(code=Code.NOT_COORDINATOR))
        for waiter in syncing:
            self._syncing.pop(waiter)(SyncAnswer(code=Code.NOT_COORDINATOR))

    def elect(self, index: int) -> LoadSlice:
        """Take a shard up again; what this returns loads it, slice by slice."""
        shard = self.shards[index]
        shard.log.elect()
        return partial(self._load_slice, shard)

    def _load_slice(self, shard: GroupShard) -> bool:
        """Every member of every group has its whole session from the last slice on."""
        if not shard.load_slice():
            return False
        for group in shard.groups.values():
            for member in group.members.values():
                key = (Due.SESSION, group.group_id, member.member_id)
                self._timers.set(key, member.session_timeout_ms)
        return True

    def close(self) -> None:
        self._timers.close()

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group lives in."""
        return shard_of(group_id, len(self.shards))

    # Membership.

    def join(self, command: JoinGroup, answer: Callable[[JoinAnswer], None]) -> None:
        """`answer` is called once, now or when the generation is complete."""
        draft, at_once = join(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        self._install(draft, join_callback=answer)
        if at_once is not None:
            answer(at_once)

    def sync(self, command: SyncGroup, answer: Callable[[SyncAnswer], None]) -> None:
        """`answer` is called once, now or when the assignment is there."""
        draft, at_once = sync(
            self._group(command.group_id), command, self._config, self._clock.now_ms()
        )
        self._install(draft, sync_callback=answer)
        if at_once is not None:
            answer(at_once)

    def heartbeat(self, command: Heartbeat) -> Code:
        """NONE, or REBALANCE_IN_PROGRESS (27)."""
        member, code = heartbeat(self._group(command.group_id), command)
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

    def describe(self, group_id: str) -> DescribedGroup | None:
        """None: there is no such group, not even one that has only offsets."""
        shard = self._shard(group_id)
        return describe(shard.groups.get(group_id), group_id, shard.state.offsets)

    def list_groups(self) -> list[ListedGroup]:
        """The groups of all shards. 14 while one is being loaded."""
        for shard in self.shards:
            if shard.log.life is Life.LOADING:
                shard.log.check_active()
        return [
            found for shard in self.shards for found in listed(shard.groups, shard.state.offsets)
        ]

    # Offsets.

    def commit_offsets(
        self, command: CommitOffsets, committer: Committer, *, unknown_group: Code
    ) -> list[Code]:
        """One code an offset. `unknown_group`: the code for a generation of a group that isn't.

        A group that has only offsets is one: its generation may be anything, the member is unknown.
        """
        shard = self._shard(command.group_id)
        group = shard.groups.get(command.group_id)
        if shard.state.offsets.has_group(command.group_id):
            unknown_group = Code.UNKNOWN_MEMBER_ID
        validate_offset_commit(
            group,
            committer,
            transactional=command.producer is not None,
            unknown_group=unknown_group,
        )
        now_ms = self._clock.now_ms()
        decision = commit_offsets(command, self._offset_metadata_max_bytes, now_ms)
        codes = shard.log.execute(decision)
        if group is not None and command.producer is None:
            self._prolong_session(group, committer.member_id)
        return codes

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int, UUID | None]] | None,
        *,
        require_stable: bool,
    ) -> list[FetchedOffset]:
        """The committed offsets of these partitions; of all that have one if None."""
        state = self._shard(group_id).state.offsets
        if partitions is None:
            return fetch_all_offsets(state, group_id, require_stable=require_stable)
        return fetch_offsets(state, group_id, partitions, require_stable=require_stable)

    def forget_topic(self, topic: str) -> None:
        """The topic has been deleted: no group has offsets there any more."""
        for shard in self.shards:
            try:
                shard.log.execute(forget_topic(shard.state.offsets, topic))
            except Refused as refused:
                logger.warning("some offsets of the deleted topic %s are kept: %s", topic, refused)

    def end_transaction(self, partition: int, ended: TransactionEnded) -> None:
        """A marker for one partition of `__consumer_offsets`.

        When this returns, the pending offsets of the producer are committed or gone.
        """
        if not 0 <= partition < len(self.shards):
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"__consumer_offsets-{partition}")
        self.shards[partition].log.end_transaction(ended)

    # How a draft becomes true.

    def _shard(self, group_id: str) -> GroupShard:
        """Refuses with 14 and 16 unless the shard is active."""
        shard = self.shards[shard_of(group_id, len(self.shards))]
        shard.log.check_active()
        return shard

    def _group(self, group_id: str) -> Group | None:
        return self._shard(group_id).groups.get(group_id)

    def _install(
        self,
        draft: Draft,
        join_callback: Callable[[JoinAnswer], None] | None = None,
        sync_callback: Callable[[SyncAnswer], None] | None = None,
    ) -> None:
        group = draft.group
        shard = self._shard(group.group_id)
        shard.log.execute(Decision(draft.records, None))
        is_void = group.phase is Phase.EMPTY and not group.pending_join
        if is_void and group.group_id not in shard.state.groups:
            shard.groups.pop(group.group_id, None)
        else:
            shard.groups[group.group_id] = group
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

    def _prolong_session(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None and group.phase in (Phase.STABLE, Phase.PREPARING_REBALANCE):
            key = (Due.SESSION, group.group_id, member_id)
            self._timers.set(key, member.session_timeout_ms)

    def _fire(self, key: TimerKey) -> None:
        due, group_id, member_id = key
        shard = self.shards[self.partition_of(group_id)]
        group = shard.groups.get(group_id)  # none, if the shard has resigned
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
