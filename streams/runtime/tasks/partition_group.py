"""Buffer a task's polled records and decide in which order they are processed.

A task that reads one partition takes its records as they come (`SinglePartitionQueue`). One that
reads several takes the record with the lowest timestamp next, of two with the same the one whose
partition comes first (`PartitionGroup`); it does not go on as long as a partition without records
might bring a lower one:

    max_task_idle_ms   an empty partition is waited for
    -1                 never
    0                  while its lag is unknown or above 0
    N                  and N ms more when its lag is 0, counted from when it was first seen so

A record has its own timestamp, or the one that its source extracts (`MessageStamper`) as soon as it
is the first of its partition.

Partitions are looked at one after the other: the wait for the second begins when the one for the
first is over. Source: Kafka Streams' RecordQueue and PartitionGroup (KIP-353, KIP-695).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple, Protocol, TypeAlias

from streams.common.topic_partitions import NO_TIME, Partition
from streams.ledger import TakenRun
from streams.runtime.clients.interfaces import FlowControl

IsReady: TypeAlias = bool
"""True if the next record may be taken now."""

TimestampMs: TypeAlias = int

RecordReceiver = Callable[[Any], None]
MessageStamper = Callable[[Any, int], Any]
"""Extracts a message's time, given its partition's highest time in ms. The result has `time_ms`."""
RecordRun = tuple[RecordReceiver, Sequence[Any]]
"""Records that follow each other in one partition, and the function that takes each of them."""

ORDER_RUNS_MAX = 200_000
"""The number of runs between two commits up to which their order is kept: each takes memory."""
NEVER_WAIT = -1


class RecordOrderSettings(NamedTuple):
    """Holds the settings of a task's record order: how long to wait, how much to buffer."""

    max_task_idle_ms: int = 0
    buffered_records_max: int = 10_000
    """The limit of each partition: above it no more is polled, until half of it has been
    processed."""
    buffered_bytes_max: int = 4 << 20
    """The limit of each partition in bytes of values, about.

    Records are taken to be as large as those that were polled last."""
    keeps_order: bool = False
    """Whether the buffer remembers in which order it gave records away, for the ledger."""


class RecordBuffer(Protocol):
    """Buffers the records of a task that were polled and are not processed yet."""

    def add_records(self, partition: Partition, messages: list[Any]) -> None: ...

    def pop_next_runs(self, records_max: int, now_ms: int) -> list[RecordRun]:
        """Take up to `records_max` records out of the buffer, in their processing order.

        Returns an empty list if there is nothing, or if a partition without records is waited for.
        """
        ...

    def has_waiting_records(self) -> bool:
        """Return whether there are records that can't be processed yet."""
        ...

    enforced_count: int

    def count_records(self) -> int:
        """Return how many records wait in the buffer."""
        ...

    def next_offset(self, partition: Partition) -> int | None:
        """Return the offset of a partition's first buffered record; None if there is none."""
        ...

    def receiver_of(self, partition: Partition) -> RecordReceiver:
        """Return the function that takes each record of a partition."""
        ...

    def partition_times_ms(self, stream_time_ms: int) -> Mapping[Partition, int]:
        """Return each partition's highest timestamp of records taken, at most `stream_time_ms`.

        The stream time limits it: a record that could not be read doesn't count.
        """
        ...

    def pop_record_order(self) -> list[TakenRun] | None:
        """Return the runs of records taken since the last call: partition's place, and count.

        The place is that among the sorted partitions. Returns None if they are not kept.
        """
        ...


