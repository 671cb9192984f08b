"""Delete offsets by OffsetDelete, with their group or with their topic, pending ones included.

All of them may be tens of thousands, so a caller takes some at a time (see `shard.slices`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from coordinator.errors import Code, Refused
from coordinator.offsets.policy import GroupOffsetPolicy
from coordinator.offsets.state import NO_OFFSETS, OffsetForgotten, OffsetState, TopicPartition
from coordinator.shard.decision import Decision


def decide_offset_deletion(
    state: OffsetState,
    group_id: str,
    policy: GroupOffsetPolicy,
    partitions: Sequence[TopicPartition],
) -> Decision[OffsetForgotten, list[Code]]:
    """Return the decision that deletes a group's offsets, with one code for each partition.

    GROUP_SUBSCRIBED_TO_TOPIC leaves a partition out; one without an offset is fine.

    Raises Refused: NON_EMPTY_GROUP for a group with members that is not one of consumers, as the
    broker can't tell what they read.
    """
    if not policy.allows_deletion:
        raise Refused(Code.NON_EMPTY_GROUP, f"{group_id} has members")
    group = state.committed.get(group_id, NO_OFFSETS)
    pending_producers = state.pending_producers.get(group_id, {})
    subscribed = {
        topic for topic in {each[0] for each in partitions} if policy.is_subscribed(topic)
    }
    records = []
    codes = []
    for topic, partition in partitions:
        if topic in subscribed:
            codes.append(Code.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        codes.append(Code.NONE)
        if (topic, partition) in group or (topic, partition) in pending_producers:
            records.append(OffsetForgotten(group_id, topic, partition))
    return Decision(records, codes)


def build_group_offset_tombstones(state: OffsetState, group_id: str) -> list[OffsetForgotten]:
    """Return a tombstone for every partition that the group has an offset of.

    Committed and pending offsets count.
    """
    partitions = (
        state.committed.get(group_id, NO_OFFSETS).keys()
        | state.pending_producers.get(group_id, {}).keys()
    )
    return [OffsetForgotten(group_id, *partition) for partition in sorted(partitions)]


def build_offset_tombstones_up_to(
    state: OffsetState, group_id: str, max_count: int
) -> list[OffsetForgotten]:
    """Return tombstones for up to `max_count` of a group's offsets, committed or pending.

    They are fewer only if the group has no more.
    """
    committed = state.committed.get(group_id, NO_OFFSETS)
    partitions = list(islice(committed, max_count))
    pending_producers = state.pending_producers.get(group_id, {})
    pending = (partition for partition in pending_producers if partition not in committed)
    partitions += islice(pending, max_count - len(partitions))
    return [OffsetForgotten(group_id, *partition) for partition in partitions]


def build_topic_offset_tombstones(
    state: OffsetState, group_id: str, topics: Collection[str]
) -> list[OffsetForgotten]:
    """Return a tombstone for every partition of these topics that the group has an offset of."""
    committed = state.committed.get(group_id, NO_OFFSETS)
    partitions = [partition for partition in committed if partition[0] in topics]
    for partition in state.pending_producers.get(group_id, ()):
        if partition[0] in topics and partition not in committed:
            partitions.append(partition)
    return [OffsetForgotten(group_id, *partition) for partition in partitions]
