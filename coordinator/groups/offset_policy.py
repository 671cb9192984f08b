"""Find which offsets of a group may be deleted, and build the records that delete a group.

A group that has been joined is of one kind; one that somebody only commits offsets for is simple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.groups.classic import offset_policy as classic
from coordinator.groups.classic.state import GroupForgotten
from coordinator.groups.consumer.deletion import build_consumer_group_tombstones
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import Record
from coordinator.groups.streams.deletion import build_streams_group_tombstones
from coordinator.offsets.deletion import build_group_offset_tombstones
from coordinator.offsets.policy import (
    SIMPLE_GROUP_POLICY,
    UNREADABLE_GROUP_POLICY,
    GroupOffsetPolicy,
)


def find_offset_policy(shard: GroupShard, group_id: str) -> GroupOffsetPolicy | None:
    """Return which offsets of a group may be deleted or expire; None if there is no such group.

    Kafka's counterpart is `offsetExpirationCondition` of each kind of group.
    """
    if shard.log.unknown_records.has_records_of(group_id):
        return UNREADABLE_GROUP_POLICY
    group = shard.state.classic.get(group_id)
    if group is not None:
        return classic.derive_offset_deletion_policy(group)
    modern_group = shard.state.consumer.get(group_id) or shard.state.streams.get(group_id)
    if modern_group is not None:
        # Offsets age from their commit, also while the group is empty: the log doesn't say since
        # when it is.
        return GroupOffsetPolicy(
            is_empty=not modern_group.members, is_subscribed=modern_group.is_subscribed_to
        )
    return SIMPLE_GROUP_POLICY if group_id in shard.state.offsets.groups else None


def iterate_group_ids(shard: GroupShard) -> Iterator[str]:
    """Yield the ids of all groups of a shard, of every kind."""
    yield from shard.state.classic
    yield from shard.state.consumer
    yield from shard.state.streams
    yield from shard.state.offsets.groups.difference(
        shard.state.classic, shard.state.consumer, shard.state.streams
    )


def build_deletion_records(shard: GroupShard, group_id: str) -> list[Record]:
    """Return the tombstones that delete an empty group and all its offsets.

    Its offsets come first: as long as one of them stays, the group does.
    """
    return [
        *build_group_offset_tombstones(shard.state.offsets, group_id),
        *build_tombstones_of_emptied_group(shard, group_id),
    ]


def build_tombstones_of_emptied_group(shard: GroupShard, group_id: str) -> Sequence[Record]:
    """Return the tombstones of an empty group itself, which has no offsets any more."""
    consumer_group = shard.state.consumer.get(group_id)
    if consumer_group is not None:
        return build_consumer_group_tombstones(consumer_group)
    streams_group = shard.state.streams.get(group_id)
    if streams_group is not None:
        return build_streams_group_tombstones(streams_group)
    return [GroupForgotten(group_id)]
