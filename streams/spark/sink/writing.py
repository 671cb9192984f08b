"""Encode columns as records, and write those of a task's Spark partition exactly once.

Batch and streaming writers both do this, with the name of a sink and the number of an epoch.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from streams.common.message_headers import Header
from streams.errors import ConfigError, StreamsError, UserError
from streams.spark.serdes.decoding import create_column_serde
from streams.spark.serdes.encoding import encode_column
from streams.spark.serdes.python_values import to_python_values
from streams.spark.serdes.times import to_kafka_times
from streams.spark.sink.epochs import (
    EpochSink,
    ProducerRows,
    Tally,
    find_extra_partitions,
    open_epoch_attempt,
    read_written_tally,
)
from streams.spark.source.broker_access import translate_unanswered_requests
from streams.spark.source.options import ChangedRowsPolicy, WriteOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

QUERY_ID_KEY = "sql.streaming.queryId"
BATCH_ID_KEY = "streaming.sql.batchId"
"""Local properties that tell a task its query and its epoch, as Spark sets them for its own sinks
(StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY). The query's id is kept in the
checkpoint: a new checkpoint is a new query."""
_PARTITIONS_END = 1 << 31
_WRITTEN_COLUMNS = ("key", "value", "partition", "timestamp", "headers")
_IGNORED_COLUMNS = ("topic", "offset")
"""Columns of a read that a write ignores, since the option topic says where to."""


@dataclass(frozen=True)
class PartitionWritten(WriterCommitMessage):
    """Reports to the driver the rows that a task has written.

    `was_written_before`: an earlier attempt had written the rows.
    """

    sink: EpochSink
    partition: int
    rows: int
    was_written_before: bool


def check_columns(options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
    """Raise ConfigError for columns whose names or types a write can't take."""
    if overwrite:
        raise ConfigError("a topic can't be overwritten: use mode('append')")
    names = schema.fieldNames()
    for name in names:
        if name not in _WRITTEN_COLUMNS + _IGNORED_COLUMNS:
            raise ConfigError(
                f"column {name!r} can't be written: a record has {', '.join(_WRITTEN_COLUMNS)}. "
                "Put it into value, as with to_json(struct(...)) or value=json, or drop it"
            )
        if names.count(name) > 1:
            raise ConfigError(f"there are {names.count(name)} columns {name!r}: leave one")
    if "value" not in names:
        raise ConfigError(f"there is no column value to write: there are {', '.join(names)}")
    if options.serdes.headers and "headers" not in names:
        raise ConfigError("option headers is true, and there is no column headers to write")
    encode_rows(options, _create_empty_batch(schema))


def encode_rows(options: WriteOptions, batch: RecordBatch) -> ProducerRows:
    """Encode the rows of a batch as records.

    Raises ConfigError for a column of another type than is written, UserError for a value that
    can't be written.
    """
    column = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
    none: list[Any] = [None] * batch.num_rows
    return ProducerRows(
        keys=_encode_field(options, "key", column["key"]) if "key" in column else none,
        values=_encode_field(options, "value", column["value"]),
        partitions=_convert_partition_numbers(column["partition"])
        if "partition" in column
        else None,
        timestamps_ms=to_kafka_times(column["timestamp"]) if "timestamp" in column else None,
        headers=_convert_headers(column["headers"]) if "headers" in column else None,
    )


