"""Define the schemas of the rows that go to executors and come back as Arrow batches.

READ      a record of a source topic
NUMBERED  the same, with its commit and its index in it, by the ledger (`ledger_order`)
MADE      what the steps have made of it, for one target: a topic, a store, or a step
          (`create_capture_operator`)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from streams.common.message_headers import TypeAndTimestampMs

READ = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
    ]
)
"""Timestamps in ms since 1970."""

NUMBERED = READ.append(pa.field("commit", pa.int64())).append(pa.field("place", pa.int64()))

MADE = pa.schema(
    [
        ("target", pa.string()),
        ("key", pa.binary()),
        ("window_start", pa.int64()),
        ("window_end", pa.int64()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("number", pa.int64()),
        ("to", pa.int32()),
    ]
)
"""`topic`, `partition` and `offset`: the record that it was made of; without one the topic is null
and the partition the task's. `number` counts what a task has made. `to` is the partition that it is
written to, where that is asked for."""
BATCH_ROWS_MAX = 10_000


class ReplayedMessage:
    """Represents a record of a topic, with the methods of a consumer's message."""

    __slots__ = ("_key", "_offset", "_partition", "_timestamp", "_topic", "_value")

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        topic: str,
        partition: int,
        offset: int,
        timestamp_ms: int,
    ) -> None:
        self._key, self._value = key, value
        self._topic, self._partition, self._offset = topic, partition, offset
        self._timestamp = (1, timestamp_ms)

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> TypeAndTimestampMs:
        """Return the timestamp's type, CreateTime, and the timestamp in ms since 1970."""
        return self._timestamp

    def headers(self) -> None:
        """Return no headers: results are compared without them."""


def iterate_messages(batch: pa.RecordBatch) -> Iterator[ReplayedMessage]:
    """Iterate over the rows of a READ batch as messages of a consumer."""
    columns = (batch.column(name).to_pylist() for name in READ.names)
    return map(ReplayedMessage, *columns)


OutputRow = tuple[Any, ...]
"""One row of MADE."""


def drain_into_batches(
    output_rows: list[OutputRow], schema: pa.Schema = MADE
) -> Iterator[pa.RecordBatch]:
    """Yield the collected rows as Arrow batches, and empty the list."""
    while output_rows:
        part, output_rows[:] = output_rows[:BATCH_ROWS_MAX], output_rows[BATCH_ROWS_MAX:]
        columns = zip(*part, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)],
            schema=schema,
        )
