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
from coordinator.groups.consumer.advance import AdvanceResult, GroupContext, TransientGroupState
from coordinator.groups.consumer.config import ConsumerGroupConfig, GroupSettingsLookup
from coordinator.groups.consumer.describe import DescribedConsumerGroup, describe_consumer_group
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    join_or_stay_in_group,
)
from coordinator.groups.consumer.leave import build_fencing_records, leave_group
from coordinator.groups.consumer.record_types import MemberState, Record
from coordinator.groups.consumer.regex import build_resolution_records, resolve_regexes
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
    ConsumerGroupPhase,
)
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.conversion import GroupConverter
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record as ShardRecord
from coordinator.shard.decision import Decision
from coordinator.shard.timers import KeyedTimers

logger = logging.getLogger(__name__)

RETRY_MS = 1_000


class ConsumerTimer(IntEnum):  # integers are quick keys of dictionaries
    """Lists the kinds of timers of a member of a consumer group."""

    SESSION = auto()
    REBALANCE = auto()
    JOIN = auto()  # of a classic member
    SYNC = auto()  # of a classic member


CAUSE_OF_TIMER: Mapping[ConsumerTimer, GroupEpochCause] = {
    ConsumerTimer.SESSION: GroupEpochCause.SESSION_EXPIRED,
    ConsumerTimer.REBALANCE: GroupEpochCause.NOT_REVOKED,
    ConsumerTimer.JOIN: GroupEpochCause.NOT_JOINED,
    ConsumerTimer.SYNC: GroupEpochCause.SYNC_EXPIRED,
}

ConsumerTimerKey: TypeAlias = tuple[ConsumerTimer, str, str]  # kind, group id, member id


