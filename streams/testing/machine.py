"""The machine that a driver runs on: time moves when a test says so, and nothing runs beside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


class Machine:
    """A `streams.runtime.host.Host`. `start_ms`: the wall clock at the beginning."""

    def __init__(self, start_ms: int) -> None:
        self._now_ms = start_ms
        self.now_s = 0.0
        """Monotonic."""

    def monotonic_s(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return self._now_ms

    def advance_wall_clock(self, duration_ms: int) -> None:
        """Let both clocks go on."""
        self._now_ms += duration_ms
        self.advance(duration_ms / 1000)

    def advance(self, seconds: float) -> None:
        """Let somebody wait: the wall clock, which a test can see, stands still meanwhile."""
        self.now_s += seconds

    def event(self) -> Flag:
        return Flag(self)

    def lock(self) -> AbstractContextManager[object]:
        return nullcontext()

    def spawn(self, name: str, run: Callable[[], None]) -> Done:
        run()
        return Done()


class Flag:
    """An event that nobody else can set meanwhile: a wait takes its time at once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self._machine.advance(timeout or 0.0)
        return self.is_set()


class Done:
    """What was spawned has ended before anybody asks."""

    def join(self, timeout: float | None = None) -> None:
        """At once."""

    def is_alive(self) -> bool:
        return False
