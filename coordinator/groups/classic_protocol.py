"""Serve requests of the classic protocol, whatever the kind of the group.

    the group is              goes to
    a consumer group          the decisions of `migration`; members of both protocols are in it
    an empty consumer group   the classic group that takes its place, if it is a join
    an empty streams group    the same; one with members refuses classic ones
    anything else             the classic membership

Where a request goes: api file -> this -> a decision (`migration.join`, `sync`, `heartbeat`,
`leave`) -> shard -> apply, or -> `classic.membership`. A classic member in a consumer group has
three timers: its own session, the time to join once it has been told to, and the time to sync once
it has joined. One that lets any of them pass is fenced.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import JoinAnswer, SyncAnswer
from coordinator.groups.classic.group_transition import ClassicGroupConfig, check_group_id
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.groups.classic.join import JoinGroup, validate_join_request
from coordinator.groups.classic.leave import LeaveGroup
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.sync import SyncGroup
from coordinator.groups.consumer.deletion import build_consumer_group_tombstones
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.membership import ConsumerMembership
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.heartbeat import process_classic_heartbeat
from coordinator.groups.migration.join import join_classic_member
from coordinator.groups.migration.leave import select_leaving_members
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.migration.sync import sync_classic_member
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.streams.deletion import build_streams_group_tombstones
from coordinator.groups.streams.membership import StreamsMembership
from coordinator.shard.coordinator_state import CoordinatorState


class ClassicProtocolService:
    """Serves JoinGroup, SyncGroup, Heartbeat and LeaveGroup for groups of either kind.

    Refused carries the code of a refusal.
    """

    def __init__(
        self,
        shards: GroupShards,
        classic_membership: ClassicMembership,
        consumer_membership: ConsumerMembership,
        streams_membership: StreamsMembership,
        policy: MigrationPolicy,
        config: ClassicGroupConfig,
        topics: TopicList,
    ) -> None:
        self._shards = shards
        self._config = config
        self._classic_membership = classic_membership
        self._consumer_membership = consumer_membership
        self._consumer_executor = consumer_membership.executor
        self._streams_executor = streams_membership.executor
        self._policy = policy
        self._topics = topics

    def handle_join(self, command: JoinGroup, on_answer: Callable[[JoinAnswer], None]) -> None:
        """Serve a JoinGroup; `on_answer` is called once, now or when the generation is complete."""
        validate_join_request(command, self._config)
        group_id = command.group_id
        shard = self._shards.require_shard(group_id)
        if shard.log.unknown_records.is_of_unknown_kind(group_id):
            raise Refused(
                Code.INCONSISTENT_GROUP_PROTOCOL, f"{group_id} is a group of another kind"
            )
        group = shard.state.consumer.get(group_id)
        streams_group = shard.state.streams.get(group_id)
        if streams_group is not None:
            if streams_group.members:
                raise Refused(
                    Code.INCONSISTENT_GROUP_PROTOCOL, f"{group_id} is a streams group with members"
                )
            self._classic_membership.handle_join(
                command, on_answer, tombstones=build_streams_group_tombstones(streams_group)
            )
            self._streams_executor.cancel_timers_and_drop_state(shard, group_id)
        elif group is None:
            self._classic_membership.handle_join(command, on_answer)
        elif group.members:
            on_answer(self._join_consumer_group(shard, group, command))
        else:
            self._classic_membership.handle_join(
                command, on_answer, tombstones=build_consumer_group_tombstones(group)
            )
            self._consumer_executor.cancel_timers_and_drop_state(shard, group_id)

    def _join_consumer_group(
        self, shard: GroupShard, group: ConsumerGroup, command: JoinGroup
    ) -> JoinAnswer:
        """Serve the JoinGroup of a classic member in a consumer group that has members."""
        context = self._consumer_membership.create_context(shard, group)
        try:
            decision = join_classic_member(group, command, context, self._policy)
        except Refused as refused:  # As in Kafka, the answer has no member id.
            return JoinAnswer(code=refused.code)
        return self._consumer_executor.execute_decision(shard, group.group_id, decision)

    def handle_sync(self, command: SyncGroup, on_answer: Callable[[SyncAnswer], None]) -> None:
        """Serve a SyncGroup; `on_answer` is called once, now or when the assignment is there."""
        check_group_id(command.group_id)
        shard = self._shards.require_shard(command.group_id)
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            self._classic_membership.handle_sync(command, on_answer)
            return
        decision = sync_classic_member(group, command, self._topics)
        on_answer(self._consumer_executor.execute_decision(shard, group.group_id, decision))

    def handle_heartbeat(self, command: Heartbeat) -> Code:
        """Serve a heartbeat and return the code to answer it with.

        It is REBALANCE_IN_PROGRESS if the member is to join again, else NONE. It is NONE for
        anybody while the shard is being loaded: no session is counted down until it is.
        """
        check_group_id(command.group_id)
        shard = self._shards.find_shard(command.group_id)
        if shard.log.coordinator_state is CoordinatorState.LOADING:
            return Code.NONE
        shard.check_group_servable(command.group_id)
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._classic_membership.handle_heartbeat(shard, command)
        shard.consumer_counters.heartbeats += 1
        decision = process_classic_heartbeat(group, command)
        return self._consumer_executor.execute_decision(shard, group.group_id, decision)

    def handle_leave(self, command: LeaveGroup) -> list[Code]:
        """Serve a LeaveGroup by the group's kind, classic or consumer; return a code per member."""
        check_group_id(command.group_id)
        shard = self._shards.require_shard(command.group_id)
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._classic_membership.handle_leave(command)
        leaving = select_leaving_members(group, command)
        self._consumer_membership.fence_members(
            shard, group, leaving.members, GroupEpochCause.MEMBER_LEFT
        )
        return leaving.codes
