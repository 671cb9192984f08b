"""Count durations in buckets, as cheaply as a list allows, and keep the longest recent one."""

from __future__ import annotations

from bisect import bisect_left

BUCKET_BOUNDS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""The upper bounds of the buckets in seconds; a last bucket has what is longer."""
_BOUNDS_NS = tuple(round(bound_s * 1_000_000_000) for bound_s in BUCKET_BOUNDS_S)
_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000

WINDOW_MS = 300_000


class Histogram:
    """Counts durations by bucket; `counts` has one for each bound and one for what is longer.

    Another thread may read it while it is written to: it finds some of the newest durations.
    """

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_NS) + 1)
        self.sum_ns = 0

    def record_ns(self, duration_ns: int) -> None:
        """Count one duration, given in nanoseconds."""
        self.counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self.sum_ns += duration_ns

    def record_ms(self, duration_ms: int) -> None:
        """Count one duration, given in milliseconds."""
        self.record_ns(duration_ms * _NS_PER_MS)

    @property
    def count(self) -> int:
        """Return the number of durations."""
        return sum(self.counts)

    @property
    def sum_s(self) -> float:
        """Return the sum of all durations in seconds."""
        return self.sum_ns / _NS_PER_S

    def add_histogram(self, other: Histogram) -> None:
        """Add the durations that another histogram has counted."""
        for bucket, count in enumerate(other.counts):
            self.counts[bucket] += count
        self.sum_ns += other.sum_ns

    def add_zeros(self, count: int) -> None:
        """Count `count` durations of 0."""
        self.counts[0] += count


class RecentMax:
    """Keeps the largest value of the last five to ten minutes: a maximum that falls again."""

    __slots__ = ("_current", "_previous", "_window")

    def __init__(self) -> None:
        self._window = self._current = self._previous = 0

    def record_value(self, value: int, now_ms: int) -> None:
        """Take note of a value at a time of the monotonic clock."""
        window = now_ms // WINDOW_MS
        if window != self._window:
            self._previous = self._current if window == self._window + 1 else 0
            self._window, self._current = window, value
        elif value > self._current:
            self._current = value

    def value_at(self, now_ms: int) -> int:
        """Return the largest value of this window of five minutes and the one before, else 0."""
        passed = now_ms // WINDOW_MS - self._window
        if passed <= 0:  # below 0 if a value has come since the clock was read
            return max(self._current, self._previous)
        return self._current if passed == 1 else 0
