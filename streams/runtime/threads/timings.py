"""Hold the timings of a stream thread and of its tasks, by Kafka Streams' names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streams.common.timings import Timing
from streams.operators.timestamp_extraction import find_message_time_ms


class SliceSums:
    """Sums up the slices of one task until they are observed together: several in a millisecond."""

    __slots__ = ("longest_s", "most_records", "records", "seconds", "slices")

    def __init__(self) -> None:
        self.slices = self.records = self.most_records = 0
        self.seconds = self.longest_s = 0.0


class TaskTimings:
    """Holds the timings of one task: slices, timers, dropped records, and late ones in seconds."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._sums = SliceSums()
        self.process = Timing(monotonic_s)
        self.process_records = Timing(monotonic_s)
        self.punctuate = Timing(monotonic_s)
        self.lateness = Timing(monotonic_s)
        self.dropped = Timing(monotonic_s)
        self.dropped_total = 0
        self.enforced = Timing(monotonic_s)
        self._stream_time_ms = -1
        self.enforced_before = 0

    def add_slice(self, seconds: float, records: int) -> None:
        """Add a slice that took some seconds, and its number of records, to the sums."""
        sums = self._sums
        sums.slices += 1
        sums.records += records
        sums.seconds += seconds
        if seconds > sums.longest_s:
            sums.longest_s = seconds
        if records > sums.most_records:
            sums.most_records = records

    def observe_slices(self, of_thread: ThreadTimings) -> None:
        """Observe the slices that were summed up, and add them to the timings of the thread."""
        sums = self._sums
        if not sums.slices:
            return
        self._sums = SliceSums()
        now_s = self._monotonic_s()
        for process, process_records in (
            (self.process, self.process_records),
            (of_thread.process, of_thread.process_records),
        ):
            process.observe_values(sums.slices, sums.seconds, sums.longest_s, now_s)
            process_records.observe_values(sums.slices, sums.records, sums.most_records, now_s)

    def add_lateness(self, sample: Sequence[Any]) -> None:
        """Add by how much each of some records is older than the newest of the records so far."""
        newest_ms, total_ms, maximum_ms = self._stream_time_ms, 0, 0
        for message in sample:
            timestamp_ms = find_message_time_ms(message)
            if timestamp_ms < 0:  # it has none
                continue
            if timestamp_ms >= newest_ms:
                newest_ms = timestamp_ms
                continue
            total_ms += newest_ms - timestamp_ms
            maximum_ms = max(maximum_ms, newest_ms - timestamp_ms)
        self._stream_time_ms = newest_ms
        average_s = total_ms / len(sample) / 1_000
        now_s = self._monotonic_s()
        self.lateness.observe_calls(len(sample), average_s, maximum_ms / 1_000, now_s)

    def note_enforced(self, count: int) -> None:
        """Add the records that waited for no empty partition, given their number so far.

        The number begins at 0 again when the task is rolled back.
        """
        added = count - self.enforced_before if count > self.enforced_before else count
        self.enforced.observe(added, self._monotonic_s())
        self.enforced_before = count

    def add_dropped(self, records: int) -> None:
        """Add the records that a slice has dropped."""
        self.dropped.observe(records, self._monotonic_s())
        self.dropped_total += records


class ThreadTimings:
    """Holds the timings of one stream thread, by the names that Kafka Streams has for them.

    Those of commits, polls, slices of records and punctuations are in seconds; `poll_records` and
    `process_records` are how many records a poll returned, and a slice had.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.commit = Timing(monotonic_s)
        self.poll = Timing(monotonic_s)
        self.process = Timing(monotonic_s)
        self.punctuate = Timing(monotonic_s)
        self.poll_records = Timing(monotonic_s)
        self.process_records = Timing(monotonic_s)

    @property
    def blocked_s(self) -> float:
        """Return the seconds since the start in which the thread waited for polls and commits."""
        return self.poll.sum + self.commit.sum

    def add_poll(self, began_at_s: float, records: int) -> None:
        """Add a poll that began at a monotonic time, and the number of records that it returned."""
        now_s = self._monotonic_s()
        self.poll.observe(now_s - began_at_s, now_s)
        self.poll_records.observe(records, now_s)
