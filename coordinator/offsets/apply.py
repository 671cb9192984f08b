"""Apply offset records and markers: the one place that changes an OffsetState."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.offsets.state import (
    CommittedColumns,
    CommittedOffset,
    OffsetCommitted,
    OffsetForgotten,
    OffsetKey,
    OffsetsByPartition,
    OffsetState,
    Record,
    TopicPartition,
    create_committed_offset,
)
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded


def apply_record(
    state: OffsetState, record: Record | TransactionEnded, origin: LogRecordOrigin
) -> None:
    """Change the offset state as a record or a transaction marker says.

    An offset with a producer id is pending until that producer's marker is applied.
    """
    match record:
        case OffsetCommitted():
            committed_offset_entry = create_committed_offset((*record[3:], origin.offset))
            group_id = record.group_id
            state.groups.add(group_id)
            if origin.producer_id >= 0:
                _stage_pending_offset(state, origin.producer_id, record.key, committed_offset_entry)
            else:
                _commit_offset(
                    state, group_id, (record.topic, record.partition), committed_offset_entry
                )
        case OffsetForgotten():
            _delete_offset(state, record)
        case TransactionEnded(producer_id, _, committed):
            for key, committed_offset_entry in state.pending.pop(producer_id, {}).items():
                _remove_pending_producer(state, producer_id, key)
                if committed:
                    _commit_offset(state, key[0], key[1:], committed_offset_entry)


def try_apply_offsets_of_one_group(
    state: OffsetState, records: Sequence[OffsetCommitted], base_offset: int
) -> bool:
    """Apply new offsets of one group that no producer has written, as `apply_record` does for each.

    They stand at the end of the log, so that each is newer than the one that it replaces. Return
    False, and do nothing, if they are of several groups.
    """
    group_id = records[0].group_id
    if not all(record.group_id == group_id for record in records):
        return False
    state.groups.add(group_id)
    group = state.committed.get(group_id)
    if group is None:
        group = state.committed[group_id] = OffsetsByPartition()
    for record_offset, record in enumerate(records, base_offset):
        partition = record.topic, record.partition
        group.set_offset(partition, create_committed_offset((*record[3:], record_offset)))
    return True


def apply_columns(state: OffsetState, commit: CommittedColumns, base_offset: int) -> None:
    """Apply the records of a commit that no producer has written, as `apply_record` does for each.

    They stand at the end of the log, so that each is newer than the one that it replaces.
    """
    group_id = commit.group_id
    state.groups.add(group_id)
    group = state.committed.get(group_id)
    if group is None:
        group = state.committed[group_id] = OffsetsByPartition()
    group.add_commit(commit, base_offset)


def _commit_offset(
    state: OffsetState, group_id: str, partition: TopicPartition, offset: CommittedOffset
) -> None:
    """Make an offset the committed one, unless a newer record has replaced it meanwhile."""
    group = state.committed.get(group_id)
    if group is None:
        group = state.committed[group_id] = OffsetsByPartition()
    group.set_offset(partition, offset)


def _stage_pending_offset(
    state: OffsetState, producer_id: int, key: OffsetKey, offset: CommittedOffset
) -> None:
    group_id, topic, partition = key
    state.pending.setdefault(producer_id, {})[key] = offset
    state.pending_producers.setdefault(group_id, {}).setdefault((topic, partition), set()).add(
        producer_id
    )


def _remove_pending_producer(state: OffsetState, producer_id: int, key: OffsetKey) -> None:
    """Remove a producer from those that have a pending offset for a partition.

    The caller removes the offset itself.
    """
    group_id, topic, partition = key
    group = state.pending_producers[group_id]
    producers = group[topic, partition]
    producers.discard(producer_id)
    if not producers:
        del group[topic, partition]
        if not group:
            del state.pending_producers[group_id]


def _delete_offset(state: OffsetState, record: OffsetForgotten) -> None:
    """Delete a partition's committed offset and all its pending ones."""
    partition = (record.topic, record.partition)
    group = state.committed.get(record.group_id)
    if group is not None:
        group.remove_offset(partition)
        if not group:
            del state.committed[record.group_id]
    for producer_id in tuple(state.pending_producers.get(record.group_id, {}).get(partition, ())):
        offsets = state.pending[producer_id]
        del offsets[record.key]
        if not offsets:
            del state.pending[producer_id]
        _remove_pending_producer(state, producer_id, record.key)
