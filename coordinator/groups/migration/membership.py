"""Serve requests of the classic protocol, whatever the kind of the group.

    the group is              goes to
    a consumer group          the decisions of this package; members of both protocols are in it
    an empty consumer group   the classic group that takes its place, if it is a join
    anything else             the classic membership

Where a request goes: api file -> this -> a decision (`join`, `sync`, `heartbeat`, `leave`) ->
shard -> apply, or -> classic.membership. A classic member in a consumer group has three timers: its
own session, the time to join once it has been told to, and the time to sync once it has joined. One
that lets any of them pass is fenced.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import GroupConfig, JoinAnswer, SyncAnswer, check_group_id
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.groups.classic.join import JoinGroup, check_join
from coordinator.groups.classic.leave import LeaveGroup
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.sync import SyncGroup
from coordinator.groups.consumer.cause import Cause
from coordinator.groups.consumer.forget import forget
from coordinator.groups.consumer.membership import ConsumerMembership, Due
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.conversion import Conversions
from coordinator.groups.migration.heartbeat import has_to_join
from coordinator.groups.migration.join import join
from coordinator.groups.migration.leave import leaving
from coordinator.groups.migration.member import classic_member
from coordinator.groups.migration.sync import sync
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.shard.decision import Decision
from coordinator.shard.life import Life


class ClassicProtocol:
    """Serves JoinGroup, SyncGroup, Heartbeat and LeaveGroup for groups of either kind.

    Refused carries the code of a refusal.
    """

    def __init__(
        self,
        shards: GroupShards,
        classic: ClassicMembership,
        consumer: ConsumerMembership,
        conversions: Conversions,
        config: GroupConfig,
        topics: TopicList,
    ) -> None:
        self._shards = shards
        self._config = config
        self._classic = classic
        self._consumer = consumer
        self._conversions = conversions
        self._topics = topics

    def join(self, command: JoinGroup, answer: Callable[[JoinAnswer], None]) -> None:
        """Serve a JoinGroup; `on_answer` is called once, now or when the generation is complete."""
        check_join(command, self._config)
        group_id = command.group_id
        shard = self._shards.of(group_id)
        if shard.log.unknown.is_of_unknown_kind(group_id):
            raise Refused(
                Code.INCONSISTENT_GROUP_PROTOCOL, f"{group_id} is a group of another kind"
            )
        group = shard.state.consumer.get(group_id)
        if group is None:
            self._classic.join(command, answer)
        elif group.members:
            answer(self._join(shard, group, command))
        else:
            self._classic.join(command, answer, ends=forget(group))
            self._consumer.drop(shard, group_id, ())

    def _join(self, shard: GroupShard, group: ConsumerGroup, command: JoinGroup) -> JoinAnswer:
        """Serve the JoinGroup of a classic member in a consumer group that has members."""
        group_id = group.group_id
        try:
            context = self._consumer.around(shard, group)
            result = join(group, command, context, self._conversions.policy)
        except Refused as refused:  # As in Kafka, the answer has no member id.
            return JoinAnswer(code=refused.code)
        if result.downgraded is not None:
            member_ids = tuple(group.members)
            shard.log.execute(Decision(result.records, None))
            self._consumer.drop(shard, group_id, member_ids)
            self._conversions.downgraded(shard, result.downgraded, rebalances=result.rebalances)
        elif result.step is not None:
            shard.log.execute(Decision(result.records, None))
            member_id = result.step.member.member_id
            self._consumer.follow(shard, group, result.step, command.session_timeout_ms)
            self._consumer.cancel_timer(Due.JOIN, group_id, member_id)
            timeout_ms = command.rebalance_timeout_ms
            self._consumer.set_timer(Due.SYNC, group_id, member_id, timeout_ms)
        return result.answer

    def sync(self, command: SyncGroup, answer: Callable[[SyncAnswer], None]) -> None:
        """Serve a SyncGroup; `on_answer` is called once, now or when the assignment is there."""
        check_group_id(command.group_id)
        group = self._shards.of(command.group_id).state.consumer.get(command.group_id)
        if group is None:
            self._classic.sync(command, answer)
            return
        member, sync_answer = sync(group, command, self._topics)
        if sync_answer.code is Code.NONE:
            assert member.classic is not None
            session_ms = member.classic.session_timeout_ms
            self._consumer.cancel_timer(Due.SYNC, group.group_id, member.member_id)
            self._consumer.set_timer(Due.SESSION, group.group_id, member.member_id, session_ms)
        else:
            self._consumer.give_time_to_join(group.group_id, member)
        answer(sync_answer)

    def heartbeat(self, command: Heartbeat) -> Code:
        """Serve a heartbeat and return the code to answer it with.

        It is REBALANCE_IN_PROGRESS if the member is to join again, else NONE. It is NONE for
        anybody while the shard is being loaded: no session is counted down until it is.
        """
        check_group_id(command.group_id)
        shard = self._shards.owner(command.group_id)
        if shard.log.life is Life.LOADING:
            return Code.NONE
        shard.check(command.group_id)
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._classic.heartbeat(shard, command)
        shard.consumer_counters.heartbeats += 1
        member, classic = classic_member(
            group, command.member_id, command.instance_id, command.generation
        )
        session_ms = classic.session_timeout_ms
        self._consumer.set_timer(Due.SESSION, group.group_id, member.member_id, session_ms)
        if not has_to_join(group, member):
            return Code.NONE
        self._consumer.give_time_to_join(group.group_id, member)
        return Code.REBALANCE_IN_PROGRESS

    def leave(self, command: LeaveGroup) -> list[Code]:
        """Serve a LeaveGroup; return one code for each member, in their order."""
        check_group_id(command.group_id)
        shard = self._shards.of(command.group_id)
        group = shard.state.consumer.get(command.group_id)
        if group is None:
            return self._classic.leave(command)
        leaving_members, codes = leaving(group, command)
        self._consumer.put_out(shard, group, leaving_members, Cause.MEMBER_LEFT)
        return codes
