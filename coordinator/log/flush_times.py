"""Measure how long flushes of files take, on the broker's own thread and on others."""

from __future__ import annotations

import threading

from coordinator.clock import Clock
from coordinator.histogram import Histogram


class FlushTimes:
    """Holds the durations of flushes: those that block the thread that made this, and the others.

    Each histogram has one thread that writes to it: the background calls come one after another.
    """

    def __init__(self, clock: Clock) -> None:
        self.blocking = Histogram()
        self.background = Histogram()
        self.read_ns = clock.monotonic_ns
        self._owner = threading.get_ident()

    def record_flush(self, begin_ns: int) -> None:
        """Record a flush that began at a monotonic time and is done."""
        own = threading.get_ident() == self._owner
        (self.blocking if own else self.background).record_ns(self.read_ns() - begin_ns)
