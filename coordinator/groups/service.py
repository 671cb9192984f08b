"""Provide the group coordinator of this broker: its shards, and requests for groups of any kind.

Requests for one kind of group, or for offsets, go from the api files to the part that serves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.describe import DescribedGroup, ListedGroup, describe
from coordinator.groups.classic.draft import GroupConfig
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.consumer.config import ConsumerGroupConfig, SettingsOf
from coordinator.groups.consumer.membership import ConsumerMembership
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.expiry import OffsetExpiry
from coordinator.groups.migration.conversion import Conversions
from coordinator.groups.migration.membership import ClassicProtocol
from coordinator.groups.migration.policy import BIDIRECTIONAL, MigrationPolicy
from coordinator.groups.offsets import GroupOffsets
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.offsets.config import OffsetConfig
from coordinator.shard.life import Life
from coordinator.shard.loading import LoadSlice
from coordinator.shard.shard import Log
from coordinator.shard.slices import SlicedWork


class GroupService:
    """Assembles the parts of the group coordinator and loads, elects and resigns its shards."""

    def __init__(
        self,
        logs: Sequence[Log],
        config: GroupConfig,
        offset_config: OffsetConfig,
        consumer_config: ConsumerGroupConfig,
        settings_of: SettingsOf,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        policy: MigrationPolicy = BIDIRECTIONAL,
    ) -> None:
        self._shards = GroupShards(logs, clock)
        self.classic = ClassicMembership(self._shards, config, clock, scheduler)
        self.offsets = GroupOffsets(self._shards, self.classic, offset_config, clock)
        self.sliced = SlicedWork(clock, scheduler)
        self._expiry = OffsetExpiry(self._shards, offset_config, clock, scheduler)
        conversions = Conversions(policy, topics, self.classic, clock)
        self.consumer = ConsumerMembership(
            self._shards,
            consumer_config,
            settings_of,
            topics,
            clock,
            scheduler,
            background,
            conversions,
        )
        self.classic_protocol = ClassicProtocol(
            self._shards, self.classic, self.consumer, conversions, config, topics
        )

    # Loading, election and resignation of shards

    @property
    def shards(self) -> Sequence[GroupShard]:
        """Return the shards, by partition of `__consumer_offsets`."""
        return self._shards.all

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group lives in."""
        return self._shards.partition_of(group_id)

    def load(self) -> None:
        """Load every shard without a pause."""
        for load_slice in self.loading():
            while not load_slice():
                pass

    def loading(self) -> list[LoadSlice]:
        """Return, for each shard, the function that loads its next slice."""
        return [partial(self._load_slice, index) for index in range(len(self.shards))]

    def resign(self, index: int) -> None:
        """Give up a shard and answer its pending requests with NOT_COORDINATOR."""
        shard = self.shards[index]
        shard.log.resign()
        self.classic.resign(shard)
        self._expiry.resign(index)
        self.consumer.resign(shard)
        shard.forget()

    def elect(self, index: int) -> LoadSlice:
        """Take a shard up again; return the function that loads its next slice."""
        self.shards[index].log.elect()
        return partial(self._load_slice, index)

    def _load_slice(self, index: int) -> bool:
        """Load the next slice of a shard; after the last start its timers and return True."""
        shard = self.shards[index]
        if not shard.load_slice():
            return False
        if shard.log.life is Life.ACTIVE:
            self.offsets.forget_deleted_while_failed(index)
        if shard.log.life is Life.FAILED:
            self.offsets.loaded(shard)
        if shard.log.life is not Life.ACTIVE:
            return True
        self.classic.loaded(shard)
        self.offsets.loaded(shard)
        self._expiry.loaded(index)
        self.consumer.loaded(shard)
        return True

    def close(self) -> None:
        """Cancel all timers and sliced work."""
        self.classic.close()
        self.sliced.close()
        self._expiry.close()
        self.consumer.close()

    # Groups of every kind

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe a classic group, or one that has only offsets.

        Raises Refused: GROUP_ID_NOT_FOUND for anything else.
        """
        shard = self._shards.of(group_id)
        if group_id in shard.state.consumer:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        described = describe(shard.groups.get(group_id), group_id, shard.state.offsets)
        if described is None:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return described

    def list_groups(self) -> list[ListedGroup]:
        """Return the groups of all shards but those that have failed or resigned.

        Raises Refused: COORDINATOR_LOAD_IN_PROGRESS while a shard is being loaded.
        """
        for shard in self.shards:
            if shard.log.life is Life.LOADING:
                shard.log.check_active()
        return [found for shard in self.shards for found in shard.listed()]
