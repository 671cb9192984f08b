"""Simulate the machine that a driver runs on: time moves when a test says so, with one thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


class SimulatedHost:
    """Implements `streams.common.host.Host` with clocks that a test moves.

    `start_ms`: the wall clock at the beginning.
    """

    def __init__(self, start_ms: int) -> None:
        self._now_ms = start_ms
        self.elapsed_s = 0.0
        """The monotonic clock."""

    def monotonic_s(self) -> float:
        """Return the monotonic clock in s."""
        return self.elapsed_s

    def now_ms(self) -> int:
        """Return the wall clock in ms since 1970."""
        return self._now_ms

    def advance_wall_clock(self, duration_ms: int) -> None:
        """Advance both clocks, by `duration_ms`."""
        self._now_ms += duration_ms
        self.advance_monotonic_clock(duration_ms / 1000)

    def advance_monotonic_clock(self, duration_s: float) -> None:
        """Advance the monotonic clock for a wait.

        The wall clock, which a test can see, stands still meanwhile.
        """
        self.elapsed_s += duration_s

    def create_event(self) -> SimulatedEvent:
        """Return an event whose waits take no real time."""
        return SimulatedEvent(self)

    def create_lock(self) -> AbstractContextManager[object]:
        """Return a lock that is always free."""
        return nullcontext()

    def spawn_thread(self, name: str, target: Callable[[], None]) -> FinishedThread:
        """Call `target` to its end and return a thread that has ended."""
        target()
        return FinishedThread()


class SimulatedEvent:
    """Implements an event that no other thread can set: a wait passes its time at once."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the event is set; if not, first advance the clock by `timeout`."""
        if not self.is_set():
            self._host.advance_monotonic_clock(timeout or 0.0)
        return self.is_set()


class FinishedThread:
    """Represents a thread that had ended when it was spawned."""

    def join(self, timeout: float | None = None) -> None:
        """Return without waiting: the thread has ended."""

    def is_alive(self) -> bool:
        return False
