"""Measure what a stream thread does, at a cost for each slice of records and none for a record.

Slices may take half a millisecond each, so their times are summed up by task, and observed together
at a commit, and once a second in between.
The thread alone writes; a scrape of the metrics reads from another thread, whenever it comes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeAlias

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.operators.timestamp_extraction import find_message_time_ms
from streams.runtime.restoring.restorer_timings import RestorerTimings
from streams.runtime.tasks.task_lifetimes import TaskLifetimes
from streams.runtime.threads.recent_events import RecentEvents
from streams.runtime.threads.source_measurements import SourceMeasurements
from streams.runtime.threads.timings import TaskTimings, ThreadTimings

IsSampled: TypeAlias = bool
"""True if the steps are to measure their next record."""

UpperBound: TypeAlias = str
Count: TypeAlias = int

LATENCY_BOUNDS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0,
)  # fmt: skip
"""The upper bounds of the histogram's buckets, but for the last one, which has none."""


class LatencyHistogram:
    """Counts latencies by buckets."""

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self.sum_s = 0.0

    def observe(self, latency_s: float) -> None:
        """Count one latency; one below 0, of a record from the future, counts as 0."""
        latency_s = max(latency_s, 0.0)
        self.counts[bisect_left(LATENCY_BOUNDS_S, latency_s)] += 1
        self.sum_s += latency_s

    def cumulate_counts(self) -> list[tuple[UpperBound, Count]]:
        """Return the upper bound of each bucket, and how many latencies were up to that."""
        total, found = 0, []
        for bound, count in zip((*LATENCY_BOUNDS_S, float("inf")), self.counts, strict=True):
            total += count
            found.append(("+Inf" if bound == float("inf") else str(bound), total))
        return found


class ThreadMeasurements:
    """Holds a stream thread's measured times and counts since it began.

    `latencies_at_commit` says that results are seen when their transaction is committed, and not
    when they are written. With `measures_lateness` records are compared with the newest of their
    task.
    """

    def __init__(
        self,
        *,
        latencies_at_commit: bool,
        host: Host,
        measures_lateness: bool = False,
        lifetimes: TaskLifetimes | None = None,
        restorer: RestorerTimings | None = None,
    ) -> None:
        self.lifetimes = lifetimes or TaskLifetimes(host.monotonic_s)
        self.restorer = restorer or RestorerTimings(host.monotonic_s)
        self.timings = ThreadTimings(host.monotonic_s)
        self.events = RecentEvents(host.monotonic_s)
        self.timings_by_task: dict[str, TaskTimings] = {}
        self._monotonic_s = host.monotonic_s
        self.started_at_ms = host.now_ms()
        """Wall-clock time at which the thread began."""
        self.records_by_task: dict[str, int] = {}
        """Records that each task has processed."""
        self.sources: dict[tuple[str, str], SourceMeasurements] = {}
        """The records that were handed to a source step, by task and topic."""
        self.seconds_by_task: dict[str, float] = {}
        """Seconds in which each task has processed records and called punctuations."""
        self.latency = LatencyHistogram()
        """From the timestamp of a record until its results can be read: of one record a slice."""
        self.lags: dict[Partition, int] = {}
        """About how many records of each partition are not committed yet."""
        self._waits_for_commit = latencies_at_commit
        self._measures_lateness = measures_lateness
        self._uncommitted: dict[str, list[int]] = {}

    def add_slice_and_sample(
        self,
        task: str,
        runs: Sequence[tuple[object, Sequence[Any]]],
        seconds: float,
        now_ms: int,
        *,
        dropped: int = 0,
        enforced: int = 0,
    ) -> IsSampled:
        """Add the records and the seconds of one slice of a task to the measurements.

        `enforced` is the `enforced_count` of the task's buffer. Returns whether steps are to look
        at their next record: False if a slice a moment ago was looked at.
        """
        timings = self._get_or_add_task_timings(task)
        if dropped:
            timings.add_dropped(dropped)
        if enforced != timings.enforced_before:
            timings.note_enforced(enforced)
        self.seconds_by_task[task] = self.seconds_by_task.get(task, 0.0) + seconds
        if not runs:
            return True  # timers alone have made the slice
        began_at_ms = now_ms - seconds * 1_000
        count, is_looked_at = 0, False
        for _, messages in runs:
            if sample := self._count_and_sample_run(task, messages, began_at_ms):
                is_looked_at = True
                if self._measures_lateness:
                    timings.add_lateness(sample)
            count += len(messages)
        self.records_by_task[task] = self.records_by_task.get(task, 0) + count
        timings.add_slice(seconds, count)
        timestamp_ms = find_message_time_ms(runs[0][1][0])
        if self._waits_for_commit:
            self._uncommitted.setdefault(task, []).append(timestamp_ms)
        else:
            self._observe_latency(timestamp_ms, now_ms)
        return is_looked_at

    def add_task_punctuations(self, task: str, began_at_s: float) -> None:
        """Add a call of the timers of a task that were due."""
        self.timings.punctuate.observe_since(began_at_s)
        self._get_or_add_task_timings(task).punctuate.observe_since(began_at_s)

    def _get_or_add_task_timings(self, task: str) -> TaskTimings:
        """Return the timings of a task, new ones for its first slice."""
        timings = self.timings_by_task.get(task)
        if timings is None:
            timings = self.timings_by_task[task] = TaskTimings(self._monotonic_s)
        return timings

    def _count_and_sample_run(
        self, task: str, messages: Sequence[Any], began_at_ms: float
    ) -> Sequence[Any]:
        """Count a run of records of one task and topic; return those sampled, if any."""
        topic: str = messages[0].topic()
        source = task, topic
        measured = self.sources.get(source)
        if measured is None:
            measured = self.sources[source] = SourceMeasurements(topic, self._monotonic_s)
        return measured.count_and_sample_run(messages, began_at_ms)

    def drop_uncommitted_slices(self, task: str) -> None:
        """Forget the slices of a task that is rolled back or given up."""
        self._uncommitted.pop(task, None)

    def observe_slices(self) -> None:
        """Observe the times and sizes of the slices since the last call."""
        for each in self.timings_by_task.values():
            each.observe_slices(self.timings)

    def observe_times_until_commit(self, now_ms: int) -> None:
        """Count the latencies of all slices since the last commit."""
        for timestamps_ms in self._uncommitted.values():
            for timestamp_ms in timestamps_ms:
                self._observe_latency(timestamp_ms, now_ms)
        self._uncommitted.clear()

    def _observe_latency(self, timestamp_ms: int, now_ms: int) -> None:
        if timestamp_ms >= 0:  # a record may have none
            self.latency.observe((now_ms - timestamp_ms) / 1000)
