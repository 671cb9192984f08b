"""Measure values such as the seconds of calls: totals, and figures of the last minute.

Kafka Streams' sensors have two samples of 30 seconds (`metrics.sample.window.ms`,
`metrics.num.samples`); averages, maxima, rates and ratios are of the samples that are not over.
One thread alone writes; a scrape of the metrics reads from another thread, whenever it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

SAMPLE_S = 30.0
"""The seconds that a sample covers."""


@dataclass(slots=True)
class TimingSample:
    """Holds count, sum and extremes of the values observed since `began_at_s`."""

    began_at_s: float
    count: int = 0
    sum: float = 0.0
    maximum: float = 0.0
    minimum: float = inf


@dataclass(frozen=True, slots=True)
class TimingFigures:
    """Reports average and extremes of the values of late; all are 0 if there were none.

    `rate` is the number of observations a second, `ratio` their sum a second.
    """

    average: float
    maximum: float
    rate: float
    ratio: float
    minimum: float = 0.0


class Timing:
    """Observes values of one kind, such as the seconds of each commit."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._samples: tuple[TimingSample, ...] = (TimingSample(monotonic_s()),)
        """The present sample, after the one before it if that is not too old: one tuple, since a
        scrape may read it at any moment."""
        self.total = 0
        """The number of values that were observed since the start."""
        self.sum = 0.0
        """Their sum since the start."""

    def observe(self, value: float, now_s: float) -> None:
        """Add a value, at a monotonic time in seconds."""
        self.total += 1
        self.sum += value
        # Each slice of records comes here several times, so the usual case calls nothing.
        sample = self._samples[-1]
        if now_s - sample.began_at_s >= SAMPLE_S:
            sample = self._get_or_add_sample(now_s)
        sample.count += 1
        sample.sum += value
        if value > sample.maximum:
            sample.maximum = value
        if value < sample.minimum:
            sample.minimum = value

    def observe_calls(self, calls: int, average: float, maximum: float, now_s: float) -> None:
        """Add many values by their number, their average and the largest of them."""
        self.observe_values(calls, calls * average, maximum, now_s)

    def observe_values(self, count: int, total: float, maximum: float, now_s: float) -> None:
        """Add many values by their number, their sum and the largest of them."""
        self.total += count
        self.sum += total
        sample = self._get_or_add_sample(now_s)
        sample.count += count
        sample.sum += total
        sample.maximum = max(sample.maximum, maximum)

    def _get_or_add_sample(self, now_s: float) -> TimingSample:
        """Return the sample to add to, a new one if the last one is full."""
        present = self._samples[-1]
        if now_s - present.began_at_s >= SAMPLE_S:
            # After a pause of several samples the last one is too old to count.
            is_recent = now_s - present.began_at_s < 2 * SAMPLE_S
            last = (present,) if is_recent else ()
            present = TimingSample(now_s)
            self._samples = (*last, present)
        return present

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
        minimum = min((each.minimum for each in samples), default=inf)
        elapsed_s = now_s - samples[0].began_at_s if samples else SAMPLE_S
        # A first observation does not make a rate of thousands: as in Kafka, the window that is
        # divided by has one whole sample at least.
        elapsed_s = max(elapsed_s, SAMPLE_S)
        return TimingFigures(
            average=total / count if count else 0.0,
            maximum=max((each.maximum for each in samples), default=0.0),
            rate=count / elapsed_s,
            ratio=total / elapsed_s,
            minimum=0.0 if minimum == inf else minimum,
        )
