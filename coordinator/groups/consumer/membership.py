"""The members of consumer groups: joins decisions with their shards, timers and the background.

A request finds: api file -> this -> a decision (`heartbeat`, `leave`) -> shard -> apply. Once the
records of a decision are in the log, the member's timers are set: its session, and while it has
partitions to revoke the rebalance time-out that it asked for. A member whose timer fires is fenced.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TypeAlias

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import GroupForgotten
from coordinator.groups.consumer.config import ConsumerGroupConfig, SettingsOf
from coordinator.groups.consumer.describe import DescribedConsumerGroup, describe
from coordinator.groups.consumer.facts import MemberState, Record
from coordinator.groups.consumer.heartbeat import (
    Beat,
    ConsumerHeartbeat,
    HeartbeatAnswer,
    Seen,
    Surroundings,
    heartbeat,
)
from coordinator.groups.consumer.leave import fence, leave
from coordinator.groups.consumer.regex import accept_resolved, resolve
from coordinator.groups.consumer.state import JOINING_EPOCH, ConsumerGroup, Member
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.shard.decision import Decision
from coordinator.shard.timers import Timers

logger = logging.getLogger(__name__)

RETRY_MS = 1_000


class Due(Enum):
    SESSION = auto()
    REBALANCE = auto()


TimerKey: TypeAlias = tuple[Due, str, str]  # what, group id, member id


class ConsumerMembership:
    """ConsumerGroupHeartbeat and ConsumerGroupDescribe. Refused carries the code of a refusal."""

    def __init__(
        self,
        shards: GroupShards,
        config: ConsumerGroupConfig,
        settings_of: SettingsOf,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
    ) -> None:
        self._shards = shards
        self._config = config
        self._settings_of = settings_of
        self._topics = topics
        self._clock = clock
        self._background = background
        self._timers: Timers[TimerKey] = Timers(clock, scheduler, self._fire)
        self._seen: dict[str, Seen] = {}  # by group id

    # The life of a shard

    def loaded(self, shard: GroupShard) -> None:
        """Every member has its whole session from now on, and its whole rebalance time-out if it
        has partitions to revoke."""
        for group in shard.state.consumer.values():
            if shard.log.unknown.has(group.group_id):
                continue
            session_timeout_ms = self._settings_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                key = (Due.SESSION, group.group_id, member.member_id)
                self._timers.set(key, session_timeout_ms)
                self._set_rebalance(group.group_id, member)

    def resign(self, shard: GroupShard) -> None:
        """Before the shard forgets."""
        for group in shard.state.consumer.values():
            for member_id in group.members:
                self._cancel(group.group_id, member_id)
            self._seen.pop(group.group_id, None)

    def close(self) -> None:
        self._timers.close()

    # Requests

    def heartbeat(self, command: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Join, go on or leave, by the epoch."""
        shard = self._shards.of(command.group_id)
        if command.epoch < JOINING_EPOCH:
            return self._leave(shard, command)
        records: list[GroupForgotten] = []
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            group = self._join_group(shard, command, records)
        beat = heartbeat(group, command, self._around(group))
        shard.log.execute(Decision([*records, *beat.records], None))
        if records:
            shard.groups.pop(command.group_id, None)
        self._follow(group, beat)
        return beat.answer

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Refuses with 69 what isn't a consumer group."""
        shard = self._shards.of(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            raise _no_group(shard, group_id)
        return describe(group, self._config.assignors[0], self._topics)

    def _join_group(
        self, shard: GroupShard, command: ConsumerHeartbeat, records: list[GroupForgotten]
    ) -> ConsumerGroup:
        """A group to begin with; an empty classic one makes way for it. Refuses with 69."""
        group_id = command.group_id
        if command.epoch != JOINING_EPOCH:
            if not _is_taken(shard, group_id):
                raise Refused(Code.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise _no_group(shard, group_id)
        classic = shard.groups.get(group_id)
        is_of_another_kind = shard.log.unknown.is_of_unknown_kind(group_id)
        if is_of_another_kind or (classic is not None and classic.members):
            raise _no_group(shard, group_id)
        if group_id in shard.state.groups:
            records.append(GroupForgotten(group_id))
        return ConsumerGroup(group_id)

    def _leave(self, shard: GroupShard, command: ConsumerHeartbeat) -> HeartbeatAnswer:
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            raise _no_group(shard, command.group_id)
        records, answer, gone = leave(group, command, self._topics)
        shard.log.execute(Decision(records, None))
        if gone is not None:
            self._cancel(group.group_id, gone.member_id)
        return answer

    def _around(self, group: ConsumerGroup) -> Surroundings:
        group_id = group.group_id
        seen = self._seen.get(group_id)
        if seen is None:
            seen = Seen()
        return Surroundings(
            self._topics, self._config, self._settings_of(group_id), seen, self._clock.now_ms()
        )

    # What follows a decision

    def _follow(self, group: ConsumerGroup, beat: Beat) -> None:
        group_id, member = group.group_id, beat.member
        settings = self._settings_of(group_id)
        self._timers.set((Due.SESSION, group_id, member.member_id), settings.session_timeout_ms)
        if beat.has_moved and not self._set_rebalance(group_id, member):
            self._timers.cancel((Due.REBALANCE, group_id, member.member_id))
        if beat.looked_at_topics:
            self._seen.setdefault(group_id, Seen()).hashed_version = self._topics.version
        if beat.resolve:
            self._resolve(group_id, beat.resolve)

    def _set_rebalance(self, group_id: str, member: Member) -> bool:
        """Whether the member has something to revoke, for which it has so much time."""
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.classic is not None:
            return False
        key = (Due.REBALANCE, group_id, member.member_id)
        self._timers.set(key, member.rebalance_timeout_ms)
        return True

    def _cancel(self, group_id: str, member_id: str) -> None:
        for due in Due:
            self._timers.cancel((due, group_id, member_id))

    def _fire(self, key: TimerKey) -> None:
        due, group_id, member_id = key
        shard = self._shards.owner(group_id)
        group = shard.state.consumer.get(group_id)  # none, if it has resigned
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if due is Due.REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS:
            return
        logger.info("%s: %s of %s has run out", group_id, due.name, member_id)
        try:
            shard.log.execute(Decision(fence(group, [member], self._topics), None))
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self._timers.set(key, RETRY_MS)
        else:
            self._cancel(group_id, member_id)

    # Regular expressions

    def _resolve(self, group_id: str, regexes: frozenset[str]) -> None:
        """Find out in the background what they stand for, then let the group know."""
        seen = self._seen.setdefault(group_id, Seen())
        seen.is_resolving = True
        version, began_ms = self._topics.version, self._clock.now_ms()
        names = [topic.name for topic in self._topics]
        found: dict[str, frozenset[str]] = {}

        def done(error: Exception | None) -> None:
            seen.is_resolving = False
            if error is not None:
                logger.error("%s: its expressions can't be resolved: %s", group_id, error)
                return
            self._accept(group_id, found, version, began_ms)
            seen.resolved_version = version

        self._background.run(lambda: found.update(resolve(regexes, names)), done)

    def _accept(
        self, group_id: str, found: dict[str, frozenset[str]], version: int, began_ms: int
    ) -> None:
        shard = self._shards.owner(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            return
        records: list[Record] = accept_resolved(group, found, version, self._topics, began_ms)
        try:
            shard.log.execute(Decision(records, None))
        except Refused as refused:
            logger.warning("%s stays unresolved for now: %s", group_id, refused)


def _no_group(shard: GroupShard, group_id: str) -> Refused:
    what = "is not a consumer group" if _is_taken(shard, group_id) else "not found"
    return Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")


def _is_taken(shard: GroupShard, group_id: str) -> bool:
    """There is a group of this name, of another kind."""
    return (
        group_id in shard.groups
        or group_id in shard.state.offsets.groups
        or shard.log.unknown.is_of_unknown_kind(group_id)
    )
