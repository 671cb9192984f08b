"""Compare written records with the ledger, to find foreign records and missing ones.

The ledger says of each committed transaction which offsets it wrote. So a record of another
producer, be it a copy of one that was there, is told by where it lies, whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange, ledger_topic
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.ledger_reader import read_ledger_transactions
from streams.spark.cuts.members import Members, merge_runs
from streams.spark.cuts.topic_ids import refuse_topic_recreated_since_cut
from streams.spark.reconciliation.accounts import KEY_COLUMNS
from streams.spark.reconciliation.comparing import RowVerdict, build_verdict_rows
from streams.spark.source.broker_access import BrokerAccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POSITION_COLUMNS = ("topic", "partition", "offset")


def entries_in_cut(access: BrokerAccess, cut: Cut) -> Iterator[LedgerTransaction]:
    """Return the consistent cut's transactions that the ledger still has, in its order.

    Raises: ConfigError if there is no ledger, StreamsError if it can't be read.
    """
    if cut.ledger_end is None:
        raise ConfigError(
            f"{cut.application_id!r} keeps no ledger, so no record tells of its transaction: run "
            "it with ledger=True"
        )
    ledger = Partition(ledger_topic(cut.application_id), 0)
    admin = access.create_admin()
    refuse_topic_recreated_since_cut(
        cut, ledger.topic, admin.fetch_topic_ids([ledger.topic])[ledger.topic]
    )
    first = admin.fetch_earliest_offsets([ledger])[ledger]
    entries = read_ledger_transactions(access, cut.application_id, first, cut.ledger_end)
    members = Members(cut)
    return (entry for entry in entries if members.includes_transaction(entry))


class LedgerRuns:
    """Indexes by topic the runs of offsets that the ledger says transactions have written."""

    def __init__(self, spark: SparkSession, entries: Iterable[LedgerTransaction]) -> None:
        self._spark = spark
        self._runs: dict[str, dict[Partition, list[WrittenRange]]] = {}
        for entry in entries:
            for partition, runs in entry.written.items():
                self._runs.setdefault(partition.topic, {}).setdefault(partition, []).extend(runs)

    def compare_records(
        self, actual_rows: DataFrame, topic: str, *, is_complete: bool
    ) -> DataFrame:
        """Find the records that the ledger doesn't name, and the runs with missing records.

        `actual_rows`: records of `topic` with the columns of ROW and FOUND. Returns rows of a
        comparison (see `comparing`): records in no entry are `unexpected`, and, if the topic
        `is_complete`, neither compacted nor cut short, runs of which some are not there are
        `missing`. What is older than the ledger is not judged.
        """
        rows = actual_rows.select(*KEY_COLUMNS, "value", "timestamp", *_POSITION_COLUMNS)
        both = rows.unionByName(self._build_run_rows(topic), allowMissingColumns=True)
        is_run = F.col("last").isNotNull()
        in_order = Window.partitionBy("topic", "partition").orderBy("offset", (~is_run).cast("INT"))
        run = F.when(is_run, F.struct(F.col("offset").alias("first"), "last"))
        rows_with_runs = both.withColumn("run", F.last(run, ignorenulls=True).over(in_order))
        foreign_records = build_verdict_rows(
            rows_with_runs.where(~is_run & (F.col("offset") > F.col("run.last"))),
            RowVerdict.UNEXPECTED,
            found="value",
            found_ms="timestamp",
            positions=F.array(F.struct(*_POSITION_COLUMNS)),
            why=F.lit("in no entry of the ledger"),
        )
        if not is_complete:
            return foreign_records
        return foreign_records.unionByName(self._count_missing_records_by_run(rows_with_runs))

    def _count_missing_records_by_run(self, rows_with_runs: DataFrame) -> DataFrame:
        """Build the row verdict `missing` for each run that has fewer records than offsets."""
        there = F.count(F.when(F.col("last").isNull() & (F.col("offset") <= F.col("run.last")), 1))
        runs = (
            rows_with_runs.where("run IS NOT NULL")
            .groupBy("topic", "partition", "run")
            .agg(there.alias("there"))
            .withColumn("count", F.col("run.last") - F.col("run.first") + 1 - F.col("there"))
            .where("count > 0")
        )
        why = F.format_string(
            "of the offsets %d to %d, which the ledger names, only %d are there",
            "run.first",
            "run.last",
            "there",
        )
        position = F.struct("topic", "partition", F.col("run.first").alias("offset"))
        return build_verdict_rows(runs, RowVerdict.MISSING, positions=F.array(position), why=why)

    def _build_run_rows(self, topic: str) -> DataFrame:
        """Build a DataFrame of a topic's runs: `topic`, `partition`, `offset` and `last`."""
        runs = [
            (partition.number, run)
            for partition, runs_written in self._runs.get(topic, {}).items()
            for run in merge_runs(runs_written)
        ]
        columns: dict[str, Any] = {
            "topic": pa.array([topic] * len(runs), pa.string()),
            "partition": pa.array([number for number, _ in runs], pa.int32()),
            "offset": pa.array([run.first for _, run in runs], pa.int64()),
            "last": pa.array([run.last for _, run in runs], pa.int64()),
        }
        return self._spark.createDataFrame(pa.table(columns))
