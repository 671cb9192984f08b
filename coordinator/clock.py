"""Defines the clock, scheduler and background thread that a broker is given as arguments.

Everything in the broker that reads the time, waits, or makes a long call is given one of these.

The system clock is the only place in `coordinator` that reads real time; a simulation passes a
clock of its own and moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Supplies the broker with wall-clock and monotonic time."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, for timestamps in records and responses."""
        ...

    def monotonic_ms(self) -> int:
        """Return the milliseconds of a clock that never goes back, for deadlines and time-outs."""
        ...


class SystemClock:
    """Reads the machine's wall clock and its monotonic clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class Timer(Protocol):
    """Represents a scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """Schedules calls on the broker's own thread."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...


class Background(Protocol):
    """Runs long system calls, such as an fsync, on a thread beside the broker's own.

    A simulation runs them when it likes.
    """

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        """Call `work` on the other thread, then `on_done` on the broker's with what it raised.

        `on_done` gets None if nothing was raised. Calls run one after another, in their order.
        """
        ...

    def close(self) -> None:
        """Wait for the call that has begun and drop the others, without calling their `on_done`."""
        ...
