"""The whole ledger against the records of a topic: what nobody wrote, and what is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streams.errors import ConfigError
from streams.ledger import Entry, Run
from streams.positions import Partition
from streams.spark.access import Access
from streams.spark.audit import (
    entries_in_cut,
    missing,
    ranges_frame,
    runs_frame,
    runs_of,
    unaccounted,
)
from streams.spark.cut import Cut
from streams.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT, OTHER = Partition("out", 1), Partition("other", 0)


def test_a_doubled_and_a_lost_record_are_found(spark: SparkSession) -> None:
    entries = [
        Entry(1, 0, {}, {OUT: (Run(0, 1), Run(5, 5)), OTHER: (Run(0, 9),)}),
        Entry(2, 0, {}, {OUT: (Run(3, 4),)}),
    ]
    runs = runs_frame(spark, runs_of(entries, {"out"}))
    there = [("out", 1, offset) for offset in (0, 1, 3, 5, 7)]  # 2 and 6 are markers
    records = spark.createDataFrame(there, "topic STRING, partition INT, offset BIGINT")
    assert [tuple(row) for row in unaccounted(records, runs).collect()] == [("out", 1, 7)]
    assert [tuple(row) for row in missing(records, runs).collect()] == [("out", 1, 4)]


def test_ranges_are_rows_of_the_same_columns(spark: SparkSession) -> None:
    ranges = [OffsetRange("words", 0, 3, 5), OffsetRange("words", 1, 4, 4)]
    assert [tuple(row) for row in ranges_frame(spark, ranges).collect()] == [("words", 0, 3, 4)]


def test_without_a_ledger_it_is_said_what_to_do() -> None:
    cut = Cut(application_id="app", taken_ms=0, offsets={})
    with pytest.raises(ConfigError, match=r"'app' keeps no ledger.*ledger=True"):
        entries_in_cut(Access("127.0.0.1:1"), cut)
