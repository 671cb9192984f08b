"""Test that the records of a commit are the same, encoded and applied together or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.log.batch import encode_records
from coordinator.offsets.apply import apply_commit, apply_record
from coordinator.offsets.commit_encoding import RECORDS_MAX, encode_commit_records
from coordinator.offsets.records import encode_offset_record
from coordinator.offsets.state import NEVER, OffsetCommitted, OffsetState
from coordinator.shard.decision import LogRecordOrigin

TOPIC_ID = UUID(int=7)
COMMITTED = OffsetCommitted("counts", "words", 0, 42, 3, "", 1_700_000_000_123, TOPIC_ID)

CHANGES: list[dict[str, Any]] = [
    {"group_id": "b"},
    {"topic": "b"},
    {"metadata": "m"},
    {"committed_at_ms": 5},
    {"topic_id": UUID(int=8)},
    {"topic_id": None},
    {"expires_at_ms": NEVER + 1},
]

names = st.sampled_from(["", "a", "words", "ö" * 63, "x" * 249, "y" * 20_000])
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def commits(draw: st.DrawFn) -> list[OffsetCommitted]:
    """Draw the records of a commit; most differ in partition, offset and leader epoch only."""
    common = COMMITTED._replace(
        group_id=draw(names),
        topic=draw(names),
        committed_at_ms=draw(int64),
        topic_id=draw(st.sampled_from([None, TOPIC_ID])),
    )
    count = draw(st.sampled_from([1, 2, 10, 64, 65, RECORDS_MAX, RECORDS_MAX + 1]))
    numbers = st.tuples(int32, int64, int32)
    records = [
        common._replace(partition=partition, offset=offset, leader_epoch=leader_epoch)
        for partition, offset, leader_epoch in draw(
            st.lists(numbers, min_size=count, max_size=count)
        )
    ]
    change = draw(st.sampled_from([{}, {}, {}, *CHANGES]))
    which = draw(st.integers(0, count - 1))
    records[which] = records[which]._replace(**change)
    return records


def encode_one_by_one(records: Sequence[OffsetCommitted]) -> bytes:
    return encode_records([encode_offset_record(record) for record in records])


@given(commits())
def test_records_have_the_same_bytes_together_as_one_by_one(
    records: list[OffsetCommitted],
) -> None:
    assert encode_commit_records(records) in (None, encode_one_by_one(records))


@pytest.mark.parametrize("count", [1, 10, 64, 65, RECORDS_MAX])
def test_offsets_of_one_topic_are_encoded_together(count: int) -> None:
    records = [COMMITTED._replace(partition=number, offset=number) for number in range(count)]
    assert encode_commit_records(records) == encode_one_by_one(records)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", [0, 1])
def test_records_that_differ_in_more_are_left_to_be_encoded_one_by_one(
    change: dict[str, Any], which: int
) -> None:
    records = [COMMITTED, COMMITTED]
    records[which] = COMMITTED._replace(**change)
    assert encode_commit_records(records) is None


@given(commits(), commits())
def test_a_commit_changes_the_state_together_as_one_by_one(
    before: list[OffsetCommitted], records: list[OffsetCommitted]
) -> None:
    one_by_one = OffsetState()
    for offset, record in enumerate(before):
        apply_record(one_by_one, record, LogRecordOrigin(offset))
    together = deepcopy(one_by_one)
    base_offset = len(before)
    for offset, record in enumerate(records, base_offset):
        apply_record(one_by_one, record, LogRecordOrigin(offset))
    is_of_one_group = len({record.group_id for record in records}) == 1
    assert apply_commit(together, records, base_offset) is is_of_one_group
    if is_of_one_group:
        assert together == one_by_one
