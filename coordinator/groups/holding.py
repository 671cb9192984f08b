"""Find which offsets of a group may be deleted, and build the records that delete a group.

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
    """Return which offsets of a group may be deleted or expire; None if there is no such group."""
    if shard.log.unknown.has(group_id):
        return UNREADABLE
    group = shard.groups.get(group_id)
    if group is not None:
        return classic.holding_of(group)
    consumer_group = shard.state.consumer.get(group_id)
    if consumer_group is not None:
        return consumer.holding_of(consumer_group)
    return SIMPLE if group_id in shard.state.offsets.groups else None


def group_ids(shard: GroupShard) -> Iterator[str]:
    """Yield the ids of all groups of a shard, of every kind."""
    yield from shard.groups
    yield from shard.state.consumer
    yield from shard.state.offsets.groups - shard.groups.keys() - shard.state.consumer.keys()


def tombstones(shard: GroupShard, group_id: str) -> list[Record]:
    """Return the tombstones that delete an empty group and all its offsets.

    Its offsets come first: as long as one of them stays, the group does.
    """
    return [*forget_group(shard.state.offsets, group_id), *end_group(shard, group_id)]


def end_group(shard: GroupShard, group_id: str) -> Sequence[Record]:
    """Return the tombstones of an empty group itself, which has no offsets any more."""
    group = shard.state.consumer.get(group_id)
    return [GroupForgotten(group_id)] if group is None else forget(group)
