"""Time as an argument: everything in the broker that asks for the time or waits is given a Clock.

The system clock is the only place in `coordinator` that reads real time; a simulation passes a
clock of its own and moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """What the broker knows of time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch: what is written into records and responses."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: what deadlines and time-outs are measured with."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class Timer(Protocol):
    """A call that was scheduled and can be called off."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """What the broker knows of waiting: one call, later, on the broker's own thread."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...


class Background(Protocol):
    """What the broker knows of threads: long calls of the system (an fsync, the removal of a large
    file) are made on one, so that the broker's own goes on. A simulation makes them when it likes.
    """

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Make `work` happen, then call `done` on the broker's own thread with what it raised.
        One after another, in the order of the calls."""
        ...

    def close(self) -> None:
        """Wait for the work that has begun; what is left is not done, nor any `done` called."""
        ...
