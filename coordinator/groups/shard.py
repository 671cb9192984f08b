"""Hold the shards of `__consumer_offsets`: log, state, and what is volatile beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.groups.classic.describe import CLASSIC, ListedGroup, list_classic_groups
from coordinator.groups.consumer.advance import TransientGroupState
from coordinator.groups.consumer.state import CONSUMER
from coordinator.groups.counters import AssignorCounters, GroupCounters, OffsetCounters
from coordinator.groups.state import GroupCodec, GroupShardState, Record
from coordinator.groups.streams.command import TransientStreamsState
from coordinator.groups.streams.state import STREAMS
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.placement import partition_for
from coordinator.shard.shard import IsLastSlice, Shard
from coordinator.shard.shard_log import ShardLog

GroupKind: TypeAlias = str
MemberCounts: TypeAlias = tuple[int, ...]  # of each kind of group; -1 where there is none

OFFSETS_TOPIC = "__consumer_offsets"


class GroupShard:
    """Represents one partition of `__consumer_offsets`: log, state, counters."""

    def __init__(self, name: str, log: ShardLog, clock: Clock) -> None:
        self.state = GroupShardState()
        self.transient_states: dict[
            str, TransientGroupState
        ] = {}  # of consumer groups, by group id
        self.transient_streams_states: dict[str, TransientStreamsState] = {}  # by group id
        self.classic_counters = GroupCounters()
        self.consumer_counters = GroupCounters()
        self.streams_counters = GroupCounters()
        self.offset_counters = OffsetCounters()
        self.assignor_counters: dict[str, AssignorCounters] = {}
        self.deleted_topics: set[str] = set()  # deleted while the shard could not be written to
        self.deleting_group_ids: set[str] = set()  # groups of which a part is deleted already
        self.log: Shard[Record] = Shard(
            name,
            log,
            GroupCodec(),
            self.state.apply_record,
            clock,
            self.state.try_apply_offsets_of_one_group,
        )

    @property
    def counters(self) -> tuple[tuple[GroupKind, GroupCounters], ...]:
        """Return the counters by kind of group."""
        return (
            (CLASSIC, self.classic_counters),
            (CONSUMER, self.consumer_counters),
            (STREAMS, self.streams_counters),
        )

    def count_members(self, group_id: str) -> MemberCounts:
        """Return how many members the group of an id has, for each kind of group.

        -1 stands for no group of that kind.
        """
        groups = (
            self.state.classic.get(group_id),
            self.state.consumer.get(group_id),
            self.state.streams.get(group_id),
        )
        return tuple(-1 if group is None else len(group.members) for group in groups)

    def count_member_changes_since(self, group_id: str, before: MemberCounts) -> None:
        """Count members that came or left since `count_members` has returned `before`."""
        now = self.count_members(group_id)
        for index, (_, counters) in enumerate(self.counters):
            counters.count_member_changes(group_id, before[index], now[index])

    def is_name_taken(self, group_id: str) -> bool:
        """Return whether there is a group of this id, of whatever kind."""
        return (
            group_id in self.state.classic
            or group_id in self.state.consumer
            or group_id in self.state.streams
            or group_id in self.state.offsets.groups
            or self.log.unknown_records.is_of_unknown_kind(group_id)
        )

    def list_groups(self) -> Iterator[ListedGroup]:
        """Yield all groups of every kind; another thread may call this too."""
        classic, consumer = self.state.classic.copy(), self.state.consumer.copy()
        streams = self.state.streams.copy()
        yield from list_classic_groups(
            classic, self.state.offsets.groups - classic.keys() - consumer.keys() - streams.keys()
        )
        for group in consumer.values():
            yield ListedGroup(group.group_id, CONSUMER, PROTOCOL_TYPE, group.phase.value)
        for streams_group in streams.values():
            yield ListedGroup(streams_group.group_id, STREAMS, STREAMS, streams_group.phase.value)

    def load_next_slice(self) -> IsLastSlice:
        """Replay the next slice of the log; return True at the end.

        Then the shard is active, without classic groups of which it can't read all; or it has
        failed, and nothing is left of its state.
        """
        if not self.log.load_next_slice():
            return False
        if self.log.coordinator_state is not CoordinatorState.ACTIVE:
            self.clear_state()
            return True
        for group_id in tuple(self.state.classic):
            if self.log.unknown_records.has_records_of(group_id):
                del self.state.classic[group_id]
        return True

    def check_group_servable(self, group_id: str) -> None:
        """Raise Refused unless the group can be served (see `GroupShards.require_shard`)."""
        self.log.check_active()
        self.log.unknown_records.check_readable(group_id)
        if group_id in self.deleting_group_ids:
            raise Refused(Code.COORDINATOR_LOAD_IN_PROGRESS, f"{group_id} is being deleted")

    def drop_transient_states(self, group_id: str) -> None:
        """Drop the volatile state of a group that the log has deleted."""
        self.transient_states.pop(group_id, None)
        self.transient_streams_states.pop(group_id, None)

    def clear_state(self) -> None:
        """Drop all state, as the shard has resigned or has failed."""
        self.transient_states.clear()
        self.transient_streams_states.clear()
        self.state.clear_state()
        for _, counters in self.counters:
            counters.rebalancing.clear()  # they end elsewhere, if at all


class GroupShards:
    """Holds the shards of all groups, and finds the shard of a group by its id."""

    def __init__(self, logs: Sequence[ShardLog], clock: Clock) -> None:
        self.all = [GroupShard(f"{OFFSETS_TOPIC}-{i}", log, clock) for i, log in enumerate(logs)]

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group lives in."""
        return partition_for(group_id, len(self.all))

    def find_shard(self, group_id: str) -> GroupShard:
        """Return the shard of a group, whether it can be served or not."""
        return self.all[partition_for(group_id, len(self.all))]

    def require_shard(self, group_id: str) -> GroupShard:
        """Return the shard of a group that can be served.

        Raises Refused: COORDINATOR_LOAD_IN_PROGRESS while the shard is being loaded, or the group
        deleted; NOT_COORDINATOR once it has failed or resigned; COORDINATOR_NOT_AVAILABLE if some
        of what it says of the group is of a newer broker.
        """
        shard = self.find_shard(group_id)
        shard.check_group_servable(group_id)
        return shard
