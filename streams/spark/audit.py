"""The whole ledger against the topics: is each record of the cut in an entry, and the other way?

With a ledger each committed record is in exactly one entry. So a record in no entry was written by
somebody else, or twice; and one that an entry names and that is not there was lost, or deleted by
retention or compaction, which is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from streams.errors import ConfigError
from streams.ledger import Entry, Run
from streams.positions import Partition
from streams.spark.access import Access
from streams.spark.cut import Cut
from streams.spark.entries import read_entries
from streams.spark.members import Members
from streams.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNS = "topic STRING, partition INT, first BIGINT, last BIGINT"
"""Runs of offsets; first and last included."""
_WHERE = ["topic", "partition", "offset"]


def entries_in_cut(access: Access, cut: Cut) -> Iterator[Entry]:
    """Every transaction of the cut, in the order of the ledger.

    Raises ConfigError where there is no ledger, StreamsError where it can't be read.
    """
    if cut.ledger_end is None:
        raise ConfigError(
            f"{cut.application_id!r} keeps no ledger, so no record tells of its transaction: run "
            "it with ledger=True"
        )
    members = Members(cut)
    entries = read_entries(access, cut.application_id, 0, cut.ledger_end)
    return (entry for entry in entries if members.has(entry))


def runs_of(
    entries: Iterable[Entry], topics: Collection[str] | None = None
) -> Iterator[tuple[Partition, Run]]:
    """What transactions wrote to these topics; None: to all."""
    for entry in entries:
        for partition, runs in entry.written.items():
            if topics is None or partition.topic in topics:
                for run in runs:
                    yield partition, run


def runs_frame(spark: SparkSession, runs: Iterable[tuple[Partition, Run]]) -> DataFrame:
    """Runs as rows of RUNS."""
    return spark.createDataFrame([(*partition, *run) for partition, run in runs], RUNS)


def ranges_frame(spark: SparkSession, ranges: Iterable[OffsetRange]) -> DataFrame:
    """Ranges (of `in_flight`, of `ranges_in_cut`) as rows of RUNS; empty ones are left out."""
    rows = [(r.topic, r.partition, r.first, r.until - 1) for r in ranges if r.first < r.until]
    return spark.createDataFrame(rows, RUNS)


def offsets_of(runs: DataFrame) -> DataFrame:
    """A row for each offset of RUNS: `topic`, `partition`, `offset`."""
    return runs.selectExpr("topic", "partition", "explode(sequence(first, last)) AS offset")


def unaccounted(records: DataFrame, runs: DataFrame) -> DataFrame:
    """The records (with `topic`, `partition`, `offset`) that are in no run: nobody wrote them in
    the application's name, and the ledger knows nothing of them."""
    return records.join(offsets_of(runs), _WHERE, "left_anti")


def missing(records: DataFrame, runs: DataFrame) -> DataFrame:
    """`topic`, `partition`, `offset` of what the runs name and is not among the records."""
    return offsets_of(runs).join(records, _WHERE, "left_anti")