def write_epoch_once(
    options: WriteOptions,
    sink: EpochSink,
    partition: int,
    epoch: int,
    batches: Iterator[RecordBatch],
) -> PartitionWritten:
    """Write a task's rows of an epoch, or compare them with those that an earlier attempt wrote.

    Raises StreamsError where that can't be, with what to do.
    """
    with translate_unanswered_requests(sink.topic):
        if options.topic not in options.access.create_admin().fetch_partition_counts():
            raise ConfigError(f"there is no topic {options.topic!r} to write into: create it first")
        rows = (encode_rows(options, batch) for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            # Without rows there is no transaction, only a check that an earlier attempt had none.
            before = read_written_tally(options.access, sink, partition, epoch)
            _check_same_rows(options, Tally(), before, partition)
            return PartitionWritten(sink, partition, 0, False)
        with open_epoch_attempt(options.access, sink, partition, epoch) as attempt:
            before = read_written_tally(options.access, sink, partition, epoch)
            if before is None:
                for each in chain([first], rows):
                    attempt.produce_rows(each)
                return PartitionWritten(sink, partition, attempt.commit_epoch().rows, False)
            again = Tally()
            for each in chain([first], rows):
                again.add_rows(each)
            _check_same_rows(options, again, before, partition)
            return PartitionWritten(sink, partition, before.rows, True)


def check_no_extra_partitions(
    options: WriteOptions, sink: EpochSink, partition_count: int, epoch: int
) -> None:
    """Raise StreamsError if an earlier attempt at the epoch had more Spark partitions.

    It is called when all tasks have written. With `on_changed_rows=skip` it raises nothing.
    """
    with translate_unanswered_requests(sink.topic):
        strange = find_extra_partitions(options.access, sink, partition_count, epoch)
    if strange and options.on_changed_rows is ChangedRowsPolicy.FAIL:
        numbers = ", ".join(map(str, strange[:5])) + (", ..." if len(strange) > 5 else "")
        raise StreamsError(
            f"epoch {epoch} was written into {sink.topic!r} by {partition_count} Spark "
            f"partitions, and an attempt before had more: what partitions {numbers} wrote then "
            "may be there twice. An epoch that is repeated must have the same partitions: don't "
            "change spark.sql.shuffle.partitions, or what else plans them, between the two"
        )


def get_spark_partition_number() -> int:
    """Return the number of the Spark partition that this task computes."""
    context = TaskContext.get()
    assert context is not None, "writes are tasks of Spark"
    return context.partitionId()


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a topic as one epoch, which a `write_id` makes recognizable later.

    The groups of the sink stay until the broker deletes them, with the transactional ids: a task
    that Spark has given up may only begin when the write is done, and must find that it is.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._sink = EpochSink(f"millrace-write-{options.write_id or uuid.uuid4()}", options.topic)

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write a task's rows, unless an earlier attempt wrote them."""
        return write_epoch_once(
            self._options, self._sink, get_spark_partition_number(), 0, iterator
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Raise StreamsError if an earlier write of this `write_id` had more Spark partitions."""
        if self._options.write_id is not None:
            check_no_extra_partitions(self._options, self._sink, len(messages), 0)


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
        return write_epoch_once(self._options, sink, get_spark_partition_number(), epoch, iterator)

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


def _check_same_rows(
    options: WriteOptions, tally: Tally, written_tally: Tally | None, partition: int
) -> None:
    """Raise StreamsError if an earlier attempt wrote other rows, unless the options allow it."""
    if written_tally in (None, tally) or options.on_changed_rows is ChangedRowsPolicy.SKIP:
        return
    raise StreamsError(
        f"Spark partition {partition} was written into {options.topic!r} by an attempt before with "
        f"{written_tally}, and comes again with {tally}: which of its rows are there can't be "
        "told. What is repeated must have the same rows in the same partitions (the same input, no "
        "rand() or uuid(), the same number of shuffle partitions). If the rows are the same and "
        "only values differ, as sums of floats do, set option on_changed_rows=skip: what was "
        "written stays"
    )


def _create_empty_batch(schema: StructType) -> RecordBatch:
    """Return an empty batch with the columns of a schema."""
    columns = {
        each.name: pa.array([], to_arrow_type(each.dataType, timezone="UTC")) for each in schema
    }
    return pa.RecordBatch.from_pydict(columns)


def _encode_field(options: WriteOptions, name: Any, column: Any) -> list[bytes | None]:
    """Encode the column `key` or `value` by its serde."""
    if pa.types.is_null(column.type):
        return [None] * len(column)
    return encode_column(column, create_column_serde(options.serdes, name, options.topic))


def _convert_partition_numbers(column: Any) -> list[int | None]:
    """Convert the column `partition` to numbers. Raises UserError for an impossible number."""
    _check_type("partition", column, pa.types.is_integer(column.type), "an integer")
    for strange in (pc.min(column).as_py(), pc.max(column).as_py()):
        if strange is not None and not 0 <= strange < _PARTITIONS_END:
            raise UserError(f"column partition names partition {strange}: there can't be one")
    return column.to_pylist()  # type: ignore[no-any-return]


def _convert_headers(column: Any) -> list[list[Header] | None]:
    """Convert the column `headers` to lists of pairs. Raises UserError for a header without key."""
    kind = column.type
    fits = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    fits = fits and [each.name for each in kind.value_type] == ["key", "value"]
    _check_type("headers", column, fits, "an array of struct<key: string, value: binary>")
    rows = to_python_values(column, "headers", "headers")
    if any(each is None or each["key"] is None for row in rows for each in row or ()):
        raise UserError("column headers has a header that is null, or has no key")
    return [None if row is None else [(each["key"], each["value"]) for each in row] for row in rows]


def _check_type(name: str, column: Any, is_valid: bool, wanted_type: str) -> None:
    """Raise ConfigError, naming `wanted_type`, if a column is not valid."""
    if not is_valid:
        raise ConfigError(f"column {name} is {column.type}: it must be {wanted_type}")
