"""Test a streaming query's offsets: its position, the extent of an epoch, and lost records."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from streams.errors import StreamsError
from streams.spark.source.ranges import OffsetRange
from streams.spark.source.stream_offsets import (
    StreamOffset,
    advance_offset,
    describe_data_loss,
    divide_among_partitions,
    plan_epoch_splits,
)
from tests.sampling import draw_seed


def at(
    offsets: dict[int, int], begun: dict[int, int] | None = None, records_per_split: int = 100
) -> StreamOffset:
    return StreamOffset(
        topic="t",
        topic_id="id",
        offsets=offsets,
        begun=begun or {},
        records_per_split=records_per_split,
    )


def test_an_offset_comes_back_from_the_checkpoint_as_it_was() -> None:
    found = at({0: 5, 10: 7, 2: 1}, begun={10: 3})
    assert StreamOffset.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_equal_offsets_are_equal_as_text() -> None:
    one, other = at({0: 5, 10: 7, 2: 1}).to_json(), at({10: 7, 2: 1, 0: 5}).to_json()
    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    "found", [{}, {"t": {"0": 5}}, 7, None, {**at({}).to_json(), "offsets": []}]
)
def test_what_another_source_wrote_is_told(found: Any) -> None:
    with pytest.raises(StreamsError, match="an offset that this source did not write"):
        StreamOffset.from_json(found)


def test_an_epoch_goes_to_the_end_of_each_partition() -> None:
    end = advance_offset(at({0: 5, 1: 7}), {0: (0, 9), 1: (7, 7)}, None, 50)
    assert end == at({0: 9, 1: 7}, records_per_split=50)


def test_where_there_is_nothing_new_the_offset_stays_itself() -> None:
    start = at({0: 5})
    assert advance_offset(start, {0: (0, 5), 1: (3, 3)}, None, 7) is start


def test_a_partition_that_comes_is_read_from_its_beginning() -> None:
    """Test that the offset keeps where a new partition began, as its log may begin later then."""
    start = at({0: 5})
    end = advance_offset(start, {0: (0, 5), 1: (3, 9)}, None, 100)
    assert end == at({0: 5, 1: 9}, begun={1: 3})
    assert list(plan_epoch_splits(start, end)) == [OffsetRange("t", 1, 3, 9)]
    after = advance_offset(end, {0: (0, 6), 1: (4, 9)}, None, 100)
    assert after == at({0: 6, 1: 9})


def test_a_partition_that_comes_waits_for_its_share() -> None:
    end = advance_offset(at({0: 0}), {0: (0, 9), 1: (3, 9)}, 1, 100)
    assert end == at({0: 1})


def test_splits_are_those_of_the_epoch_whatever_the_option_is_later() -> None:
    start, end = at({0: 0}, records_per_split=3), at({0: 10}, records_per_split=4)
    found = [(each.first, each.until) for each in plan_epoch_splits(start, end)]
    assert found == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize(
    ("backlog", "total", "turn", "expected"),
    [
        ({0: 10, 1: 10}, 10, 0, {0: 5, 1: 5}),
        ({0: 100, 1: 2}, 10, 0, {0: 8, 1: 2}),
        ({0: 1, 1: 2, 2: 30}, 100, 0, {0: 1, 1: 2, 2: 30}),
        ({0: 9, 1: 9, 2: 9}, 1, 0, {0: 1, 1: 0, 2: 0}),
        ({0: 9, 1: 9, 2: 9}, 1, 1, {0: 0, 1: 1, 2: 0}),
        ({}, 5, 3, {}),
    ],
)
def test_records_are_shared_fairly(
    backlog: dict[int, int], total: int, turn: int, expected: dict[int, int]
) -> None:
    assert divide_among_partitions(backlog, total, turn) == expected


def test_all_that_may_be_read_is_given_out() -> None:
    seed = draw_seed("shares of a backlog")
    choose = random.Random(seed)
    for _ in range(200):
        backlog = {n: choose.randrange(50) for n in range(choose.randrange(1, 8))}
        total = choose.randrange(1, 200)
        found = divide_among_partitions(backlog, total, choose.randrange(1000))
        assert sum(found.values()) == min(total, sum(backlog.values())), f"{seed=} {backlog=}"
        assert all(0 <= found[n] <= backlog[n] for n in backlog), f"{seed=} {backlog=}"
        wanting = [found[n] for n in backlog if found[n] < backlog[n]]
        # A round that doesn't divide evenly gives some partitions one more.
        least = min(wanting, default=total)
        assert all(found[n] <= least + len(backlog) for n in backlog), f"{seed=} {backlog=}"


def test_no_partition_waits_for_ever() -> None:
    """Test that a small partition beside large ones is read, one record at a time."""
    here, log = at({0: 0, 1: 0, 2: 0}), {0: (0, 1000), 1: (0, 1), 2: (0, 1000)}
    for _ in range(4):
        here = advance_offset(here, log, 1, 100)
    assert sorted(here.offsets.values()) == [1, 1, 2]


@pytest.mark.parametrize(
    ("log", "topic_id", "problem"),
    [
        ({0: (0, 9)}, "id", None),
        ({0: (5, 5)}, "id", None),
        ({0: (8, 9)}, "id", r"t\[0\]: offsets 5 to 7 were deleted before they were read"),
        ({0: (0, 4)}, "id", r"t\[0\]: offsets below 5 were read, and the log now ends at 4"),
        ({}, "id", r"t\[0\] is not there any more"),
        ({0: (0, 9), 1: (0, 3)}, "id", None),
        ({0: (0, 9), 1: (2, 3)}, "id", r"t\[1\], which is new: offsets 0 to 1 were deleted"),
        ({0: (0, 9)}, "other", "deleted and made again"),
    ],
)
def test_what_is_lost_is_told(
    log: dict[int, tuple[int, int]], topic_id: str, problem: str | None
) -> None:
    found = describe_data_loss(at({0: 5}), topic_id, log)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(problem, found)
