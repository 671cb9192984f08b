"""Measure how much later than planned the event loop calls a timer, while somebody scrapes."""

from __future__ import annotations

from coordinator.clock import Clock, Scheduler, Timer
from coordinator.histogram import Histogram

INTERVAL_MS = 250
_NS_PER_MS = 1_000_000


class LoopDelayMeter:
    """Calls a timer again and again, from `start_timer` to `close`, and records its delays.

    A loop that is busy with one call for a second delays all others by as much.
    """

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self.delays = Histogram()
        self._clock = clock
        self._scheduler = scheduler
        self._timer: Timer | None = None

    def start_timer(self) -> None:
        """Plan the next call of the timer."""
        due_ns = self._clock.monotonic_ns() + INTERVAL_MS * _NS_PER_MS

        def record_delay() -> None:
            self.delays.record_ns(max(0, self._clock.monotonic_ns() - due_ns))
            self.start_timer()

        self._timer = self._scheduler.call_later(INTERVAL_MS, record_delay)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
