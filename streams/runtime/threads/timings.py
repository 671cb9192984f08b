"""Measure how long calls of a stream thread take: totals, and figures of the last minute.

Kafka Streams' sensors have two samples of 30 seconds (`metrics.sample.window.ms`,
`metrics.num.samples`); averages, maxima, rates and ratios are of the samples that are not over.
The thread alone writes; a scrape of the metrics reads from another thread, whenever it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SAMPLE_S = 30.0
"""The seconds that a sample covers."""


@dataclass(slots=True)
class TimingSample:
    """Holds count, sum and maximum of the values observed since `began_at_s`."""

    began_at_s: float
    count: int = 0
    sum: float = 0.0
    maximum: float = 0.0

    def observe(self, value: float) -> None:
        """Add one value."""
        self.count += 1
        self.sum += value
        if value > self.maximum:
            self.maximum = value


@dataclass(frozen=True, slots=True)
class TimingFigures:
    """Reports `average` and `maximum` of the values of late; both are 0 if there were none.

    `rate` is the number of observations a second, `ratio` their sum a second.
    """

    average: float
    maximum: float
    rate: float
    ratio: float


class Timing:
    """Observes values of one kind, such as the seconds of each commit."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._samples: tuple[TimingSample, ...] = (TimingSample(monotonic_s()),)
        """The present sample, after the one before it if that is not too old: one tuple, since a
        scrape may read it at any moment."""
        self.total = 0
        """The number of values that were observed since the start."""

    def observe(self, value: float, now_s: float) -> None:
        """Add a value, at a monotonic time in seconds."""
        present = self._samples[-1]
        if now_s - present.began_at_s >= SAMPLE_S:
            # After a pause of several samples the last one is too old to count.
            is_recent = now_s - present.began_at_s < 2 * SAMPLE_S
            last = (present,) if is_recent else ()
            present = TimingSample(now_s)
            self._samples = (*last, present)
        self.total += 1
        present.observe(value)

    def observe_since(self, began_at_s: float) -> None:
        """Add the seconds since a monotonic time."""
        now_s = self._monotonic_s()
        self.observe(now_s - began_at_s, now_s)

    def read_figures(self) -> TimingFigures:
        """Return the figures of the last 30 to 60 seconds."""
        now_s = self._monotonic_s()
        samples = [each for each in self._samples if now_s - each.began_at_s < 2 * SAMPLE_S]
        count = sum(each.count for each in samples)
        total = sum(each.sum for each in samples)
        elapsed_s = now_s - samples[0].began_at_s if samples else SAMPLE_S
        # A first observation does not make a rate of thousands: as in Kafka, the window that is
        # divided by has one whole sample at least.
        elapsed_s = max(elapsed_s, SAMPLE_S)
        return TimingFigures(
            average=total / count if count else 0.0,
            maximum=max((each.maximum for each in samples), default=0.0),
            rate=count / elapsed_s,
            ratio=total / elapsed_s,
        )


class TaskTimings:
    """Holds the timings of one task: seconds and records of its slices, and dropped records."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.process = Timing(monotonic_s)
        self.process_records = Timing(monotonic_s)
        self.dropped = Timing(monotonic_s)
        self.dropped_total = 0

    def add_slice(self, seconds: float, records: int) -> None:
        """Add a slice that took some seconds, and its number of records."""
        now_s = self._monotonic_s()
        self.process.observe(seconds, now_s)
        self.process_records.observe(records, now_s)

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

    def add_poll(self, began_at_s: float, records: int) -> None:
        """Add a poll that began at a monotonic time, and the number of records that it returned."""
        now_s = self._monotonic_s()
        self.poll.observe(now_s - began_at_s, now_s)
        self.poll_records.observe(records, now_s)

    def add_slice(self, seconds: float, records: int) -> None:
        """Add a slice that took some seconds, and its number of records."""
        now_s = self._monotonic_s()
        self.process.observe(seconds, now_s)
        self.process_records.observe(records, now_s)
