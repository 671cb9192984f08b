"""Test that filters narrow the ranges, and that those that need each row stay with Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from streams.common.topic_partitions import Partition
from streams.spark.source.filters import FilterBounds
from streams.spark.source.ranges import OffsetRange

RANGES = [OffsetRange("t", number, 10, 100) for number in range(4)]


class Times:
    """Stands in for an admin client whose topic has a record each second from 1970 on."""

    def fetch_offsets_for_time(
        self, partitions: list[Partition], timestamp_ms: int
    ) -> dict[Partition, int]:
        return {each: min(-(-timestamp_ms // 1000), 100) for each in partitions}


def narrowed(*filters: Filter) -> tuple[list[tuple[int, int, int]], list[Filter]]:
    """Return the ranges that the filters leave, and the filters that Spark must still apply."""
    pruning, left = FilterBounds(), []
    for each in filters:
        pruning, unsure = pruning.narrow_by_filter(each)
        left += [each] if unsure else []
    admin: Any = Times()
    ranges = pruning.prune_ranges(admin, RANGES)
    return [(each.partition, each.first, each.until) for each in ranges], left


@pytest.mark.parametrize(
    ("condition", "partitions"),
    [
        (EqualTo(("partition",), 2), [2]),
        (EqualTo(("partition",), 9), []),
        (In(("partition",), (0, 3, 7)), [0, 3]),
        (Not(In(("partition",), (0, 3))), [1, 2]),
        (Not(EqualTo(("partition",), 1)), [0, 2, 3]),
        (GreaterThan(("partition",), 1), [2, 3]),
        (LessThanOrEqual(("partition",), 1), [0, 1]),
    ],
)
def test_partitions(condition: Filter, partitions: list[int]) -> None:
    assert narrowed(condition) == ([(number, 10, 100) for number in partitions], [])


@pytest.mark.parametrize(
    ("condition", "first", "until"),
    [
        (EqualTo(("offset",), 50), 50, 51),
        (GreaterThan(("offset",), 50), 51, 100),
        (GreaterThanOrEqual(("offset",), 50), 50, 100),
        (GreaterThanOrEqual(("offset",), 5), 10, 100),
        (LessThan(("offset",), 50), 10, 50),
        (LessThanOrEqual(("offset",), 50), 10, 51),
        (LessThanOrEqual(("offset",), 500), 10, 100),
    ],
)
def test_offsets(condition: Filter, first: int, until: int) -> None:
    assert narrowed(condition) == ([(number, first, until) for number in range(4)], [])


def test_conditions_hold_together() -> None:
    found, left = narrowed(
        IsNotNull(("offset",)),
        EqualTo(("partition",), 1),
        GreaterThan(("offset",), 20),
        GreaterThan(("offset",), 15),
        LessThan(("offset",), 30),
    )
    assert (found, left) == ([(1, 21, 30)], [])
    assert narrowed(LessThan(("offset",), 30), GreaterThan(("offset",), 40)) == ([], [])


def test_a_time_is_a_lower_bound_and_spark_looks_at_the_rows() -> None:
    at = datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)
    for condition in (GreaterThanOrEqual(("timestamp",), at), EqualTo(("timestamp",), at)):
        assert narrowed(condition) == ([(number, 30, 100) for number in range(4)], [condition])


@pytest.mark.parametrize("kind", [GreaterThan, GreaterThanOrEqual, EqualTo])
def test_a_bound_before_1970_leaves_out_no_record_without_a_time(kind: type[Filter]) -> None:
    condition = kind(("timestamp",), datetime(1969, 12, 31, tzinfo=UTC))  # type: ignore[call-arg]
    assert FilterBounds().narrow_by_filter(condition) == (FilterBounds(), True)


def test_behind_a_record_that_is_too_late_there_may_be_one_that_is_not() -> None:
    condition = LessThan(("timestamp",), datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC))
    assert narrowed(condition) == ([(number, 10, 100) for number in range(4)], [condition])


def test_other_columns_are_left_to_spark() -> None:
    others = [EqualTo(("key",), b"a"), EqualTo(("value", "offset"), 5), In(("offset",), (1, 2))]
    assert narrowed(*others) == ([(number, 10, 100) for number in range(4)], others)


def test_what_a_null_makes_null_is_left_to_spark() -> None:
    """Test that comparisons with null are left to Spark.

    `partition NOT IN (1, NULL)`, for one, is never true.
    """
    others = [
        In(("partition",), (1, None)),
        Not(In(("partition",), (1, None))),
        Not(EqualTo(("partition",), None)),
        EqualNullSafe(("partition",), None),
        EqualTo(("offset",), None),
        Not(GreaterThan(("partition",), 1)),
    ]
    assert narrowed(*others) == ([(number, 10, 100) for number in range(4)], others)