class SinglePartitionQueue:
    """Buffers the records of a task's only partition, in the order of their offsets."""

    enforced_count = 0

    def __init__(self, partition: Partition, receive: RecordReceiver) -> None:
        self._partition = partition
        self._receive = receive
        self._hold_message: Callable[[Any], Any] | None = getattr(
            receive, "wrap_unstamped_message", None
        )
        """Gives a message the place for the time that is extracted when it is processed; None:
        records have their own timestamps."""
        self._batch: list[Any] = []
        self._taken_count = 0
        self._unreported_count = 0
        """The number of records taken since `pop_record_order`."""

    def add_records(self, partition: Partition, messages: list[Any]) -> None:
        left = self._batch[self._taken_count :]
        self._batch = [*left, *messages] if left else messages
        self._taken_count = 0

    def pop_next_runs(self, records_max: int, now_ms: int) -> list[RecordRun]:
        run = self._batch[self._taken_count : self._taken_count + records_max]
        self._taken_count += len(run)
        self._unreported_count += len(run)
        if self._hold_message is not None:
            run = list(map(self._hold_message, run))
        return [(self._receive, run)] if run else []

    def has_waiting_records(self) -> bool:
        """Return False: records of a single partition wait for no other partition."""
        return False

    def count_records(self) -> int:
        return len(self._batch) - self._taken_count

    def next_offset(self, partition: Partition) -> int | None:
        if self._taken_count == len(self._batch):
            return None
        offset: int = self._batch[self._taken_count].offset()
        return offset

    def receiver_of(self, partition: Partition) -> RecordReceiver:
        return self._receive

    def partition_times_ms(self, stream_time_ms: int) -> Mapping[Partition, int]:
        """Return the stream time: with one partition it is the partition's highest timestamp."""
        return {self._partition: stream_time_ms}

    def pop_record_order(self) -> list[TakenRun]:
        """Return how many records were taken since the last call, as one run."""
        count, self._unreported_count = self._unreported_count, 0
        return [(0, count)] if count else []


class _RecordQueue:
    """Holds the buffered records of one of several partitions (Kafka Streams' RecordQueue)."""

    __slots__ = (
        "is_paused",
        "messages",
        "messages_max",
        "partition",
        "partition_time_ms",
        "receive",
        "stamp_message",
        "wait_until_ms",
    )

    def __init__(self, partition: Partition, receive: RecordReceiver, time_ms: int) -> None:
        self.partition = partition
        self.receive = receive
        self.stamp_message: MessageStamper | None = getattr(receive, "stamp_message", None)
        """None: records have their own timestamps."""
        self.messages: deque[Any] = deque()
        self.messages_max = 0
        self.partition_time_ms = time_ms
        self.is_paused = False
        self.wait_until_ms: int | None = None

    def stamp_head(self) -> TimestampMs:
        """Stamp the first record, if its source extracts times, and return its time in ms."""
        message = self.messages[0]
        time_ms: int
        if self.stamp_message is None:
            time_ms = message.timestamp()[1]
        else:
            stamped = self.messages[0] = self.stamp_message(message, self.partition_time_ms)
            time_ms = stamped.time_ms
        return time_ms


