"""Run the members of streams groups: connects requests and timers with decisions.

Where a request goes: api file -> this -> a decision (`heartbeat`, `leave`) -> `effect_executor` ->
shard -> apply. Once the records of a decision are in the log, its effects are carried out: above
all the member's timers, of its session, and while it has tasks to revoke of the rebalance time-out
that it asked for. A member whose timer fires is fenced. An empty classic group makes way for a
streams group of its name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.state import ClassicGroupPhase, GroupForgotten
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.groups.streams.command import (
    StreamsGroupContext,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
    TransientStreamsState,
)
from coordinator.groups.streams.config import StreamsGroupConfig, StreamsSettingsLookup
from coordinator.groups.streams.configure import RefusedAfterConfiguring
from coordinator.groups.streams.describe import DescribedStreamsGroup, describe_streams_group
from coordinator.groups.streams.effect_executor import (
    StreamsEffectExecutor,
    StreamsTimerKey,
    get_or_create_transient_streams_state,
)
from coordinator.groups.streams.effects import (
    CountStreamsTarget,
    SetStreamsTimer,
    StreamsTimer,
    select_revocation_timer,
)
from coordinator.groups.streams.epoch_cause import StreamsEpochCause
from coordinator.groups.streams.heartbeat import process_streams_heartbeat
from coordinator.groups.streams.leave import fence_streams_member, leave_streams_group_for_now
from coordinator.groups.streams.member_check import require_streams_member
from coordinator.groups.streams.record_types import StreamsMemberState
from coordinator.groups.streams.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    StreamsGroup,
    StreamsGroupMember,
)
from coordinator.groups.streams.target import (
    build_target_records,
    compute_task_targets,
    count_moved_tasks,
    has_assignment_interval_passed,
)
from coordinator.groups.streams.unchanged import (
    decide_unchanged_streams_heartbeat,
    has_no_streams_news,
)
from coordinator.shard.decision import Decision

logger = logging.getLogger(__name__)

RETRY_MS = 1_000

CAUSE_OF_TIMER: Mapping[StreamsTimer, StreamsEpochCause] = {
    StreamsTimer.SESSION: StreamsEpochCause.SESSION_EXPIRED,
    StreamsTimer.REBALANCE: StreamsEpochCause.NOT_REVOKED,
}


class StreamsMembership:
    """Serves StreamsGroupHeartbeat and StreamsGroupDescribe requests.

    Refused carries the code of a refusal.
    """

    def __init__(
        self,
        shards: GroupShards,
        config: StreamsGroupConfig,
        settings_of: StreamsSettingsLookup,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        classic_membership: ClassicMembership,
    ) -> None:
        self._shards = shards
        self._config = config
        self._settings_of = settings_of
        self._topics = topics
        self._clock = clock
        self._classic_membership = classic_membership
        self.executor = StreamsEffectExecutor(clock, scheduler, self._handle_timer)

    # Loading and resignation of a shard

    def start_member_timers(self, shard: GroupShard) -> None:
        """Restart every member's session timeout after the shard has loaded.

        A member that has tasks to revoke gets its whole rebalance time-out for that, too.
        """
        for group in shard.state.streams.values():
            if shard.log.unknown_records.has_records_of(group.group_id):
                continue
            session_timeout_ms = self._settings_of(group.group_id).session_timeout_ms
            for member in group.members.values():
                session = SetStreamsTimer(
                    StreamsTimer.SESSION, member.member_id, session_timeout_ms
                )
                self.executor.carry_out_effect(shard, group.group_id, session)
                self.executor.carry_out_effect(
                    shard, group.group_id, select_revocation_timer(member)
                )

    def cancel_timers_of_resigned_shard(self, shard: GroupShard) -> None:
        """Cancel the timers of all members of a shard, before the shard clears its state."""
        for group in shard.state.streams.values():
            self.executor.cancel_timers_and_drop_state(shard, group.group_id, group.members)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self.executor.cancel_all_timers()

    # Requests

    def handle_heartbeat(self, command: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        """Serve a heartbeat by its epoch: the member joins, stays or leaves the group."""
        group_id = command.group_id
        shard = self._shards.require_shard(group_id)
        if command.epoch < JOINING_EPOCH:
            return self._handle_leave(shard, command)
        shard.streams_counters.heartbeats += 1
        group = shard.state.streams.get(group_id)
        if group is not None:
            decision = self._decide_heartbeat(shard, group, command)
            return self.executor.execute_decision(shard, group_id, decision)
        if not command.is_joining and not shard.is_name_taken(group_id):
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return self._create_group_and_answer(shard, command)

    def _decide_heartbeat(
        self, shard: GroupShard, group: StreamsGroup, command: StreamsHeartbeat
    ) -> Decision[Record, StreamsHeartbeatAnswer]:
        context = self.create_context(shard, group.group_id)
        if has_no_streams_news(group, command, context):
            return decide_unchanged_streams_heartbeat(
                command.member_id,
                command.epoch,
                command.endpoint_epoch,
                context.settings.session_timeout_ms,
                context.settings.heartbeat_interval_ms,
                context.settings.task_offset_interval_ms,
            )
        try:
            return process_streams_heartbeat(group, command, context, is_new=False)
        except RefusedAfterConfiguring as refused:
            if refused.configured is not context.transient_state.configured:
                transient_state = get_or_create_transient_streams_state(shard, group.group_id)
                transient_state.refused_topology = refused.configured, shard.log.end_offset
            raise

    def _create_group_and_answer(
        self, shard: GroupShard, command: StreamsHeartbeat
    ) -> StreamsHeartbeatAnswer:
        """Serve the heartbeat of a member that joins a new group, or an empty classic one.

        Raises Refused: GROUP_ID_NOT_FOUND, and as `process_streams_heartbeat` does.
        """
        group_id = command.group_id
        classic = shard.state.classic.get(group_id)
        is_other = classic is not None and classic.phase is not ClassicGroupPhase.EMPTY
        if (
            not command.is_joining
            or is_other
            or group_id in shard.state.consumer
            or shard.log.unknown_records.is_of_unknown_kind(group_id)
        ):
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
        context = self.create_context(shard, group_id)
        step = process_streams_heartbeat(StreamsGroup(group_id), command, context, is_new=True)
        records: list[Record] = [] if classic is None else [GroupForgotten(group_id)]
        decision = Decision([*records, *step.records], step.response, step.effects)
        answer = self.executor.execute_decision(shard, group_id, decision)
        if classic is not None:
            logger.info("%s is a streams group from now on", group_id)
            self._classic_membership.cancel_timers_and_answer_pending(
                classic, Code.REBALANCE_IN_PROGRESS
            )
        return answer

    def _handle_leave(self, shard: GroupShard, command: StreamsHeartbeat) -> StreamsHeartbeatAnswer:
        """Serve the heartbeat of a member that leaves, for good or to come back."""
        group = self._require_group(shard, command.group_id)
        if command.shutdown_application:
            transient_state = self._transient_state_of(shard, group.group_id)
            transient_state.shutdown_requester = (
                transient_state.shutdown_requester or command.member_id
            )
            shard.transient_streams_states[group.group_id] = transient_state
        member = require_streams_member(group, command.member_id, command.instance_id)
        if command.instance_id is not None and command.epoch == AWAY_EPOCH:
            decision = leave_streams_group_for_now(group, member)
        else:
            decision = fence_streams_member(group, member, StreamsEpochCause.MEMBER_LEFT)
        self.executor.execute_decision(shard, group.group_id, decision)
        return StreamsHeartbeatAnswer(command.member_id, command.epoch)

    def describe_group(self, group_id: str) -> DescribedStreamsGroup:
        """Describe a streams group.

        Raises Refused: GROUP_ID_NOT_FOUND for anything else.
        """
        shard = self._shards.require_shard(group_id)
        group = self._require_group(shard, group_id)
        transient_state = self._transient_state_of(shard, group_id)
        configured = transient_state.configured
        refused = transient_state.refused_topology
        if refused is not None and shard.log.end_offset > refused[1]:
            configured = refused[0]
        return describe_streams_group(group, transient_state, configured)

    def _require_group(self, shard: GroupShard, group_id: str) -> StreamsGroup:
        group = shard.state.streams.get(group_id)
        if group is None:
            what = "is not a streams group" if shard.is_name_taken(group_id) else "not found"
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return group

    def _transient_state_of(self, shard: GroupShard, group_id: str) -> TransientStreamsState:
        return shard.transient_streams_states.get(group_id) or TransientStreamsState()

    def create_context(self, shard: GroupShard, group_id: str) -> StreamsGroupContext:
        """Return the context for a decision about a group."""
        return StreamsGroupContext(
            self._topics,
            self._config,
            self._settings_of(group_id),
            self._transient_state_of(shard, group_id),
            self.executor.is_delayed(group_id),
            self._clock.now_ms(),
            self._clock.monotonic_ns(),
        )

    # Timers

    def _handle_timer(self, key: StreamsTimerKey) -> None:
        """Fence a member whose timer has expired; retry later if the log refuses it."""
        timer, group_id, member_id = key
        shard = self._shards.find_shard(group_id)
        group = shard.state.streams.get(group_id)  # none if the shard has resigned
        if group is None:
            return
        if timer is StreamsTimer.INITIAL_DELAY:
            self._compute_delayed_target(shard, group)
            return
        member = group.members.get(member_id)
        if member is None or not _is_still_due(timer, member):
            return
        decision = fence_streams_member(group, member, CAUSE_OF_TIMER[timer])
        try:
            self.executor.execute_decision(shard, group_id, decision)
        except Refused as refused:
            logger.warning("%s stays as it is for now: %s", group_id, refused)
            self.executor.carry_out_effect(
                shard, group_id, SetStreamsTimer(timer, member_id, RETRY_MS)
            )
        else:
            shard.streams_counters.sessions_expired += timer is StreamsTimer.SESSION

    def _compute_delayed_target(self, shard: GroupShard, group: StreamsGroup) -> None:
        """Compute the first target of a group whose initial delay has passed.

        If the log refuses it, the next heartbeat computes it.
        """
        began_ns = self._clock.monotonic_ns()
        transient_state = self._transient_state_of(shard, group.group_id)
        configured = transient_state.configured
        settings, now_ms = self._settings_of(group.group_id), self._clock.now_ms()
        if (
            not group.members
            or configured is None
            or group.epoch <= group.target_epoch
            or not has_assignment_interval_passed(group, settings.assignment_interval_ms, now_ms)
        ):
            return
        standby_count = int(dict(group.assignment_configs).get("num.standby.replicas", "0"))
        targets = compute_task_targets(
            group, group.members, configured, standby_count, transient_state.task_offsets
        )
        before = group.target_assignment
        records: list[Record] = [*build_target_records(group, before, targets, group.epoch, now_ms)]
        count = CountStreamsTarget(count_moved_tasks(before, targets.items()), began_ns)
        try:
            self.executor.execute_decision(shard, group.group_id, Decision(records, None, (count,)))
        except Refused as refused:
            logger.warning("%s is assigned nothing for now: %s", group.group_id, refused)


def _is_still_due(timer: StreamsTimer, member: StreamsGroupMember) -> bool:
    """Return whether an expired timer still applies to its member, by the member's present state.

    One that has left to come back has its session, whatever it had to revoke.
    """
    return timer is not StreamsTimer.REBALANCE or (
        member.state is StreamsMemberState.UNREVOKED_TASKS and member.epoch != AWAY_EPOCH
    )
