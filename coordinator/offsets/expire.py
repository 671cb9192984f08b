"""Decide which offsets have been kept long enough: a pure function of group, offsets and time.

An offset that its client wanted to be kept for so long (OffsetCommit v2 to v4) expires by that. Any
other expires once `offsets.retention.minutes` have passed since its group became empty, or, where
that time isn't known or the group has members, since its commit; never one of a topic that the
group is subscribed to, nor one that an open transaction is about to replace.
Source: org.apache.kafka.coordinator.group.OffsetMetadataManager, OffsetExpirationConditionImpl.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.offsets.policy import GroupOffsetPolicy
from coordinator.offsets.state import (
    NEVER,
    NO_OFFSETS,
    OffsetForgotten,
    OffsetState,
    TopicPartition,
)


def build_expiry_tombstones(
    state: OffsetState,
    group_id: str,
    policy: GroupOffsetPolicy,
    partitions: Iterable[TopicPartition],
    retention_ms: int,
    now_ms: int,
) -> list[OffsetForgotten]:
    """Return tombstones for those of a group's partitions whose offset has expired.

    Partitions without an offset are passed over.
    """
    if not policy.allows_expiry:
        return []
    group = state.committed.get(group_id, NO_OFFSETS)
    pending_producers = state.pending_producers.get(group_id, {})
    subscribed: dict[str, bool] = {}
    expired = []
    for topic, partition in partitions:
        committed_offset = group.get((topic, partition))
        if committed_offset is None:
            continue
        if committed_offset.expires_at_ms != NEVER:
            is_due = now_ms >= committed_offset.expires_at_ms
        else:
            since_ms = (
                committed_offset.committed_at_ms
                if policy.empty_since_ms is None
                else policy.empty_since_ms
            )
            is_due = now_ms - since_ms >= retention_ms
        if not is_due or (topic, partition) in pending_producers:
            continue
        if topic not in subscribed:
            subscribed[topic] = policy.is_subscribed(topic)
        if not subscribed[topic]:
            expired.append(OffsetForgotten(group_id, topic, partition))
    return expired


def is_empty_after_expiry(state: OffsetState, group_id: str, expired_count: int) -> bool:
    """Return whether a group has no offset left once `expired_count` committed ones have gone.

    Pending offsets count too.
    """
    return (
        group_id not in state.pending_producers
        and len(state.committed.get(group_id, NO_OFFSETS)) == expired_count
    )
