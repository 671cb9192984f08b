"""Long work on the broker's loop, a slice at a time: what waits is served in between.

The work is a generator that yields wherever others may have their turn, after about a millisecond
at most. It goes on for `SLICE_MS`, then when the loop comes back to it. What it decided before it
yielded may be different afterwards: it looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias, TypeVar

from coordinator.clock import Clock, Scheduler, Timer

A = TypeVar("A")

Sliced: TypeAlias = Generator[None, None, A]

SLICE_MS = 2
# Where time stands still (a simulation), a slice ends after so many steps.
_STEPS_A_SLICE = 8


class SlicedWork:
    """Runs sliced work; several at once take turns."""

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._running: dict[Sliced[Any], Timer | None] = {}

    def run(self, work: Sliced[A], done: Callable[[A | Exception], None]) -> None:
        """Begin the work at once, and call `done` with what it returned or raised: before this
        returns, if one slice is enough for it."""
        self._running[work] = None
        self._go_on(work, done)

    def close(self) -> None:
        """Stop all work where it is. No `done` is called any more."""
        running, self._running = self._running, {}
        for work, timer in running.items():
            if timer is not None:
                timer.cancel()
            work.close()

    def _go_on(self, work: Sliced[A], done: Callable[[A | Exception], None]) -> None:
        until_ms = self._clock.monotonic_ms() + SLICE_MS
        outcome: A | Exception
        try:
            for _ in range(_STEPS_A_SLICE):
                next(work)
                if self._clock.monotonic_ms() >= until_ms:
                    break
        except StopIteration as end:
            outcome = end.value
        except Exception as error:
            outcome = error
        else:
            again = partial(self._go_on, work, done)
            self._running[work] = self._scheduler.call_later(0, again)
            return
        del self._running[work]
        done(outcome)


def run_at_a_stretch(work: Sliced[A]) -> A:
    """Run the work to its end without a pause, and give what it returned."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: A = end.value
            return result
