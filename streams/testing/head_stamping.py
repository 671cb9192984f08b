"""Give each partition's next record the time that its source extracts, before one is taken.

The order of records goes by these times, as in a task (`streams.runtime.tasks.partition_group`).
The task then gets the record as it was stamped: an extractor is called once for a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from streams.common.topic_partitions import Partition
from streams.operators.timestamp_extraction import StampedMessage
from streams.runtime.tasks.partition_group import RecordReceiver
from streams.runtime.tasks.task import Task
from streams.testing.cluster import Message
from streams.testing.record_order import NextRecords


class _StampedHead(NamedTuple):
    receive: RecordReceiver
    """The source that stamped it: a task that was rolled back has another one."""
    stamped: StampedMessage


class HeadStamper:
    """Stamps the next records of the partitions whose sources extract times.

    `find_task` returns the task that reads a partition, if there is one.
    """

    def __init__(self, find_task: Callable[[Partition], Task | None]) -> None:
        self._find_task = find_task
        self._stamped: dict[Partition, _StampedHead] = {}
        """The record of each partition that was stamped last."""

    def stamp_heads(self, heads: Mapping[Partition, Message]) -> NextRecords:
        """Return the next records, stamped where their sources extract times."""
        return {p: self._stamp_head(p, message) for p, message in heads.items()}

    def _stamp_head(self, partition: Partition, message: Message) -> Message | StampedMessage:
        task = self._find_task(partition)
        if task is None or task.buffer is None:
            return message
        receive = task.buffer.receiver_of(partition)
        stamp = getattr(receive, "stamp_message", None)
        if stamp is None:
            return message
        last = self._stamped.get(partition)
        if last is not None and last.receive is not receive:
            last = None
        if last is not None and last.stamped.message is message:
            return last.stamped
        stream_time_ms = task.steps.context.stream_time_ms
        known_ms = task.buffer.partition_times_ms(stream_time_ms)[partition]
        if last is not None:  # it may wait in the task, which does not count it before it goes on
            known_ms = max(known_ms, last.stamped.time_ms)
        stamped: StampedMessage = stamp(message, known_ms)
        self._stamped[partition] = _StampedHead(receive, stamped)
        return stamped
