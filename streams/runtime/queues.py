"""Buffer a task's polled records and decide in which order they are processed.

A task that reads one partition takes its records as they come (`SinglePartitionQueue`). One that
reads several takes the record with the lowest timestamp next, of two with the same the one whose
partition comes first (`PartitionGroup`); it does not go on as long as a partition without records
might bring a lower one:

    max_task_idle_ms   an empty partition is waited for
    -1                 never
    0                  while its lag is unknown or above 0
    N                  and N ms more when its lag is 0, counted from when it was first seen so

Partitions are looked at one after the other: the wait for the second begins when the one for the
first is over. Source: Kafka Streams' RecordQueue and PartitionGroup (KIP-353, KIP-695).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple, Protocol

from streams.positions import Partition

Receive = Callable[[Any], None]
Run = tuple[Receive, Sequence[Any]]
"""Records that follow each other in one partition, and the function that takes each of them."""

NEVER_WAIT = -1
NO_TIME = -1


class Consuming(Protocol):
    """Gives a partition's lag, and pauses and resumes the partition, as the consumer does."""

    def lag(self, partition: Partition) -> int | None:
        """Return how many records on the broker are not polled yet; None if unknown."""
        ...

    def pause(self, partition: Partition) -> None: ...

    def resume(self, partition: Partition) -> None: ...


class Order(NamedTuple):
    """Holds the settings that say in which order a task takes its records."""

    max_task_idle_ms: int = 0
    buffered_records_max: int = 1_000
    """The limit of each partition: above it no more is polled, until half of it has been
    processed."""


class Records(Protocol):
    """Buffers the records of a task that were polled and are not processed yet."""

    def add(self, partition: Partition, messages: list[Any]) -> None: ...

    def next(self, limit: int, now_ms: int) -> list[Run]:
        """Take up to `records_max` records out of the buffer, in their processing order.

        Returns an empty list if there is nothing, or if a partition without records is waited for.
        """
        ...

    def waits(self) -> bool:
        """Return whether there are records that can't be processed yet."""
        ...

    def head(self, partition: Partition) -> int | None:
        """Return the offset of a partition's first buffered record; None if there is none."""
        ...

    def times(self, stream_time_ms: int) -> Mapping[Partition, int]:
        """Return the highest timestamp in ms of each partition, of the records that were taken.

        `stream_time_ms` limits it: a record that could not be read doesn't count.
        """
        ...


class Straight:
    """Buffers the records of a task's only partition, in the order of their offsets."""

    def __init__(self, partition: Partition, receive: Receive) -> None:
        self._partition = partition
        self._receive = receive
        self._batch: list[Any] = []
        self._taken = 0

    def add(self, partition: Partition, messages: list[Any]) -> None:
        left = self._batch[self._taken :]
        self._batch = [*left, *messages] if left else messages
        self._taken = 0

    def next(self, limit: int, now_ms: int) -> list[Run]:
        run = self._batch[self._taken : self._taken + limit]
        self._taken += len(run)
        return [(self._receive, run)] if run else []

    def waits(self) -> bool:
        return False

    def head(self, partition: Partition) -> int | None:
        if self._taken == len(self._batch):
            return None
        offset: int = self._batch[self._taken].offset()
        return offset

    def times(self, stream_time_ms: int) -> Mapping[Partition, int]:
        return {self._partition: stream_time_ms}


class _Queue:
    """Holds the buffered records of one of several partitions (Kafka Streams' RecordQueue)."""

    __slots__ = ("messages", "partition", "paused", "receive", "time_ms", "wait_until_ms")

    def __init__(self, partition: Partition, receive: Receive, time_ms: int) -> None:
        self.partition = partition
        self.receive = receive
        self.messages: deque[Any] = deque()
        self.time_ms = time_ms
        self.paused = False
        self.wait_until_ms: int | None = None


class Queues:
    """Buffers the records of a task's partitions and takes them in order of their timestamps."""

    def __init__(
        self,
        receivers: Mapping[Partition, Receive],
        times: Mapping[Partition, int],
        consuming: Consuming,
        order: Order,
    ) -> None:
        self._queues = {
            p: _Queue(p, receivers[p], times.get(p, NO_TIME)) for p in sorted(receivers)
        }
        self._in_order = list(self._queues.values())
        self._consuming = consuming
        self._order = order
        self._heads: list[tuple[int, int]] = []
        """A heap with the first record's timestamp and the number of each queue that isn't
        empty."""

    def add(self, partition: Partition, messages: list[Any]) -> None:
        queue = self._queues[partition]
        if not queue.messages:
            heappush(self._heads, (_timestamp(messages[0]), self._in_order.index(queue)))
        queue.messages += messages
        if len(queue.messages) > self._order.buffered_records_max and not queue.paused:
            queue.paused = True
            self._consuming.pause(partition)

    def next(self, limit: int, now_ms: int) -> list[Run]:
        runs: list[Run] = []
        run: list[Any] = []
        last: _Queue | None = None
        heads = self._heads
        ready = self._is_ready(now_ms)
        while limit > 0 and ready:
            time_ms, number = heads[0]
            queue = self._in_order[number]
            if queue is not last:
                run, last = [], queue
                runs.append((queue.receive, run))
            run.append(queue.messages.popleft())
            limit -= 1
            if time_ms > queue.time_ms:
                queue.time_ms = time_ms
            if queue.messages:
                heapreplace(heads, (_timestamp(queue.messages[0]), number))
            else:
                heappop(heads)
                # Only checked if another record is to be taken: the wait begins with that check.
                ready = limit > 0 and self._is_ready(now_ms)
        self._resume()
        return runs

    def waits(self) -> bool:
        return bool(self._heads)

    def head(self, partition: Partition) -> int | None:
        messages = self._queues[partition].messages
        if not messages:
            return None
        offset: int = messages[0].offset()
        return offset

    def times(self, stream_time_ms: int) -> Mapping[Partition, int]:
        return {p: min(queue.time_ms, stream_time_ms) for p, queue in self._queues.items()}

    def _is_ready(self, now_ms: int) -> bool:
        """Return whether the next record may be taken, as no partition has to be waited for."""
        if not self._heads:
            return False
        idle_ms = self._order.max_task_idle_ms
        if idle_ms == NEVER_WAIT:
            return True
        for queue in self._in_order:
            if queue.messages:
                queue.wait_until_ms = None
                continue
            if self._consuming.lag(queue.partition) != 0:
                queue.wait_until_ms = None
                return False
            if queue.wait_until_ms is None:
                queue.wait_until_ms = now_ms + idle_ms
            if now_ms < queue.wait_until_ms:
                return False
        return True

    def _resume(self) -> None:
        """Resume each paused partition once its buffer is at most half full."""
        for queue in self._in_order:
            # Not at the limit itself: a consumer that pauses drops what it has fetched ahead.
            if queue.paused and len(queue.messages) <= self._order.buffered_records_max // 2:
                queue.paused = False
                self._consuming.resume(queue.partition)


def _timestamp(message: Any) -> int:
    time_ms: int = message.timestamp()[1]
    return time_ms
