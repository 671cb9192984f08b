"""The offsets of a group are those of the newest records, however they came and were read."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.offsets.state import (
    CommittedColumns,
    CommittedOffset,
    OffsetsByPartition,
    create_committed_offset,
)

PARTITIONS = ((0, 1, 2), (1, 2, 3), (2,), (5, 0, 5), (7, 8, 9, 10))


def create_commit(partitions: tuple[int, ...], offset: int, topic: str = "t") -> CommittedColumns:
    offsets = [offset + index for index in range(len(partitions))]
    return CommittedColumns("g", topic, None, offset, partitions, offsets, [-1] * len(partitions))


def apply_commit(
    model: dict[tuple[str, int], CommittedOffset], commit: CommittedColumns, base_offset: int
) -> None:
    for record_offset, record in enumerate(commit, base_offset):
        kept = create_committed_offset((*record[3:], record_offset))
        model[record.topic, record.partition] = kept


@pytest.mark.parametrize("seed", range(50))
def test_offsets_are_those_of_the_newest_records(seed: int) -> None:
    random = Random(seed)
    offsets = OffsetsByPartition()
    model: dict[tuple[str, int], CommittedOffset] = {}
    for record_offset in range(0, 2_000, 10):
        partition = random.choice("tu"), random.randrange(12)
        match random.randrange(8):
            case 0:
                kept = create_committed_offset((7, 1, "m", 2, None, -1, record_offset))
                offsets.set_offset(partition, kept)
                model[partition] = kept
            case 1:
                offsets.remove_offset(partition)
                model.pop(partition, None)
            case 2:
                assert offsets.get(partition) == model.get(partition)
                assert offsets == model
            case _:
                commit = create_commit(
                    random.choice(PARTITIONS), record_offset, random.choice("tu")
                )
                offsets.add_commit(commit, record_offset)
                apply_commit(model, commit, record_offset)
        assert list(offsets) == list(model), seed
        assert len(offsets) == len(model)
        assert (partition in offsets) == (partition in model)
    assert offsets == model, seed
    assert repr(offsets) == repr(model)


def test_an_offset_is_not_replaced_by_an_older_record() -> None:
    offsets = OffsetsByPartition()
    for base_offset in (10, 20):
        offsets.add_commit(create_commit((0, 1), base_offset), base_offset)
    offsets.set_offset(("t", 1), create_committed_offset((7, 1, "m", 2, None, -1, 15)))
    assert offsets["t", 1].offset == 21


def test_commits_of_former_assignments_are_not_kept() -> None:
    offsets = OffsetsByPartition()
    for first in range(100):
        for base_offset in (2 * first, 2 * first + 1):
            offsets.add_commit(create_commit((first % 10, 10 + first % 9), 5), base_offset)
    kept = [partitions for _, partitions in offsets._latest_commits]
    assert sum(map(len, kept)) <= 2 * len(offsets)
