"""Long work on the broker's loop, a slice at a time: what waits is served in between.

The work is a generator that yields wherever others may have their turn, after about a millisecond
at most. All works together have `SLICE_MS` in a turn of the loop, and go on in a later one, each in
its turn. What a work decided before it yielded may be different afterwards: it looks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
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
        self._queue: deque[tuple[Sliced[Any], Callable[[Any], None]]] = deque()
        self._timer: Timer | None = None
        self._is_in_slice = False

    def run(self, work: Sliced[A], done: Callable[[A | Exception], None]) -> None:
        """Run the work, and call `done` with what it returned or raised. It begins at once, and may
        have ended before this returns, unless others are waiting for their turn."""
        self._queue.append((work, done))
        if self._timer is None and not self._is_in_slice:
            self._run_slice()

    def close(self) -> None:
        """Stop all work where it is. No `done` is called any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            work, _ = self._queue.popleft()
            work.close()

    def _run_slice(self) -> None:
        """Run the first work of the queue until the slice is over, and then put it last; if it ends
        before that, go on with the next."""
        self._timer = None
        self._is_in_slice = True
        until_ms = self._clock.monotonic_ms() + SLICE_MS
        steps = _STEPS_A_SLICE
        try:
            while self._queue and steps and self._clock.monotonic_ms() < until_ms:
                steps = self._run_first(steps, until_ms)
        finally:  # `done` may raise
            self._is_in_slice = False
            if self._queue:
                self._timer = self._scheduler.call_later(0, self._run_slice)

    def _run_first(self, steps: int, until_ms: int) -> int:
        """Run the first work of the queue for at most so many steps; how many are left."""
        work, done = self._queue.popleft()
        outcome: Any
        try:
            while steps:
                steps -= 1
                next(work)
                if self._clock.monotonic_ms() >= until_ms:
                    break
        except StopIteration as end:
            outcome = end.value
        except Exception as error:
            outcome = error
        else:
            self._queue.append((work, done))
            return steps
        done(outcome)
        return steps


def run_at_a_stretch(work: Sliced[A]) -> A:
    """Run the work to its end without a pause, and give what it returned."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: A = end.value
            return result
