"""Applies offset records and markers: the one place that changes an OffsetState."""

from __future__ import annotations

from coordinator.offsets.state import (
    CommittedOffset,
    OffsetCommitted,
    OffsetForgotten,
    OffsetKey,
    OffsetState,
    Record,
)
from coordinator.shard.decision import Origin, TransactionEnded


def apply(state: OffsetState, record: Record | TransactionEnded, origin: Origin) -> None:
    match record:
        case OffsetCommitted():
            kept = CommittedOffset(
                offset=record.offset,
                leader_epoch=record.leader_epoch,
                metadata=record.metadata,
                commit_ms=record.commit_ms,
                topic_id=record.topic_id,
                record_offset=origin.offset,
            )
            if origin.producer_id >= 0:
                state.pending.setdefault(origin.producer_id, {})[record.key] = kept
            else:
                _commit(state, record.key, kept)
        case OffsetForgotten():
            group = state.committed.get(record.group_id, {})
            group.pop((record.topic, record.partition), None)
            if not group:
                state.committed.pop(record.group_id, None)
            for producer_id, offsets in tuple(state.pending.items()):
                offsets.pop(record.key, None)
                if not offsets:
                    del state.pending[producer_id]
        case TransactionEnded(producer_id, _, committed):
            for key, kept in state.pending.pop(producer_id, {}).items():
                if committed:
                    _commit(state, key, kept)


def _commit(state: OffsetState, key: OffsetKey, kept: CommittedOffset) -> None:
    """Let an offset count, unless a newer record has said otherwise since it was staged."""
    group_id, topic, partition = key
    group = state.committed.setdefault(group_id, {})
    before = group.get((topic, partition))
    if before is None or before.record_offset < kept.record_offset:
        group[topic, partition] = kept
