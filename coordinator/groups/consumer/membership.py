"""Run the members of consumer groups: connects decisions with shards, timers and the background.

Where a request goes: api file -> this -> a decision (`heartbeat`, `leave`) -> shard -> apply. Once
the records of a decision are in the log, the member's timers are set: its session, and while it has
partitions to revoke the rebalance time-out that it asked for. A member whose timer fires is fenced.
A classic group that a consumer joins is converted first, and a group of which only classic members
are left is converted back (see `migration`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, auto
from typing import TypeAlias

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.consumer.advance import Seen, Step, Surroundings
from coordinator.groups.consumer.cause import Cause
from coordinator.groups.consumer.config import ConsumerGroupConfig, SettingsOf
from coordinator.groups.consumer.describe import DescribedConsumerGroup, describe
from coordinator.groups.consumer.facts import MemberState, Record
from coordinator.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    HeartbeatAnswer,
    heartbeat,
)
from coordinator.groups.consumer.leave import fence, leave
from coordinator.groups.consumer.regex import accept_resolved, resolve
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    ConsumerGroup,
    GroupPhase,
    Member,
)
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.conversion import Conversions
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record as ShardRecord
from coordinator.shard.decision import Decision
from coordinator.shard.timers import Timers

logger = logging.getLogger(__name__)

RETRY_MS = 1_000


class Due(IntEnum):  # integers are quick keys of dictionaries
    """Lists the kinds of timers of a member of a consumer group."""

    SESSION = auto()
    REBALANCE = auto()
    JOIN = auto()  # of a classic member
    SYNC = auto()  # of a classic member


CAUSES: Mapping[Due, Cause] = {
    Due.SESSION: Cause.SESSION_EXPIRED,
    Due.REBALANCE: Cause.NOT_REVOKED,
    Due.JOIN: Cause.NOT_JOINED,
    Due.SYNC: Cause.SYNC_EXPIRED,
}

TimerKey: TypeAlias = tuple[Due, str, str]  # kind, group id, member id


class ConsumerMembership:
    """Serves ConsumerGroupHeartbeat and ConsumerGroupDescribe requests.

    Refused carries the code of a refusal.
    """

    def __init__(
        self,
        shards: GroupShards,
        config: ConsumerGroupConfig,
        settings_of: SettingsOf,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        conversions: Conversions,
    ) -> None:
        self._shards = shards
        self._config = config
        self._settings_of = settings_of
        self._topics = topics
        self._clock = clock
        self._background = background
        self._conversions = conversions
        self._timers: Timers[TimerKey] = Timers(clock, scheduler, self._fire)

    # Loading and resignation of a shard

    def loaded(self, shard: GroupShard) -> None:
        """Restart every member's session timeout after the shard has loaded.

        A member that has partitions to revoke gets its whole rebalance time-out for that, too.
        """
        for group in shard.state.consumer.values():
            if shard.log.unknown.has(group.group_id):
                continue
            session_timeout_ms = self._settings_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                key = (Due.SESSION, group.group_id, member.member_id)
                self._timers.set(key, session_timeout_ms)
                self._set_rebalance(group.group_id, member)

    def resign(self, shard: GroupShard) -> None:
        """Cancel the timers of all members of a shard, before the shard clears its state."""
        for group in shard.state.consumer.values():
            self.drop(shard, group.group_id, group.members)

    def close(self) -> None:
        """Cancel all timers."""
        self._timers.close()

    # Requests

    def heartbeat(self, command: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Serve a heartbeat: the member joins, goes on or leaves, by its epoch."""
        shard = self._shards.of(command.group_id)
        if command.epoch < JOINING_EPOCH:
            return self._leave(shard, command)
        shard.consumer_counters.heartbeats += 1
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._join_group(shard, command)
        context = self.around(shard, group)
        result = heartbeat(group, command, context)
        shard.log.execute(Decision(result.records, None))
        self.follow(shard, group, result.step, context.settings.session_timeout_ms)
        return result.answer

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Describe a consumer group.

        Raises Refused: GROUP_ID_NOT_FOUND for anything else.
        """
        shard = self._shards.of(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            raise _no_group(shard, group_id)
        return describe(group, self._config.assignors[0], self._topics)

    def _join_group(self, shard: GroupShard, command: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Serve the heartbeat of a member that joins a new group, or a classic one to be converted.

        Raises Refused: GROUP_ID_NOT_FOUND, and as `process_heartbeat` does.
        """
        group_id = command.group_id
        if command.epoch != JOINING_EPOCH:
            if not _is_taken(shard, group_id):
                raise Refused(Code.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise _no_group(shard, group_id)
        if shard.log.unknown.is_of_unknown_kind(group_id):
            raise _no_group(shard, group_id)
        classic = shard.groups.get(group_id)
        records: list[ShardRecord] = []
        group = ConsumerGroup(group_id)
        if classic is not None:
            try:
                records, group = self._conversions.upgrade(classic)
            except Refused as refused:  # Clients don't show the reason.
                logger.warning("%s stays a classic group: %s", group_id, refused)
                raise
        context = self.around(shard, group)
        result = heartbeat(group, command, context)
        shard.log.execute(Decision([*records, *result.records], None))
        joined_group = shard.state.consumer[group_id]
        if classic is not None:
            self._conversions.upgraded(shard, classic)
            for member in joined_group.members.values():
                if member.classic is not None:
                    session_ms = member.classic.session_timeout_ms
                    self.set_timer(Due.SESSION, group_id, member.member_id, session_ms)
        self.follow(shard, joined_group, result.step, context.settings.session_timeout_ms)
        return result.answer

    def _leave(self, shard: GroupShard, command: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Serve the heartbeat of a member that leaves, for good or to come back."""
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            raise _no_group(shard, command.group_id)
        answer, records, leaving_member = leave(group, command)
        if leaving_member is None:
            shard.log.execute(Decision(records, None))
        else:
            self.put_out(shard, group, [leaving_member], Cause.MEMBER_LEFT)
        return answer

    def put_out(
        self, shard: GroupShard, group: ConsumerGroup, members: Sequence[Member], cause: Cause
    ) -> None:
        """Remove members from their group; convert it if only classic members are left."""
        if not members:
            return
        converted = self._conversions.downgrade(group, members)
        if converted is not None:
            records, classic_group = converted
            member_ids = tuple(group.members)
            shard.log.execute(Decision(records, None))
            self.drop(shard, group.group_id, member_ids)
            self._conversions.downgraded(shard, classic_group)
            return
        shard.log.execute(Decision(fence(group, members, self._topics), None))
        for member in members:
            self._cancel(group.group_id, member.member_id)
        self._count_begun(shard, group, cause, *(member.member_id for member in members))
        self._count_completed(shard, group)

    def around(self, shard: GroupShard, group: ConsumerGroup) -> Surroundings:
        """Return the context for a decision about a group."""
        group_id = group.group_id
        transient_state = shard.seen.get(group_id)
        if transient_state is None:
            transient_state = Seen()
        return Surroundings(
            self._topics,
            self._config,
            self._settings_of(group_id),
            transient_state,
            self._clock.now_ms(),
        )

    # Effects of a decision

    def follow(
        self, shard: GroupShard, group: ConsumerGroup, step: Step, session_timeout_ms: int
    ) -> None:
        """Set a member's timers, count, and resolve expressions, once its records are written.

        The member may speak either protocol.
        """
        group_id, member = group.group_id, step.member
        self._timers.set((Due.SESSION, group_id, member.member_id), session_timeout_ms)
        if step.began is not None:
            self._count_begun(shard, group, step.began, member.member_id)
        if step.has_moved:
            if not self._set_rebalance(group_id, member):
                self._timers.cancel((Due.REBALANCE, group_id, member.member_id))
            self._count_completed(shard, group)
        if step.looked_at_topics:
            shard.seen.setdefault(group_id, Seen()).hashed_version = self._topics.version
        if step.resolve:
            self._resolve(shard, group_id, step.resolve)

    def set_timer(self, due: Due, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timers.set((due, group_id, member_id), timeout_ms)

    def cancel_timer(self, due: Due, group_id: str, member_id: str) -> None:
        self._timers.cancel((due, group_id, member_id))

    def give_time_to_join(self, group_id: str, member: Member) -> None:
        """Start the time-out for a classic member to join again, unless it is running."""
        key = (Due.JOIN, group_id, member.member_id)
        if key not in self._timers:
            self._timers.set(key, member.rebalance_timeout_ms)

    def drop(self, shard: GroupShard, group_id: str, member_ids: Iterable[str]) -> None:
        """Cancel a group's timers and drop its transient state.

        It is no consumer group any more, or not this broker's.
        """
        for member_id in member_ids:
            self._cancel(group_id, member_id)
        shard.seen.pop(group_id, None)

    def _count_begun(
        self, shard: GroupShard, group: ConsumerGroup, cause: Cause, *member_ids: str
    ) -> None:
        shard.consumer_counters.count_begun(cause.value)
        description = " ".join([cause.value, *member_ids])
        logger.info("%s: epoch %d begins: %s", group.group_id, group.epoch, description)
        transient_state = shard.seen.setdefault(group.group_id, Seen())
        if transient_state.unstable_ms is None:
            transient_state.unstable_ms = self._clock.now_ms()

    def _count_completed(self, shard: GroupShard, group: ConsumerGroup) -> None:
        """Count a rebalance as complete if the group is Stable or Empty by now."""
        transient_state = shard.seen.get(group.group_id)
        if transient_state is None or transient_state.unstable_ms is None:
            return
        if group.phase not in (GroupPhase.STABLE, GroupPhase.EMPTY):
            return
        elapsed_ms = self._clock.now_ms() - transient_state.unstable_ms
        shard.consumer_counters.count_completed(elapsed_ms)
        log_arguments = group.group_id, len(group.members), group.target_epoch, elapsed_ms
        logger.info("%s: all %d members are at epoch %d, after %d ms", *log_arguments)
        transient_state.unstable_ms = None

    def _set_rebalance(self, group_id: str, member: Member) -> bool:
        """Start the rebalance timer of a member if it has partitions to revoke.

        Returns whether it has.
        """
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.classic is not None:
            return False
        key = (Due.REBALANCE, group_id, member.member_id)
        self._timers.set(key, member.rebalance_timeout_ms)
        return True

    def _cancel(self, group_id: str, member_id: str) -> None:
        for due in Due:
            self._timers.cancel((due, group_id, member_id))

    def _fire(self, key: TimerKey) -> None:
        """Fence a member whose timer has expired; retry later if the log refuses it."""
        timer, group_id, member_id = key
        shard = self._shards.owner(group_id)
        group = shard.state.consumer.get(group_id)  # none if the shard has resigned
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if not _is_due(timer, member):
            return
        try:
            self.put_out(shard, group, [member], CAUSES[timer])
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self._timers.set(key, RETRY_MS)
        else:
            shard.consumer_counters.sessions_expired += timer is Due.SESSION

    # Regular expressions

    def _resolve(self, shard: GroupShard, group_id: str, regexes: frozenset[str]) -> None:
        """Resolve a group's regular expressions in the background, then write the outcome."""
        transient_state = shard.seen.setdefault(group_id, Seen())
        transient_state.is_resolving = True
        topics_version, started_at_ms = self._topics.version, self._clock.now_ms()
        names = [topic.name for topic in self._topics]
        topics_by_regex: dict[str, frozenset[str]] = {}

        def on_resolved(error: Exception | None) -> None:
            transient_state.is_resolving = False
            if error is not None:
                logger.error("%s: its expressions can't be resolved: %s", group_id, error)
            elif self._accept(group_id, topics_by_regex, topics_version, started_at_ms):
                transient_state.resolved_version = topics_version

        self._background.run(lambda: topics_by_regex.update(resolve(regexes, names)), on_resolved)

    def _accept(
        self, group_id: str, found: dict[str, frozenset[str]], version: int, began_ms: int
    ) -> bool:
        """Append the records of resolved expressions; return False if that isn't possible now."""
        shard = self._shards.owner(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            return False
        epoch = group.epoch
        records: list[Record] = accept_resolved(group, found, version, self._topics, began_ms)
        try:
            shard.log.execute(Decision(records, None))
        except Refused as refused:
            logger.warning("%s stays unresolved for now: %s", group_id, refused)
            return False
        if group.epoch != epoch:
            self._count_begun(shard, group, Cause.REGEX_RESOLVED)
        return True


def _is_due(due: Due, member: Member) -> bool:
    """Whether the member has still not done what its timer was for.

    One that has left to come back has its session, whatever it had to revoke; one that speaks the
    consumer protocol by now doesn't join or sync.
    """
    match due:
        case Due.REBALANCE:
            return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch != AWAY_EPOCH
        case Due.JOIN | Due.SYNC:
            return member.classic is not None
        case _:
            return True


def _no_group(shard: GroupShard, group_id: str) -> Refused:
    what = "is not a consumer group" if _is_taken(shard, group_id) else "not found"
    return Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")


def _is_taken(shard: GroupShard, group_id: str) -> bool:
    """Whether there is a group of this name of another kind."""
    return (
        group_id in shard.groups
        or group_id in shard.state.offsets.groups
        or shard.log.unknown.is_of_unknown_kind(group_id)
    )
