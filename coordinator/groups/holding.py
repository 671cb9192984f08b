"""What a group says about its offsets, whatever its kind, and how it is deleted.

A group that has been joined is of one kind; one that somebody only commits offsets for is simple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.groups.classic import holding as classic
from coordinator.groups.classic.state import GroupForgotten
from coordinator.groups.consumer import holding as consumer
from coordinator.groups.consumer.forget import forget
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import Record
from coordinator.offsets.forget import forget_group
from coordinator.offsets.holding import SIMPLE, UNREADABLE, Holding


def holding_of(shard: GroupShard, group_id: str) -> Holding | None:
    """None: there is no such group."""
    if shard.log.unknown.has(group_id):
        return UNREADABLE
    group = shard.groups.get(group_id)
    if group is not None:
        return classic.holding_of(group)
    of_consumers = shard.state.consumer.get(group_id)
    if of_consumers is not None:
        return consumer.holding_of(of_consumers)
    return SIMPLE if group_id in shard.state.offsets.groups else None


def group_ids(shard: GroupShard) -> Iterator[str]:
    """Of all the groups that there are."""
    yield from shard.groups
    yield from shard.state.consumer
    yield from shard.state.offsets.groups - shard.groups.keys() - shard.state.consumer.keys()


def tombstones(shard: GroupShard, group_id: str) -> list[Record]:
    """All that the log says of a group that is empty ends with these. Its offsets come first: as
    long as one of them stays, the group does."""
    return [*forget_group(shard.state.offsets, group_id), *end_group(shard, group_id)]


def end_group(shard: GroupShard, group_id: str) -> Sequence[Record]:
    """Give the tombstones of an empty group itself, which has no offsets any more."""
    group = shard.state.consumer.get(group_id)
    return [GroupForgotten(group_id)] if group is None else forget(group)
