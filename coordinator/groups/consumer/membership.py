"""Run the members of consumer groups: connects requests and timers with decisions.

Where a request goes: api file -> this -> a decision (`heartbeat`, `leave`) -> `effect_executor` ->
shard -> apply. Once the records of a decision are in the log, its effects are carried out: above
all the member's timers, of its session, and while it has partitions to revoke of the rebalance
time-out that it asked for. A member whose timer fires is fenced. A classic group that a consumer
joins is converted first, and a group of which only classic members are left is converted back (see
`migration`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.state import ClassicGroup
from coordinator.groups.consumer.advance import GroupContext, TransientGroupState
from coordinator.groups.consumer.config import ConsumerGroupConfig, GroupSettingsLookup
from coordinator.groups.consumer.describe import DescribedConsumerGroup, describe_consumer_group
from coordinator.groups.consumer.effect_executor import ConsumerEffectExecutor, ConsumerTimerKey
from coordinator.groups.consumer.effects import (
    ConsumerTimer,
    SetMemberTimer,
    select_rebalance_timer,
)
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    decide_unchanged_heartbeat,
    has_nothing_new,
    join_or_stay_in_group,
    require_member,
)
from coordinator.groups.consumer.leave import leave_temporarily
from coordinator.groups.consumer.record_types import MemberState
from coordinator.groups.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
)
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.conversion import fence_or_downgrade, upgrade_group
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.shard.decision import Decision

logger = logging.getLogger(__name__)

RETRY_MS = 1_000


CAUSE_OF_TIMER: Mapping[ConsumerTimer, GroupEpochCause] = {
    ConsumerTimer.SESSION: GroupEpochCause.SESSION_EXPIRED,
    ConsumerTimer.REBALANCE: GroupEpochCause.NOT_REVOKED,
    ConsumerTimer.JOIN: GroupEpochCause.NOT_JOINED,
    ConsumerTimer.SYNC: GroupEpochCause.SYNC_EXPIRED,
}


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
        classic_membership: ClassicMembership,
        policy: MigrationPolicy,
    ) -> None:
        self._shards = shards
        self._config = config
        self._settings_of = settings_of
        self._topics = topics
        self._clock = clock
        self._policy = policy
        self.executor = ConsumerEffectExecutor(
            shards,
            topics,
            clock,
            scheduler,
            background,
            classic_membership,
            self._fence_member_if_due,
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
                session = SetMemberTimer(
                    ConsumerTimer.SESSION, member.member_id, session_timeout_ms
                )
                self.executor.carry_out_effect(shard, group.group_id, session)
                self.executor.carry_out_effect(
                    shard, group.group_id, select_rebalance_timer(member)
                )

    def cancel_timers_of_resigned_shard(self, shard: GroupShard) -> None:
        """Cancel the timers of all members of a shard, before the shard clears its state."""
        for group in shard.state.consumer.values():
            self.executor.cancel_timers_and_drop_state(shard, group.group_id, group.members)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self.executor.cancel_all_timers()

    # Requests

    def handle_heartbeat(self, command: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Serve a heartbeat by its epoch: the member joins, stays or leaves the group."""
        shard = self._shards.require_shard(command.group_id)
        if command.epoch < JOINING_EPOCH:
            return self._handle_leave(shard, command)
        shard.consumer_counters.heartbeats += 1
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._join_group(shard, command)
        transient_state = shard.transient_states.get(group.group_id)
        if has_nothing_new(group, command, transient_state, self._topics):
            settings = self._settings_of(group.group_id)
            decision = decide_unchanged_heartbeat(
                command.member_id,
                command.epoch,
                settings.session_timeout_ms,
                settings.heartbeat_interval_ms,
            )
        else:
            decision = join_or_stay_in_group(group, command, self.create_context(shard, group))
        return self.executor.execute_decision(shard, group.group_id, decision)

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
            if not shard.is_name_taken(group_id):
                raise Refused(Code.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise _create_not_found_error(shard, group_id)
        if (
            shard.log.unknown_records.is_of_unknown_kind(group_id)
            or group_id in shard.state.streams
        ):
            raise _create_not_found_error(shard, group_id)
        classic = shard.state.classic.get(group_id)
        decision: Decision[Record, ConsumerHeartbeatAnswer]
        if classic is None:
            group = ConsumerGroup(group_id)
            decision = join_or_stay_in_group(group, command, self.create_context(shard, group))
        else:
            decision = self._decide_upgrade(shard, classic, command)
        return self.executor.execute_decision(shard, group_id, decision)

    def _decide_upgrade(
        self, shard: GroupShard, classic: ClassicGroup, command: ConsumerHeartbeat
    ) -> Decision[Record, ConsumerHeartbeatAnswer]:
        """Decide the heartbeat of a member that joins a classic group, which is converted by it."""
        try:
            upgrade = upgrade_group(classic, self._policy, self._topics)
        except Refused as refused:  # Clients don't show the reason.
            logger.warning("%s stays a classic group: %s", command.group_id, refused)
            raise
        group = upgrade.response
        decision = join_or_stay_in_group(group, command, self.create_context(shard, group))
        sessions = [
            SetMemberTimer(
                ConsumerTimer.SESSION, member.member_id, member.classic.session_timeout_ms
            )
            for member in group.members.values()
            if member.classic is not None and not _is_replaced(member, command)
        ]
        return Decision(
            [*upgrade.records, *decision.records],
            decision.response,
            (*upgrade.effects, *sessions, *decision.effects),
        )

    def _handle_leave(
        self, shard: GroupShard, command: ConsumerHeartbeat
    ) -> ConsumerHeartbeatAnswer:
        """Serve the heartbeat of a member that leaves, for good or to come back."""
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            raise _create_not_found_error(shard, command.group_id)
        member = require_member(group, command.member_id, command.instance_id)
        if command.instance_id is not None and command.epoch == AWAY_EPOCH:
            decision = leave_temporarily(group, member)
            self.executor.execute_decision(shard, command.group_id, decision)
        else:
            self.fence_members(shard, group, [member], GroupEpochCause.MEMBER_LEFT)
        return ConsumerHeartbeatAnswer(command.member_id, command.epoch)

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
        now_ms = self._clock.now_ms()
        decision = fence_or_downgrade(group, members, cause, self._policy, self._topics, now_ms)
        self.executor.execute_decision(shard, group.group_id, decision)

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
            self._clock.monotonic_ns(),
        )

    def _fence_member_if_due(self, key: ConsumerTimerKey) -> None:
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
            retry = SetMemberTimer(timer, member_id, RETRY_MS)
            self.executor.carry_out_effect(shard, group_id, retry)
        else:
            shard.consumer_counters.sessions_expired += timer is ConsumerTimer.SESSION


def _is_still_due(timer: ConsumerTimer, member: ConsumerGroupMember) -> bool:
    """Return whether an expired timer still applies to its member, by the member's present state.

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


def _is_replaced(member: ConsumerGroupMember, command: ConsumerHeartbeat) -> bool:
    """Return whether the member that joins takes the place of this one, by its instance id."""
    return command.instance_id is not None and member.instance_id == command.instance_id


def _create_not_found_error(shard: GroupShard, group_id: str) -> Refused:
    what = "is not a consumer group" if shard.is_name_taken(group_id) else "not found"
    return Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