class ConsumerMembership:
    """Serves ConsumerGroupHeartbeat and ConsumerGroupDescribe requests.

    Refused carries the code of a refusal.
    """

    def __init__(
        self,
        shards: GroupShards,
        config: ConsumerGroupConfig,
        settings_of: GroupSettingsLookup,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        converter: GroupConverter,
    ) -> None:
        self._shards = shards
        self._config = config
        self._settings_of = settings_of
        self._topics = topics
        self._clock = clock
        self._background = background
        self._converter = converter
        self._timers: KeyedTimers[ConsumerTimerKey] = KeyedTimers(
            clock, scheduler, self._handle_timer
        )

    # Loading and resignation of a shard

    def start_member_timers(self, shard: GroupShard) -> None:
        """Restart every member's session timeout after the shard has loaded.

        A member that has partitions to revoke gets its whole rebalance time-out for that, too.
        """
        for group in shard.state.consumer.values():
            if shard.log.unknown_records.has_records_of(group.group_id):
                continue
            session_timeout_ms = self._settings_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                key = (ConsumerTimer.SESSION, group.group_id, member.member_id)
                self._timers.set_timer(key, session_timeout_ms)
                self._set_rebalance_timer(group.group_id, member)

    def release_groups(self, shard: GroupShard) -> None:
        """Cancel the timers of all members of a shard, before the shard clears its state."""
        for group in shard.state.consumer.values():
            self.drop_group(shard, group.group_id, group.members)

    def close(self) -> None:
        """Cancel all timers."""
        self._timers.close()

    # Requests

    def handle_heartbeat(self, command: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Serve a heartbeat: the member joins, goes on or leaves, by its epoch."""
        shard = self._shards.require_shard(command.group_id)
        if command.epoch < JOINING_EPOCH:
            return self._handle_leave(shard, command)
        shard.consumer_counters.heartbeats += 1
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._join_group(shard, command)
        context = self.create_context(shard, group)
        result = join_or_stay_in_group(group, command, context)
        shard.log.execute_decision(Decision(result.records, None))
        self.complete_advance(
            shard, group, result.advance_result, context.settings.session_timeout_ms
        )
        return result.answer

    def describe_group(self, group_id: str) -> DescribedConsumerGroup:
        """Describe a consumer group.

        Raises Refused: GROUP_ID_NOT_FOUND for anything else.
        """
        shard = self._shards.require_shard(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            raise _create_not_found_error(shard, group_id)
        return describe_consumer_group(group, self._config.assignors[0], self._topics)

    def _join_group(self, shard: GroupShard, command: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Serve the heartbeat of a member that joins a new group, or a classic one to be converted.

        Raises Refused: GROUP_ID_NOT_FOUND, and as `join_or_stay_in_group` does.
        """
        group_id = command.group_id
        if command.epoch != JOINING_EPOCH:
            if not _is_name_taken(shard, group_id):
                raise Refused(Code.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise _create_not_found_error(shard, group_id)
        if shard.log.unknown_records.is_of_unknown_kind(group_id):
            raise _create_not_found_error(shard, group_id)
        classic = shard.groups.get(group_id)
        records: list[ShardRecord] = []
        group = ConsumerGroup(group_id)
        if classic is not None:
            try:
                records, group = self._converter.prepare_upgrade(classic)
            except Refused as refused:  # Clients don't show the reason.
                logger.warning("%s stays a classic group: %s", group_id, refused)
                raise
        context = self.create_context(shard, group)
        result = join_or_stay_in_group(group, command, context)
        shard.log.execute_decision(Decision([*records, *result.records], None))
        joined_group = shard.state.consumer[group_id]
        if classic is not None:
            self._converter.complete_upgrade(shard, classic)
            for member in joined_group.members.values():
                if member.classic is not None:
                    session_ms = member.classic.session_timeout_ms
                    self.set_timer(ConsumerTimer.SESSION, group_id, member.member_id, session_ms)
        self.complete_advance(
            shard, joined_group, result.advance_result, context.settings.session_timeout_ms
        )
        return result.answer

    def _handle_leave(
        self, shard: GroupShard, command: ConsumerHeartbeat
    ) -> ConsumerHeartbeatAnswer:
        """Serve the heartbeat of a member that leaves, for good or to come back."""
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            raise _create_not_found_error(shard, command.group_id)
        answer, records, leaving_member = leave_group(group, command)
        if leaving_member is None:
            shard.log.execute_decision(Decision(records, None))
        else:
            self.fence_members(shard, group, [leaving_member], GroupEpochCause.MEMBER_LEFT)
        return answer

    def fence_members(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        members: Sequence[ConsumerGroupMember],
        cause: GroupEpochCause,
    ) -> None:
        """Remove members from their group; convert it if only classic members are left."""
        if not members:
            return
        converted = self._converter.prepare_downgrade(group, members)
        if converted is not None:
            records, classic_group = converted
            member_ids = tuple(group.members)
            shard.log.execute_decision(Decision(records, None))
            self.drop_group(shard, group.group_id, member_ids)
            self._converter.complete_downgrade(shard, classic_group)
            return
        shard.log.execute_decision(
            Decision(build_fencing_records(group, members, self._topics), None)
        )
        for member in members:
            self._cancel_member_timers(group.group_id, member.member_id)
        self._count_rebalance_start(shard, group, cause, *(member.member_id for member in members))
        self._count_rebalance_end(shard, group)

    def create_context(self, shard: GroupShard, group: ConsumerGroup) -> GroupContext:
        """Return the context for a decision about a group."""
        group_id = group.group_id
        transient_state = shard.transient_states.get(group_id)
        if transient_state is None:
            transient_state = TransientGroupState()
        return GroupContext(
            self._topics,
            self._config,
            self._settings_of(group_id),
            transient_state,
            self._clock.now_ms(),
        )

    # Effects of a decision

    def complete_advance(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        result: AdvanceResult,
        session_timeout_ms: int,
    ) -> None:
        """Apply the effects of an advance after its records: timers, counters, regexes to resolve.

        The member may speak either protocol.
        """
        group_id, member = group.group_id, result.member
        self._timers.set_timer(
            (ConsumerTimer.SESSION, group_id, member.member_id), session_timeout_ms
        )
        if result.epoch_cause is not None:
            self._count_rebalance_start(shard, group, result.epoch_cause, member.member_id)
        if result.has_moved:
            if not self._set_rebalance_timer(group_id, member):
                self._timers.cancel_timer((ConsumerTimer.REBALANCE, group_id, member.member_id))
            self._count_rebalance_end(shard, group)
        if result.has_checked_topics:
            shard.transient_states.setdefault(
                group_id, TransientGroupState()
            ).hashed_topics_version = self._topics.version
        if result.regexes_to_resolve:
            self._resolve_regexes(shard, group_id, result.regexes_to_resolve)

    def set_timer(
        self, timer: ConsumerTimer, group_id: str, member_id: str, timeout_ms: int
    ) -> None:
        self._timers.set_timer((timer, group_id, member_id), timeout_ms)

    def cancel_timer(self, timer: ConsumerTimer, group_id: str, member_id: str) -> None:
        self._timers.cancel_timer((timer, group_id, member_id))

    def start_join_timer(self, group_id: str, member: ConsumerGroupMember) -> None:
        """Start the time-out for a classic member to join again, unless it is running."""
        key = (ConsumerTimer.JOIN, group_id, member.member_id)
        if key not in self._timers:
            self._timers.set_timer(key, member.rebalance_timeout_ms)

    def drop_group(self, shard: GroupShard, group_id: str, member_ids: Iterable[str]) -> None:
        """Cancel a group's timers and drop its transient state.

        It is no consumer group any more, or not this broker's.
        """
        for member_id in member_ids:
            self._cancel_member_timers(group_id, member_id)
        shard.transient_states.pop(group_id, None)

    def _count_rebalance_start(
        self, shard: GroupShard, group: ConsumerGroup, cause: GroupEpochCause, *member_ids: str
    ) -> None:
        shard.consumer_counters.count_rebalance_start(cause.value)
        description = " ".join([cause.value, *member_ids])
        logger.info("%s: epoch %d begins: %s", group.group_id, group.epoch, description)
        transient_state = shard.transient_states.setdefault(group.group_id, TransientGroupState())
        if transient_state.unstable_since_ms is None:
            transient_state.unstable_since_ms = self._clock.now_ms()

    def _count_rebalance_end(self, shard: GroupShard, group: ConsumerGroup) -> None:
        """Count a rebalance as complete if the group is Stable or Empty by now."""
        transient_state = shard.transient_states.get(group.group_id)
        if transient_state is None or transient_state.unstable_since_ms is None:
            return
        if group.phase not in (ConsumerGroupPhase.STABLE, ConsumerGroupPhase.EMPTY):
            return
        elapsed_ms = self._clock.now_ms() - transient_state.unstable_since_ms
        shard.consumer_counters.count_rebalance_end(elapsed_ms)
        log_arguments = group.group_id, len(group.members), group.target_epoch, elapsed_ms
        logger.info("%s: all %d members are at epoch %d, after %d ms", *log_arguments)
        transient_state.unstable_since_ms = None

    def _set_rebalance_timer(self, group_id: str, member: ConsumerGroupMember) -> bool:
        """Start the rebalance timer of a member if it has partitions to revoke.

        Returns whether it has.
        """
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.classic is not None:
            return False
        key = (ConsumerTimer.REBALANCE, group_id, member.member_id)
        self._timers.set_timer(key, member.rebalance_timeout_ms)
        return True

    def _cancel_member_timers(self, group_id: str, member_id: str) -> None:
        for due in ConsumerTimer:
            self._timers.cancel_timer((due, group_id, member_id))

    def _handle_timer(self, key: ConsumerTimerKey) -> None:
        """Fence a member whose timer has expired; retry later if the log refuses it."""
        timer, group_id, member_id = key
        shard = self._shards.find_shard(group_id)
        group = shard.state.consumer.get(group_id)  # none if the shard has resigned
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if not _is_still_due(timer, member):
            return
        try:
            self.fence_members(shard, group, [member], CAUSE_OF_TIMER[timer])
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self._timers.set_timer(key, RETRY_MS)
        else:
            shard.consumer_counters.sessions_expired += timer is ConsumerTimer.SESSION

    # Regular expressions

    def _resolve_regexes(self, shard: GroupShard, group_id: str, regexes: frozenset[str]) -> None:
        """Resolve a group's regular expressions in the background, then write the outcome."""
        transient_state = shard.transient_states.setdefault(group_id, TransientGroupState())
        transient_state.is_resolving = True
        topics_version, started_at_ms = self._topics.version, self._clock.now_ms()
        names = [topic.name for topic in self._topics]
        topics_by_regex: dict[str, frozenset[str]] = {}

        def on_resolved(error: Exception | None) -> None:
            transient_state.is_resolving = False
            if error is not None:
                logger.error("%s: its expressions can't be resolved: %s", group_id, error)
            elif self._accept_resolved_regexes(
                group_id, topics_by_regex, topics_version, started_at_ms
            ):
                transient_state.resolved_topics_version = topics_version

        self._background.run_in_background(
            lambda: topics_by_regex.update(resolve_regexes(regexes, names)), on_resolved
        )

    def _accept_resolved_regexes(
        self,
        group_id: str,
        topics_by_regex: dict[str, frozenset[str]],
        topics_version: int,
        started_at_ms: int,
    ) -> bool:
        """Append the records of resolved expressions; return False if that isn't possible now."""
        shard = self._shards.find_shard(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            return False
        epoch = group.epoch
        records: list[Record] = build_resolution_records(
            group, topics_by_regex, topics_version, self._topics, started_at_ms
        )
        try:
            shard.log.execute_decision(Decision(records, None))
        except Refused as refused:
            logger.warning("%s stays unresolved for now: %s", group_id, refused)
            return False
        if group.epoch != epoch:
            self._count_rebalance_start(shard, group, GroupEpochCause.REGEX_RESOLVED)
        return True


def _is_still_due(timer: ConsumerTimer, member: ConsumerGroupMember) -> bool:
    """Whether an expired timer still applies to its member, by the member's present state.

    One that has left to come back has its session, whatever it had to revoke; one that speaks the
    consumer protocol by now doesn't join or sync.
    """
    match timer:
        case ConsumerTimer.REBALANCE:
            return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch != AWAY_EPOCH
        case ConsumerTimer.JOIN | ConsumerTimer.SYNC:
            return member.classic is not None
        case _:
            return True


def _create_not_found_error(shard: GroupShard, group_id: str) -> Refused:
    what = "is not a consumer group" if _is_name_taken(shard, group_id) else "not found"
    return Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")


def _is_name_taken(shard: GroupShard, group_id: str) -> bool:
    """Whether there is a group of this name of another kind."""
    return (
        group_id in shard.groups
        or group_id in shard.state.offsets.groups
        or shard.log.unknown_records.is_of_unknown_kind(group_id)
    )
