"""Provide the group coordinator of this broker: its shards, and requests for groups of any kind.

Requests for one kind of group, or for offsets, go from the api files to the part that serves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.describe import DescribedGroup, ListedGroup, describe_classic_group
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic_protocol import ClassicProtocolService
from coordinator.groups.consumer.config import ConsumerGroupConfig, GroupSettingsLookup
from coordinator.groups.consumer.membership import ConsumerMembership
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.policy import BIDIRECTIONAL, MigrationPolicy
from coordinator.groups.offset_expiry import OffsetExpiry
from coordinator.groups.offsets import GroupOffsets
from coordinator.groups.shard import OFFSETS_TOPIC, GroupShard, GroupShards
from coordinator.groups.streams.config import StreamsGroupConfig, StreamsSettingsLookup
from coordinator.groups.streams.membership import StreamsMembership
from coordinator.offsets.config import OffsetConfig
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.loading import LoadSlice
from coordinator.shard.map_order import sort_like_concurrent_map, sort_like_timeline_map
from coordinator.shard.shard import IsLastSlice
from coordinator.shard.shard_log import ShardLog
from coordinator.shard.slices import SlicedExecutor


class GroupService:
    """Assembles the parts of the group coordinator and loads, elects and resigns its shards."""

    def __init__(
        self,
        logs: Sequence[ShardLog],
        config: ClassicGroupConfig,
        offset_config: OffsetConfig,
        consumer_config: ConsumerGroupConfig,
        settings_of: GroupSettingsLookup,
        streams_config: StreamsGroupConfig,
        streams_settings_of: StreamsSettingsLookup,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        policy: MigrationPolicy = BIDIRECTIONAL,
    ) -> None:
        self._shards = GroupShards(logs, clock)
        self._listing_order = sort_like_concurrent_map(OFFSETS_TOPIC, len(logs))
        self.classic = ClassicMembership(self._shards, config, clock, scheduler)
        self.offsets = GroupOffsets(self._shards, self.classic, offset_config, clock)
        self.sliced_executor = SlicedExecutor(clock, scheduler)
        self._offset_expiry = OffsetExpiry(self._shards, offset_config, clock, scheduler)
        self.consumer = ConsumerMembership(
            self._shards,
            consumer_config,
            settings_of,
            topics,
            clock,
            scheduler,
            background,
            self.classic,
            policy,
        )
        self.streams = StreamsMembership(
            self._shards,
            streams_config,
            streams_settings_of,
            topics,
            clock,
            scheduler,
            self.classic,
        )
        self.classic_protocol = ClassicProtocolService(
            self._shards, self.classic, self.consumer, self.streams, policy, config, topics
        )

    # Loading, election and resignation of shards

    @property
    def shards(self) -> Sequence[GroupShard]:
        """Return the shards, by partition of `__consumer_offsets`."""
        return self._shards.all

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group lives in."""
        return self._shards.partition_of(group_id)

    def list_shard_loaders(self) -> list[LoadSlice]:
        """Return, for each shard, the function that loads its next slice."""
        return [partial(self._load_next_shard_slice, index) for index in range(len(self.shards))]

    def resign_shard(self, shard_index: int) -> None:
        """Give up a shard and answer its pending requests with NOT_COORDINATOR."""
        shard = self.shards[shard_index]
        shard.log.mark_resigned()
        self.classic.cancel_timers_of_resigned_shard(shard)
        self._offset_expiry.cancel_sweeps(shard_index)
        self.consumer.cancel_timers_of_resigned_shard(shard)
        self.streams.cancel_timers_of_resigned_shard(shard)
        shard.clear_state()

    def elect_shard(self, shard_index: int) -> LoadSlice:
        """Take a shard up again; return the function that loads its next slice."""
        self.shards[shard_index].log.restart_loading_as_leader()
        return partial(self._load_next_shard_slice, shard_index)

    def _load_next_shard_slice(self, shard_index: int) -> IsLastSlice:
        """Load the next slice of a shard; after the last start its timers and return True."""
        shard = self.shards[shard_index]
        if not shard.load_next_slice():
            return False
        if shard.log.coordinator_state is CoordinatorState.ACTIVE:
            self.offsets.forget_topics_deleted_while_failed(shard_index)
        if shard.log.coordinator_state is CoordinatorState.FAILED:
            self.offsets.forget_topics_deleted_during_load(shard)
        if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
            return True
        self.classic.restart_sessions_after_load(shard)
        self.offsets.forget_topics_deleted_during_load(shard)
        self._offset_expiry.schedule_sweeps(shard_index)
        self.consumer.start_member_timers(shard)
        self.streams.start_member_timers(shard)
        return True

    def close(self) -> None:
        """Cancel all timers and sliced work."""
        self.classic.cancel_all_timers()
        self.sliced_executor.stop_all_work()
        self._offset_expiry.cancel_all_sweeps()
        self.consumer.cancel_all_timers()
        self.streams.cancel_all_timers()

    # Groups of every kind

    def describe_classic_group(self, group_id: str) -> DescribedGroup:
        """Describe a classic group, or one that has only offsets.

        Raises Refused: GROUP_ID_NOT_FOUND for anything else.
        """
        shard = self._shards.require_shard(group_id)
        if group_id in shard.state.consumer or group_id in shard.state.streams:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        described = describe_classic_group(
            shard.state.classic.get(group_id), group_id, shard.state.offsets
        )
        if described is None:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return described

    def list_groups_unless_loading(self) -> list[ListedGroup]:
        """Return the groups of all shards but those that have failed or resigned, in Kafka's order.

        Raises Refused: COORDINATOR_LOAD_IN_PROGRESS while a shard is being loaded.
        """
        for shard in self.shards:
            if shard.log.coordinator_state is CoordinatorState.LOADING:
                shard.log.check_active()
        listed: list[ListedGroup] = []
        for index in self._listing_order:
            found = {group.group_id: group for group in self.shards[index].list_groups()}
            listed += [found[group_id] for group_id in sort_like_timeline_map(found)]
        return listed
