"""Process the records that the consumer returns through the tasks that run, slice by slice.

A slice is as many records of one task as take a few milliseconds, with the punctuations that they
make due. Between two slices the caller decides whether to go on: a commit may be due, the group may
rebalance, the thread may be told to stop. Records that were polled and not processed then wait in
the tasks' buffers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

from streams.positions import Partition
from streams.runtime.counters import Counters
from streams.runtime.failures import NAMED
from streams.runtime.host import Host
from streams.runtime.interfaces import ConsumerClient
from streams.runtime.producers import Producers
from streams.runtime.recovery import named
from streams.runtime.task import Task

log = logging.getLogger(__name__)

_LATE_SAID_EVERY_S = 10.0
_WAIT_WITH_RECORDS_S = 0.01
"""How long to wait at most while buffered records wait for those of another partition."""


class Work:
    """Holds the running tasks of one thread and takes records from the consumer through them.

    Kafka Streams' counterpart is TaskExecutor.
    """

    def __init__(
        self, consumer: ConsumerClient, producers: Producers, host: Host, counters: Counters
    ) -> None:
        self._consumer = consumer
        self._producers = producers
        self._host = host
        self._counters = counters
        self._tasks: dict[str, Task] = {}
        self._routes: dict[tuple[str, int], Task] = {}
        self._uncommitted: dict[str, int] = {}
        self._is_left = False
        self.commit_asked = False
        """Whether a processor has requested a commit."""
        self._unsaid_late = 0
        self._late_said_s = -_LATE_SAID_EVERY_S
        self.at: Task | None = None
        """The task whose slice is being processed, for readers on other threads."""

    def __bool__(self) -> bool:
        """Return whether any task runs."""
        return bool(self._tasks)

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory the uncommitted writes of all tasks take."""
        return sum(self._uncommitted.values())

    def begin(self, tasks: Collection[Task]) -> None:
        """Add tasks, and read their partitions from the tasks' positions on."""
        positions = {p: at for task in tasks for p, at in task.positions.items()}
        if positions:
            self._consumer.add(positions)
        for task in tasks:
            self._tasks[task.name] = task
            self._routes |= dict.fromkeys(task.partitions, task)

    def end(self, tasks: Collection[Task]) -> None:
        """Remove tasks, and no longer read their partitions; their buffered records are dropped."""
        removed = [task for task in tasks if self._tasks.pop(task.name, None) is not None]
        partitions = [partition for task in removed for partition in task.partitions]
        for partition in partitions:
            del self._routes[partition]
        for task in removed:
            self._uncommitted.pop(task.name, None)
        if partitions:
            self._consumer.remove(partitions)

    def task_of(self, partition: Partition) -> Task:
        """Return the task that reads a partition."""
        return self._routes[partition]

    def committed(self) -> None:
        """Reset the count of uncommitted bytes and the request for a commit, after a commit."""
        self._uncommitted.clear()
        self.commit_asked = False

    def take(self, records_max: int, wait_s: float) -> None:
        """Poll records into the buffers of their tasks, unless some are left from before.

        At most `records_max` records are polled, within `wait_s` seconds.
        """
        self.at = None  # also reset after a slice that failed
        if self._is_left:
            return
        if any(task.records.waits() for task in self._tasks.values()):
            wait_s = min(wait_s, _WAIT_WITH_RECORDS_S)
        batches: dict[tuple[str, int], list[Any]] = {}
        for message in self._consumer.take(records_max, wait_s):
            key = message.topic(), message.partition()
            try:
                batches[key].append(message)
            except KeyError:
                batches[key] = [message]
        for key, messages in batches.items():
            task = self._routes.get(key)
            if task is not None:  # None if the partition was removed after the fetch
                partition = next(p for p in task.partitions if p == key)
                task.records.add(partition, messages)

    def process(self, go_on: Callable[[], bool]) -> None:
        """Process all that is ready in slices, as long as `should_continue()` after a slice.

        Where it returns False the rest waits for the next call.
        """
        self._is_left = True
        while self._is_left:
            self._is_left = False
            for task in list(self._tasks.values()):
                records = self._slice(task)
                if records is None:
                    continue
                # Punctuations alone don't continue the loop: they may be due again and again.
                self._is_left = self._is_left or records > 0
                if not go_on():
                    self._is_left = True
                    return

    def _slice(self, task: Task) -> int | None:
        """Process one slice of a task and return its number of records, None if nothing was ready.

        A slice of punctuations alone has 0 records. Raises: an error of `streams.errors` that
        selects the recovery.
        """
        began_at_s = self._host.monotonic_s()
        runs = task.records.next(task.slice_records, int(began_at_s * 1_000))
        now_ms = self._host.now_ms
        if not runs and not task.due(now_ms):
            return None
        counters = self._counters
        if not task.dirty:
            self._producers.begin(task.name)
            task.dirty = True
        self.at = task
        try:
            counters.punctuations += task.process(runs)
            if task.due(now_ms):
                counters.punctuations += task.punctuate(now_ms())
        except NAMED:
            raise
        except Exception as error:
            context = task.context
            processed = (
                context.origin() if context.message is None else f"record {context.origin()}"
            )
            raise named(error, processed) from error
        records = sum(len(messages) for _, messages in runs)
        counters.records += records
        dropped, late = task.context.take_dropped()
        counters.dropped += dropped
        counters.late += late
        if late:
            self._say_late(task, late)
        if task.stores or task.unlogged:
            self._uncommitted[task.name] = task.uncommitted_bytes
        self.at = None
        self.commit_asked = self.commit_asked or task.context.commit_asked
        task.paced(records, self._host.monotonic_s() - began_at_s)
        return records

    def _say_late(self, task: Task, late: int) -> None:
        """Log late records: the first at once, then their number at an interval.

        They were dropped because their window had closed, which is a loss of data.
        """
        self._unsaid_late += late
        now_s = self._host.monotonic_s()
        if now_s - self._late_said_s < _LATE_SAID_EVERY_S:
            return
        log.warning(
            "task %s: %d records came when their windows had closed, and were dropped: stream time "
            "is %d ms (docs/windows.md, late records)",
            task.name,
            self._unsaid_late,
            task.context.stream_time_ms,
        )
        self._unsaid_late, self._late_said_s = 0, now_s
