"""Write a stream to a topic, with each epoch of a query written exactly once.

A task learns its query and its epoch from local properties, as Spark sets them for its own sinks
(StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY). The query's id is kept in the
checkpoint: a new checkpoint is a new query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from streams.errors import StreamsError
from streams.spark.sink.epochs import EpochSink
from streams.spark.sink.writing import (
    PartitionWritten,
    check_no_extra_partitions,
    spark_partition,
    write_epoch_once,
)
from streams.spark.source.options import WriteOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

QUERY_ID_KEY = "sql.streaming.queryId"
BATCH_ID_KEY = "streaming.sql.batchId"


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the epochs of a streaming query to a topic, each of them exactly once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write a task's rows as its part of the epoch, unless an earlier attempt wrote them."""
        query, epoch = (
            _require_local_property(QUERY_ID_KEY),
            int(_require_local_property(BATCH_ID_KEY)),
        )
        sink = EpochSink(f"millrace-sink-{query}", self._options.topic)
        return write_epoch_once(self._options, sink, spark_partition(), epoch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Raise StreamsError if an earlier attempt at the epoch had more Spark partitions."""
        written = [each for each in messages if isinstance(each, PartitionWritten)]
        if written:
            check_no_extra_partitions(self._options, written[0].sink, len(messages), batchId)


def _require_local_property(name: str) -> str:
    """Return a local property of the task. Raises StreamsError if Spark has not set it."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(name)
    if found is None:
        raise StreamsError(
            f"Spark does not say which epoch this is ({name}): streams are written in micro-batches"
        )
    return found
