"""Applies offset records and markers: the one place that changes an OffsetState."""

from __future__ import annotations

from coordinator.offsets.state import (
    CommittedOffset,
    OffsetCommitted,
    OffsetForgotten,
    OffsetKey,
    OffsetState,
    Record,
    committed_offset,
)
from coordinator.shard.decision import Origin, TransactionEnded


def apply(state: OffsetState, record: Record | TransactionEnded, origin: Origin) -> None:
    match record:
        case OffsetCommitted():
            kept = committed_offset((record, origin.offset))
            group_id = record.group_id
            state.groups.add(group_id)
            if origin.producer_id >= 0:
                _hold(state, origin.producer_id, record.key, kept)
            else:
                _commit(state, group_id, (record.topic, record.partition), kept)
        case OffsetForgotten():
            _forget(state, record)
        case TransactionEnded(producer_id, _, committed):
            for key, kept in state.pending.pop(producer_id, {}).items():
                _let_go(state, producer_id, key)
                if committed:
                    _commit(state, key[0], key[1:], kept)


def _commit(
    state: OffsetState, group_id: str, partition: tuple[str, int], kept: CommittedOffset
) -> None:
    """Let an offset count, unless a newer record has said otherwise since it was staged."""
    group = state.committed.get(group_id)
    if group is None:
        group = state.committed[group_id] = {}
    before = group.get(partition)
    if before is None or before.record_offset < kept.record_offset:
        group[partition] = kept


def _hold(state: OffsetState, producer_id: int, key: OffsetKey, kept: CommittedOffset) -> None:
    group_id, topic, partition = key
    state.pending.setdefault(producer_id, {})[key] = kept
    state.holders.setdefault(group_id, {}).setdefault((topic, partition), set()).add(producer_id)


def _let_go(state: OffsetState, producer_id: int, key: OffsetKey) -> None:
    """The producer holds no offset for this partition any more: of `pending` it is gone already."""
    group_id, topic, partition = key
    group = state.holders[group_id]
    producers = group[topic, partition]
    producers.discard(producer_id)
    if not producers:
        del group[topic, partition]
        if not group:
            del state.holders[group_id]


def _forget(state: OffsetState, record: OffsetForgotten) -> None:
    partition = (record.topic, record.partition)
    group = state.committed.get(record.group_id)
    if group is not None:
        group.pop(partition, None)
        if not group:
            del state.committed[record.group_id]
    for producer_id in tuple(state.holders.get(record.group_id, {}).get(partition, ())):
        offsets = state.pending[producer_id]
        del offsets[record.key]
        if not offsets:
            del state.pending[producer_id]
        _let_go(state, producer_id, record.key)
