"""Replay a sub-topology's tasks in the order of the ledger, with the commits that they made.

What tasks make of records of several topics depends on the order between these, and what they pass
on of cached tables on when they committed. The ledger tells both. So the tasks are run again, with
the product's own steps and stores in memory: each of their results is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, tee
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.reconciliation.derivation.ledger_order import LedgerOrder, PartitionOrder
from streams.spark.reconciliation.derivation.replay import ReplayedTask, ReplayWork
from streams.spark.reconciliation.derivation.replayed_lookups import (
    GlobalTableHistories,
    ReplayedLookups,
)
from streams.spark.reconciliation.derivation.row_schemas import (
    BATCH_ROWS_MAX,
    MADE,
    NUMBERED,
    READ,
    OutputRow,
    ReplayedMessage,
    drain_into_batches,
)

_Work = tuple[ReplayWork, LedgerOrder]
_PARTITION = itemgetter(READ.names.index("partition"))
_OFFSET = itemgetter(READ.names.index("offset"))
_COMMIT = itemgetter(NUMBERED.names.index("commit"))
_PARTITION_AND_TOPIC = itemgetter(READ.names.index("partition"), READ.names.index("topic"))


def replay_in_ledger_order(records: DataFrame, work: ReplayWork, order: LedgerOrder) -> DataFrame:
    """Replay steps over all records of a sub-topology's topics; return their results.

    `records` has the columns of READ, the result those of MADE. The records are sorted by Spark:
    an executor holds no more than the stores.
    """
    by_topic = records.repartition("partition").sortWithinPartitions("partition", "topic", "offset")
    numbered = map_on_executors(by_topic, number_records, order, NUMBERED)
    in_order = numbered.sortWithinPartitions("partition", "commit", "place")
    return map_on_executors(in_order, replay_numbered_records, (work, order), MADE)


def number_records(
    order: LedgerOrder, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Number the records of READ batches, which come by partition, topic and offset.

    Raises ConfigError for a record that the ledger doesn't know.
    """
    numbered: list[OutputRow] = []
    for (partition, topic), of_topic in groupby(_iterate_rows(batches), _PARTITION_AND_TOPIC):
        task = PartitionOrder(order.get(partition, ()), partition)
        rows, same_rows = tee(of_topic)
        positions = task.number_records_of_topic(topic, map(_OFFSET, same_rows))
        for row, position in zip(rows, positions, strict=True):
            numbered.append((*row, *position))
            if len(numbered) == BATCH_ROWS_MAX:
                yield from drain_into_batches(numbered, NUMBERED)
    yield from drain_into_batches(numbered, NUMBERED)


def replay_numbered_records(
    work: _Work, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Replay one task for each partition, one after the other; yield the rows that they make.

    The records of each partition come together and in the order of their numbers. Raises
    ConfigError where they are not all that the ledger names.
    """
    replay_work, order = work
    histories = GlobalTableHistories(replay_work.global_tables)
    for partition, of_partition in groupby(_iterate_rows(batches), _PARTITION):
        lookups = ReplayedLookups(histories)
        task = ReplayedTask(replay_work, partition, lookups)
        partition_order = PartitionOrder(order.get(partition, ()), partition)
        next_commit = 0
        for commit, of_commit in groupby(of_partition, _COMMIT):
            count = 0
            lookups.begin_lookups_of_commit(partition_order.find_lookups(commit))
            with lookups.explain_failures():
                for count, row in enumerate(of_commit, start=1):  # noqa: B007  counted to the end
                    task.process_message(ReplayedMessage(*row[: len(READ)]))
                partition_order.check_record_counts({commit: count}, next_commit, commit + 1)
                task.commit_stores()
            next_commit = commit + 1
            yield from drain_into_batches(task.output_rows)
        partition_order.check_no_later_records(next_commit)
        task.commit_and_close_task()
        yield from drain_into_batches(task.output_rows)


def _iterate_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Iterate over the rows of batches as tuples."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
