"""Test that the records of a commit are the same in columns and one by one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.state import GroupCodec, GroupShardState
from coordinator.log.batch_encoding import encode_records
from coordinator.offsets.apply import apply_record
from coordinator.offsets.commit_encoding import RECORDS_MAX, encode_commit_records
from coordinator.offsets.records import encode_offset_record
from coordinator.offsets.state import CommittedColumns, OffsetCommitted
from coordinator.shard.decision import LogRecordOrigin

TOPIC_ID = UUID(int=7)
names = st.sampled_from(["", "a", "words", "ö" * 63, "x" * 249, "y" * 20_000])
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


numbers = st.lists(st.tuples(int32, int64, int32), min_size=1, max_size=RECORDS_MAX + 1)


def list_records(commit: CommittedColumns) -> list[OffsetCommitted]:
    """List the records of a commit, each made from all of its fields by name."""
    columns = zip(commit.partitions, commit.offsets, commit.leader_epochs, strict=True)
    return [
        OffsetCommitted(
            group_id=commit.group_id,
            topic=commit.topic,
            partition=partition,
            offset=offset,
            leader_epoch=leader_epoch,
            metadata="",
            committed_at_ms=commit.committed_at_ms,
            topic_id=commit.topic_id,
        )
        for partition, offset, leader_epoch in columns
    ]


def create_commit(
    rows: Sequence[tuple[int, int, int]],
    group_id: str = "counts",
    topic: str = "words",
    topic_id: UUID | None = TOPIC_ID,
    committed_at_ms: int = 1_700_000_000_123,
) -> CommittedColumns:
    partitions, offsets, leader_epochs = zip(*rows, strict=True)
    where = group_id, topic, topic_id, committed_at_ms
    return CommittedColumns(*where, partitions, offsets, leader_epochs)


commits = st.builds(create_commit, numbers, names, names, st.sampled_from([None, TOPIC_ID]), int64)


def encode_one_by_one(records: Sequence[OffsetCommitted]) -> bytes:
    return encode_records([encode_offset_record(record) for record in records])


@given(commits)
def test_columns_are_a_sequence_of_their_records(commit: CommittedColumns) -> None:
    records = list_records(commit)
    assert list(commit) == records
    assert len(commit) == len(records)
    assert (commit[0], commit[-1], commit[1:]) == (records[0], records[-1], records[1:])


@given(commits)
def test_columns_have_the_same_bytes_as_their_records(commit: CommittedColumns) -> None:
    is_encoded = len(commit) <= RECORDS_MAX
    expected = encode_one_by_one(list_records(commit)) if is_encoded else None
    assert encode_commit_records(commit) == expected


@pytest.mark.parametrize("count", [1, 10, 64, 65, RECORDS_MAX, RECORDS_MAX + 1])
def test_a_commit_of_any_size_has_the_same_bytes_as_its_records(count: int) -> None:
    commit = create_commit([(number, number, 3) for number in range(count)])
    encoded = encode_commit_records(commit)
    assert encoded == (encode_one_by_one(list_records(commit)) if count <= RECORDS_MAX else None)


def test_records_that_are_not_in_columns_are_encoded_one_by_one() -> None:
    commit = create_commit([(0, 42, 3), (1, 43, 3)])
    assert GroupCodec().encode_together(list_records(commit)) is None
    assert GroupCodec().encode_together(commit) is not None


@given(st.lists(commits, max_size=2), commits, st.booleans())
def test_a_commit_changes_the_state_together_as_one_by_one(
    before: list[CommittedColumns], commit: CommittedColumns, is_in_columns: bool
) -> None:
    one_by_one = GroupShardState()
    for offset, record in enumerate(record for earlier in before for record in earlier):
        one_by_one.apply_record(record, LogRecordOrigin(offset))
    together = deepcopy(one_by_one)
    base_offset = sum(map(len, before))
    records = list_records(commit)
    for offset, record in enumerate(records, base_offset):
        apply_record(one_by_one.offsets, record, LogRecordOrigin(offset))
    assert together.try_apply_offsets_of_one_group(
        commit if is_in_columns else records, base_offset
    )
    assert together == one_by_one


def test_records_of_several_groups_are_left_to_be_applied_one_by_one() -> None:
    records = [*create_commit([(0, 42, 3)]), *create_commit([(0, 42, 3)], group_id="b")]
    state = GroupShardState()
    assert not state.try_apply_offsets_of_one_group(records, 0)
    assert state == GroupShardState()
