"""Offsets that go: by OffsetDelete, with their group, with their topic. Pending ones go too.

All of them may be tens of thousands, so a caller takes some at a time (see `shard.slices`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from coordinator.errors import Code, Refused
from coordinator.offsets.holding import Holding
from coordinator.offsets.state import OffsetForgotten, OffsetState
from coordinator.shard.decision import Decision


def delete_offsets(
    state: OffsetState, group_id: str, holding: Holding, partitions: Sequence[tuple[str, int]]
) -> Decision[OffsetForgotten, list[Code]]:
    """One code a partition, in their order: 86 for a topic that the group is subscribed to; a
    partition without an offset is fine. Refuses with 68 for a group with members that is not one
    of consumers: what they read nobody can tell.
    """
    if not holding.lets_delete:
        raise Refused(Code.NON_EMPTY_GROUP, f"{group_id} has members")
    group = state.committed.get(group_id, {})
    held = state.holders.get(group_id, {})
    subscribed = {
        topic for topic in {each[0] for each in partitions} if holding.is_subscribed(topic)
    }
    records = []
    codes = []
    for topic, partition in partitions:
        if topic in subscribed:
            codes.append(Code.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        codes.append(Code.NONE)
        if (topic, partition) in group or (topic, partition) in held:
            records.append(OffsetForgotten(group_id, topic, partition))
    return Decision(records, codes)


def forget_group(state: OffsetState, group_id: str) -> list[OffsetForgotten]:
    """A tombstone for every partition that the group has an offset of, committed or pending."""
    found = state.committed.get(group_id, {}).keys() | state.holders.get(group_id, {}).keys()
    return [OffsetForgotten(group_id, *partition) for partition in sorted(found)]


def forget_some(state: OffsetState, group_id: str, count: int) -> list[OffsetForgotten]:
    """Give tombstones for at most so many partitions that the group has an offset of: fewer only if
    there are no more."""
    committed = state.committed.get(group_id, {})
    found = list(islice(committed, count))
    held = state.holders.get(group_id, {})
    pending = (partition for partition in held if partition not in committed)
    found += islice(pending, count - len(found))
    return [OffsetForgotten(group_id, *partition) for partition in found]


def forget_topics(
    state: OffsetState, group_id: str, topics: Collection[str]
) -> list[OffsetForgotten]:
    """Give a tombstone for every partition of these topics that the group has an offset of."""
    committed = state.committed.get(group_id, {})
    found = [partition for partition in committed if partition[0] in topics]
    for partition in state.holders.get(group_id, ()):
        if partition[0] in topics and partition not in committed:
            found.append(partition)
    return [OffsetForgotten(group_id, *partition) for partition in found]
