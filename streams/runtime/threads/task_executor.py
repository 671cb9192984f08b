"""Poll records from the consumer and process them in the running tasks, slice by slice.

A slice is as many records of one task as take a few milliseconds, with the punctuations that they
make due. Between two slices the caller decides whether to go on: a commit may be due, the group may
rebalance, the thread may be told to stop. Records that were polled and not processed then wait in
the tasks' buffers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

from streams.common.counted import format_count
from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.runtime.clients.interfaces import ConsumerClient
from streams.runtime.counters import ThreadCounters
from streams.runtime.restoring.restorer_timings import RestorerTimings
from streams.runtime.tasks.key_placement import KeyPlacementCheck
from streams.runtime.tasks.recovery_errors import RECOVERY_ERRORS, to_recovery_error
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_lifetimes import TaskLifetimes
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.producers import TaskProducers

log = logging.getLogger(__name__)

_LATE_LOG_INTERVAL_S = 10.0
_LAG_INTERVAL_S = 1.0
_WAIT_WITH_RECORDS_S = 0.01
"""How long to wait at most while buffered records wait for those of another partition."""


class TaskExecutor:
    """Polls records from the consumer and processes them in the running tasks of one thread.

    Kafka Streams' counterpart is TaskExecutor.
    """

    def __init__(
        self,
        consumer: ConsumerClient,
        producers: TaskProducers,
        host: Host,
        counters: ThreadCounters,
        key_placement: KeyPlacementCheck,
        *,
        measures_details: bool = False,
        lifetimes: TaskLifetimes | None = None,
        restorer_timings: RestorerTimings | None = None,
    ) -> None:
        self._consumer = consumer
        self._producers = producers
        self._host = host
        self._measures_details = measures_details
        self._counters = counters
        self._key_placement = key_placement
        self.measurements = ThreadMeasurements(
            latencies_at_commit=producers.is_transactional,
            host=host,
            measures_lateness=measures_details,
            lifetimes=lifetimes,
            restorer=restorer_timings,
        )
        self._lags_due_at_s = 0.0
        self._tasks: dict[str, Task] = {}
        self._task_of_partition: dict[tuple[str, int], Task] = {}
        self._uncommitted_bytes_by_task: dict[str, int] = {}
        self._has_records_left = False
        self.commit_requested = False
        """Whether a processor has requested a commit."""
        self._unlogged_late_count = 0
        self._late_logged_at_s = -_LATE_LOG_INTERVAL_S
        self.current_task: Task | None = None
        """The task whose slice is being processed, for readers on other threads."""

    def __bool__(self) -> bool:
        """Return whether any task runs."""
        return bool(self._tasks)

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory the uncommitted writes of all tasks take."""
        return sum(self._uncommitted_bytes_by_task.values())

    def add_tasks(self, tasks: Collection[Task]) -> None:
        """Add tasks, and read their partitions from the tasks' positions on."""
        positions = {p: at for task in tasks for p, at in task.positions.items()}
        if positions:
            self._consumer.add_partitions(positions)
        for task in tasks:
            self._tasks[task.name] = task
            self._task_of_partition |= dict.fromkeys(task.partitions, task)
            self._key_placement.add_partitions(task.partitions, task.keyed_topics)

    def remove_tasks(self, tasks: Collection[Task]) -> None:
        """Remove tasks, and no longer read their partitions; their buffered records are dropped."""
        removed = [task for task in tasks if self._tasks.pop(task.name, None) is not None]
        partitions = [partition for task in removed for partition in task.partitions]
        for partition in partitions:
            del self._task_of_partition[partition]
        for task in removed:
            self._uncommitted_bytes_by_task.pop(task.name, None)
            self.measurements.drop_uncommitted_slices(task.name)
        if partitions:
            self._consumer.remove_partitions(partitions)

    def task_of_partition(self, partition: Partition) -> Task:
        """Return the task that reads a partition."""
        return self._task_of_partition[partition]

    def reset_after_commit(self) -> None:
        """Reset the count of uncommitted bytes and the request for a commit, after a commit."""
        self._uncommitted_bytes_by_task.clear()
        self.commit_requested = False
        self.measurements.observe_times_until_commit(self._host.now_ms())
        self._observe_sums()

    def _observe_sums(self) -> None:
        """Add the sums of slices and of store calls since the last time to the thread's timings."""
        self.measurements.observe_slices()
        for task in self._tasks.values():
            for measured in task.step_measurements.values():
                measured.request_next_measurement()
            if self._measures_details:
                for meter in task.stores.meters.values():
                    meter.add_calls_to_timings()

    def measure_lags_if_due(self) -> None:
        """Measure once a second how far each partition is behind, and compare sampled keys.

        What is summed up is observed with it, as a commit may be long in coming.
        """
        now_s = self._host.monotonic_s()
        if now_s < self._lags_due_at_s:
            return
        self._lags_due_at_s = now_s + _LAG_INTERVAL_S
        self._observe_sums()
        self._key_placement.compare_samples_and_count_misplaced()
        positions = {
            partition: position
            for task in self._tasks.values()
            for partition, position in task.positions.items()
        }
        self.measurements.lags = {
            partition: max(end - positions[partition], 0)
            for partition, end in self._consumer.get_last_fetched_ends(positions).items()
        }

    def poll_records(self, records_max: int, wait_s: float, *, at_first_record: bool) -> None:
        """Poll records into the tasks' buffers, unless the last slices have left some to process.

        At most `records_max` records are polled, within `wait_s` seconds: what comes in all that
        time or, `at_first_record`, what there is with the first one.
        """
        self.current_task = None  # also reset after a slice that failed
        if self._has_records_left:
            return
        if any(task.buffered_records.has_waiting_records() for task in self._tasks.values()):
            wait_s = min(wait_s, _WAIT_WITH_RECORDS_S)
        batches: dict[tuple[str, int], list[Any]] = {}
        consumer = self._consumer
        poll = consumer.poll_at_first_record if at_first_record else consumer.poll_records
        began_at_s = self._host.monotonic_s()
        polled = poll(records_max, wait_s)
        self.measurements.timings.add_poll(began_at_s, len(polled))
        self.measurements.events.note_new_events(self._counters)
        for message in polled:
            key = message.topic(), message.partition()
            try:
                batches[key].append(message)
            except KeyError:
                batches[key] = [message]
        for key, messages in batches.items():
            task = self._task_of_partition.get(key)
            if task is not None:  # None if the partition was removed after the fetch
                self._key_placement.sample_batch(key, messages)
                partition = next(p for p in task.partitions if p == key)
                task.buffered_records.add_records(partition, messages)

    def process_slices(self, should_continue: Callable[[], bool]) -> None:
        """Process all ready records in slices, until `should_continue()` returns False after one.

        Where it returns False the rest waits for the next call.
        """
        self._has_records_left = True
        while self._has_records_left:
            self._has_records_left = False
            for task in list(self._tasks.values()):
                records = self._process_slice_and_count_records(task)
                if records is None:
                    continue
                # Punctuations alone don't continue the loop: they may be due again and again.
                self._has_records_left = self._has_records_left or records > 0
                if not should_continue():
                    self._has_records_left = True
                    return

    def _process_slice_and_count_records(self, task: Task) -> int | None:
        """Process one slice of a task and return its number of records, None if nothing was ready.

        A slice of punctuations alone has 0 records. Raises: an error of `streams.errors` that
        selects the recovery.
        """
        began_at_s = self._host.monotonic_s()
        steps = task.steps
        # A refused write is committed with what came before it: the next one starts from there.
        size = 1 if self._producers.refused_writes.is_searching else task.slice_size
        runs = task.buffered_records.pop_next_runs(size, int(began_at_s * 1_000))
        now_ms = self._host.now_ms
        if not runs and not steps.is_punctuation_due(now_ms):
            return None
        counters = self._counters
        dropped_before = counters.dropped
        if not task.commit_needed:
            self._producers.begin_transaction(task.name)
            task.commit_needed = True
        self.current_task = task
        try:
            counters.punctuations += steps.process_runs(runs)
            if steps.is_punctuation_due(now_ms):
                due_at_s = self._host.monotonic_s()
                counters.punctuations += steps.call_due_punctuations(now_ms())
                self.measurements.add_task_punctuations(task.name, due_at_s)
        except RECOVERY_ERRORS:
            raise
        except Exception as error:
            context = steps.context
            processed = (
                context.describe_record_origin()
                if context.message is None
                else f"record {context.describe_record_origin()}"
            )
            raise to_recovery_error(error, processed) from error
        records = sum(len(messages) for _, messages in runs)
        counters.records += records
        dropped, late = steps.context.pop_dropped_counts()
        counters.dropped += dropped
        counters.late += late
        if late:
            self._log_late_records(task, late)
        if task.stores.logged or task.stores.unlogged:
            self._uncommitted_bytes_by_task[task.name] = steps.uncommitted_bytes
        self.current_task = None
        self.commit_requested = self.commit_requested or steps.context.commit_requested
        elapsed_s = self._host.monotonic_s() - began_at_s
        all_dropped = counters.dropped - dropped_before  # those skipped by a handler included
        if self.measurements.add_slice_and_sample(
            *(task.name, runs, elapsed_s, now_ms()),
            dropped=all_dropped,
            enforced=task.buffered_records.enforced_count,
        ):
            for measured in task.step_measurements.values():
                measured.request_next_measurement()
        if self._measures_details:
            for meter in task.stores.meters.values():
                meter.observe_buffer()
        task.adapt_slice_size(records, elapsed_s)
        return records

    def _log_late_records(self, task: Task, late_count: int) -> None:
        """Log late records: the first at once, then their number at an interval.

        They were dropped because their window had closed, which is a loss of data.
        """
        self._unlogged_late_count += late_count
        now_s = self._host.monotonic_s()
        if now_s - self._late_logged_at_s < _LATE_LOG_INTERVAL_S:
            return
        log.warning(
            "task %s: %s came when their windows had closed, and were dropped: stream time "
            "is %d ms (docs/windows.md, late records)",
            task.name,
            format_count(self._unlogged_late_count, "record"),
            task.steps.context.stream_time_ms,
        )
        self._unlogged_late_count, self._late_logged_at_s = 0, now_s
