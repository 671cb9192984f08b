"""Define the clock, scheduler and background thread that a broker is given as arguments.

Everything in the broker that reads the time, waits, or makes a long call is given one of these.

The system clock is the only place in `coordinator` that reads real time; a simulation passes a
clock of its own and moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Supplies the broker with wall-clock and monotonic time."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, for timestamps in records and responses."""
        ...

    def monotonic_ms(self) -> int:
        """Return the milliseconds of a clock that never goes back, for deadlines and time-outs."""
        ...

    def monotonic_ns(self) -> int:
        """Return the nanoseconds of that clock, to measure how long something takes."""
        ...


class SystemClock:
    """Reads the machine's wall clock and its monotonic clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)


class ShiftedClock:
    """Shifts the wall clock of another clock, so that a test lets days pass in a moment.

    What expires by the wall clock (records, committed offsets, producer and transactional ids) is
    found by the broker's next check for it. Sessions and time-outs go by the monotonic clock,
    which is not shifted: members that live stay in their groups, and the session of one that is
    gone ends after its own time-out. Any thread may shift the clock.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self.shift_ms = 0
        """The number of ms that the wall clock is ahead of the other one's."""

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.shift_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def monotonic_ns(self) -> int:
        return self._clock.monotonic_ns()


class FileShiftedClock(ShiftedClock):
    """Takes the shift of the wall clock, a whole number of ms, from a file that may be replaced.

    The file is read again once it has changed, so that the broker and workers in other processes,
    which have the same file, are shifted together. A file that is missing means no shift.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._path = path
        self._version: tuple[int, int] | None = None

    def now_ms(self) -> int:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._version, self.shift_ms = None, 0
        else:
            version = (status.st_ino, status.st_mtime_ns)
            if version != self._version:
                # A text that is being written has no number yet: it is read with the next call.
                text = self._path.read_text().strip()
                if text.removeprefix("-").isdecimal():
                    self._version, self.shift_ms = version, int(text)
        return super().now_ms()


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
