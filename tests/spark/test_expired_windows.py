"""Test which windows a store may have dropped, where each partition goes by its own time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streams import serdes
from streams.graph.nodes import StoreKind, StoreSpec
from streams.spark.reconciliation.accounts import ROW, AccountKind
from streams.spark.reconciliation.checking import select_expired_rows
from streams.spark.reconciliation.comparing import FOUND
from streams.spark.reconciliation.targets import ReconciliationTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2, by="test")

KEPT_MS, SIZE_MS = 100, 10
BEHIND, AHEAD = 0, 1
"""Partitions: of the second the latest window begins at 1 000, of the first at 50."""

Window = tuple[str, int]


def expired(
    spark: SparkSession,
    expected: list[Window],
    found: dict[int, list[Window]],
    *,
    partition_count: int = 2,
    kind: StoreKind = StoreKind.WINDOW,
) -> set[Window]:
    """Return the windows of `expected` that a store with the rows `found` may have dropped."""
    spec = StoreSpec(
        name="windows",
        key=serdes.string,
        value=serdes.int64,
        kind=kind,
        retention_ms=KEPT_MS,
        window_size_ms=SIZE_MS if kind is StoreKind.WINDOW else None,
    )
    place = ReconciliationTarget(
        name="windows",
        kind=AccountKind.STORE,
        subtopology=0,
        key_serde=serdes.string,
        value_serde=serdes.int64,
        windowed="session" if kind is StoreKind.SESSION else "time",
        spec=spec,
    )
    rows = [(key.encode(), start, start + SIZE_MS, b"1", start) for key, start in expected]
    there = [
        (key.encode(), start, start + SIZE_MS, b"1", start, "changelog", partition, offset)
        for partition, windows in found.items()
        for offset, (key, start) in enumerate(windows)
    ]
    frame = select_expired_rows(
        spark.createDataFrame(rows, ROW),
        spark.createDataFrame(there, f"{ROW}, {FOUND}"),
        place,
        partition_count,
    )
    if frame is None:
        return set()
    return {(bytes(row.key).decode(), row.window_start) for row in frame.collect()}


@pytest.mark.parametrize("kind", [StoreKind.WINDOW, StoreKind.SESSION])
def test_a_key_with_rows_goes_by_the_time_of_its_own_partition(
    spark: SparkSession, kind: StoreKind
) -> None:
    found = {BEHIND: [("slow", 50)], AHEAD: [("fast", 1_000)]}
    expected = [("slow", 0), ("fast", 0), ("fast", 900), ("fast", 901)]
    assert expired(spark, expected, found, kind=kind) == {("fast", 0), ("fast", 900)}


def test_a_key_without_rows_goes_by_the_partition_that_is_furthest_behind(
    spark: SparkSession,
) -> None:
    found = {BEHIND: [("slow", 500)], AHEAD: [("fast", 1_000)]}
    expected = [("idle", 400), ("idle", 401), ("idle", 900)]
    assert expired(spark, expected, found) == {("idle", 400)}


def test_a_partition_without_rows_has_dropped_nothing(spark: SparkSession) -> None:
    expected = [("lost", 0), ("fast", 0)]
    assert expired(spark, expected, {AHEAD: [("fast", 1_000)]}) == {("fast", 0)}
    assert expired(spark, expected, {}) == set()


def test_a_key_in_two_partitions_goes_by_the_one_that_is_further_behind(
    spark: SparkSession,
) -> None:
    found = {BEHIND: [("both", 50)], AHEAD: [("both", 1_000)]}
    assert expired(spark, [("both", 0)], found) == set()
