"""The shards of `__consumer_offsets`, and what each knows: durable state, and volatile groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.groups.classic.describe import CLASSIC, ListedGroup, listed
from coordinator.groups.classic.state import Group
from coordinator.groups.consumer.advance import Seen
from coordinator.groups.consumer.state import CONSUMER
from coordinator.groups.counters import GroupCounters
from coordinator.groups.state import GroupCodec, GroupShardState, Record
from coordinator.offsets.counters import OffsetCounters
from coordinator.shard.life import Life
from coordinator.shard.placement import shard_of
from coordinator.shard.shard import Log, Shard


class GroupShard:
    """One partition of `__consumer_offsets`: durable state, and the volatile groups beside it."""

    def __init__(self, name: str, log: Log, clock: Clock) -> None:
        self.state = GroupShardState()
        self.groups: dict[str, Group] = {}
        self.seen: dict[str, Seen] = {}  # by consumer group
        self.classic_counters = GroupCounters()
        self.consumer_counters = GroupCounters()
        self.offset_counters = OffsetCounters()
        self.deleted_topics: set[str] = set()  # while it could not be written to
        self.deleting: set[str] = set()  # groups of which a part is gone already
        self.log: Shard[Record] = Shard(name, log, GroupCodec(), self.state.apply, clock)

    @property
    def counters(self) -> tuple[tuple[str, GroupCounters], ...]:
        """By kind of group."""
        return ((CLASSIC, self.classic_counters), (CONSUMER, self.consumer_counters))

    def listed(self) -> Iterator[ListedGroup]:
        """All groups, of every kind. Another thread may ask, too."""
        classic, consumer = self.groups.copy(), self.state.consumer.copy()
        yield from listed(classic, self.state.offsets.groups - classic.keys() - consumer.keys())
        for group in consumer.values():
            yield ListedGroup(group.group_id, CONSUMER, PROTOCOL_TYPE, group.phase.value)

    def load_slice(self) -> bool:
        """True: all is loaded, and the groups are made of it; or the shard has failed, and nothing
        is left of what was replayed."""
        if not self.log.load_slice():
            return False
        if self.log.life is not Life.ACTIVE:
            self.forget()
            return True
        self.groups = {
            name: Group.of(saved)
            for name, saved in self.state.groups.items()
            if not self.log.unknown.has(name)
        }
        return True

    def check(self, group_id: str) -> None:
        """Refuse unless the group can be served (see `GroupShards.of`)."""
        self.log.check_active()
        self.log.unknown.check_readable(group_id)
        if group_id in self.deleting:
            raise Refused(Code.COORDINATOR_LOAD_IN_PROGRESS, f"{group_id} is being deleted")

    def drop(self, group_id: str) -> None:
        """The log says that there is no such group any more: nothing volatile is left of it."""
        self.groups.pop(group_id, None)
        self.seen.pop(group_id, None)

    def forget(self) -> None:
        """The shard has resigned, or has failed."""
        self.groups = {}
        self.seen.clear()
        self.state.forget()


class GroupShards:
    """Which shard a group lives in."""

    def __init__(self, logs: Sequence[Log], clock: Clock) -> None:
        self.all = [GroupShard(f"__consumer_offsets-{i}", log, clock) for i, log in enumerate(logs)]

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group lives in."""
        return shard_of(group_id, len(self.all))

    def owner(self, group_id: str) -> GroupShard:
        """The shard of a group, whatever its life."""
        return self.all[shard_of(group_id, len(self.all))]

    def of(self, group_id: str) -> GroupShard:
        """Find the shard of a group.

        Raises Refused: COORDINATOR_LOAD_IN_PROGRESS while it is being loaded, or the group deleted;
        NOT_COORDINATOR once it has resigned; COORDINATOR_NOT_AVAILABLE if some of what it says of
        the group is of a newer broker.
        """
        shard = self.owner(group_id)
        shard.check(group_id)
        return shard