class PartitionGroup:
    """Buffers the records of a task's partitions and takes them in order of their timestamps."""

    def __init__(
        self,
        receivers: Mapping[Partition, RecordReceiver],
        partition_times_ms: Mapping[Partition, int],
        flow_control: FlowControl,
        settings: RecordOrderSettings,
    ) -> None:
        self._queues = {
            p: _RecordQueue(p, receivers[p], partition_times_ms.get(p, NO_TIME))
            for p in sorted(receivers)
        }
        self._sorted_queues = list(self._queues.values())
        self._flow_control = flow_control
        self._settings = settings
        self._heads: list[tuple[int, int]] = []
        """A heap with the first record's timestamp and the number of each queue that isn't
        empty."""
        self.enforced_count = 0
        """The records taken while a partition was empty that could have brought earlier ones."""
        self._is_enforced = False
        self._order: list[tuple[int, int]] | None = [] if settings.keeps_order else None
        """The runs of records taken since `pop_record_order`; None if it is not kept."""

    def add_records(self, partition: Partition, messages: list[Any]) -> None:
        """Add polled records, and pause a partition that has more than the settings allow."""
        queue = self._queues[partition]
        was_empty = not queue.messages
        queue.messages += messages
        if was_empty:
            heappush(
                self._heads,
                (queue.stamp_head(), self._sorted_queues.index(queue)),
            )
        queue.messages_max = self._compute_records_max(messages)
        if len(queue.messages) > queue.messages_max and not queue.is_paused:
            queue.is_paused = True
            self._flow_control.pause_partition(partition)

    def pop_next_runs(self, records_max: int, now_ms: int) -> list[RecordRun]:
        """Take records in order of their timestamps, and resume partitions with room again."""
        runs: list[RecordRun] = []
        places: list[int] = []
        run: list[Any] = []
        last: _RecordQueue | None = None
        heads = self._heads
        ready = self._update_waits_for_partitions(now_ms)
        while records_max > 0 and ready:
            time_ms, number = heads[0]
            queue = self._sorted_queues[number]
            if queue is not last:
                run, last = [], queue
                runs.append((queue.receive, run))
                places.append(number)
            run.append(queue.messages.popleft())
            records_max -= 1
            self.enforced_count += self._is_enforced
            if time_ms > queue.partition_time_ms:
                queue.partition_time_ms = time_ms
            if queue.messages:
                heapreplace(heads, (queue.stamp_head(), number))
            else:
                heappop(heads)
                # Only checked if another record is to be taken: the wait begins with that check.
                ready = records_max > 0 and self._update_waits_for_partitions(now_ms)
        self._resume_partitions()
        if self._order is not None:
            self._note_record_order(places, runs)
        return runs

    def pop_record_order(self) -> list[TakenRun] | None:
        order = self._order
        self._order = [] if self._settings.keeps_order else None
        return order

    def has_waiting_records(self) -> bool:
        return bool(self._heads)

    def count_records(self) -> int:
        return sum(len(queue.messages) for queue in self._sorted_queues)

    def next_offset(self, partition: Partition) -> int | None:
        messages = self._queues[partition].messages
        if not messages:
            return None
        offset: int = messages[0].offset()
        return offset

    def receiver_of(self, partition: Partition) -> RecordReceiver:
        return self._queues[partition].receive

    def partition_times_ms(self, stream_time_ms: int) -> Mapping[Partition, int]:
        return {
            p: min(queue.partition_time_ms, stream_time_ms) for p, queue in self._queues.items()
        }

    def _update_waits_for_partitions(self, now_ms: int) -> IsReady:
        """Time the waits for empty partitions, and return whether the next record may be taken."""
        if not self._heads:
            return False
        idle_ms = self._settings.max_task_idle_ms
        if idle_ms == NEVER_WAIT:
            return True
        self._is_enforced = False
        for queue in self._sorted_queues:
            if queue.messages:
                queue.wait_until_ms = None
                continue
            self._is_enforced = True  # as far as it is ready in spite of this partition
            if self._flow_control.measure_lag(queue.partition) != 0:
                queue.wait_until_ms = None
                return False
            if queue.wait_until_ms is None:
                queue.wait_until_ms = now_ms + idle_ms
            if now_ms < queue.wait_until_ms:
                return False
        return True

    def _compute_records_max(self, polled: list[Any]) -> int:
        """Return how many records of a partition may wait, if they are as large as those polled."""
        polled_bytes = sum(map(len, polled))
        bytes_max = self._settings.buffered_bytes_max
        records_max = self._settings.buffered_records_max
        if not polled_bytes:
            return records_max
        return min(records_max, bytes_max * len(polled) // polled_bytes)

    def _note_record_order(self, places: list[int], runs: list[RecordRun]) -> None:
        """Note the order of the records of runs, unless it has too many runs already."""
        order = self._order
        if order is None:
            return
        order += [(place, len(messages)) for place, (_, messages) in zip(places, runs, strict=True)]
        if len(order) > ORDER_RUNS_MAX:
            self._order = None

    def _resume_partitions(self) -> None:
        """Resume each paused partition once its buffer is at most half full."""
        for queue in self._sorted_queues:
            # Not at the limit itself: a consumer that pauses drops what it has fetched ahead.
            if queue.is_paused and len(queue.messages) <= queue.messages_max // 2:
                queue.is_paused = False
                self._flow_control.resume_partition(queue.partition)


def create_record_buffer(
    receivers: Mapping[Partition, RecordReceiver],
    partition_times_ms: Mapping[Partition, int],
    flow_control: FlowControl,
    settings: RecordOrderSettings,
) -> RecordBuffer:
    """Create the buffer of a task, whose records go to the receivers of their partitions.

    `partition_times_ms` are the highest timestamps that were committed.
    """
    if len(receivers) == 1:
        return SinglePartitionQueue(*next(iter(receivers.items())))
    return PartitionGroup(receivers, partition_times_ms, flow_control, settings)
