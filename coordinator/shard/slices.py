"""Run long work on the broker's event loop in short slices, so that requests are served in between.

The work is a generator that yields wherever others may have their turn, after about a millisecond
at most. All works together have `SLICE_MS` in a turn of the loop, and go on in a later one, each in
its turn. What a work decided before it yielded may be different afterwards: it looks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from coordinator.clock import Clock, Scheduler, Timer

StepsLeft: TypeAlias = int

A = TypeVar("A")

Sliced: TypeAlias = Generator[None, None, A]

SLICE_MS = 2
# In a simulation time stands still during a slice, so a slice also ends after so many steps.
_STEPS_PER_SLICE = 8


class SlicedExecutor:
    """Runs generators slice by slice on the event loop; several at once take turns."""

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._queue: deque[tuple[Sliced[Any], Callable[[Any], None]]] = deque()
        self._timer: Timer | None = None
        self._is_in_slice = False

    def run_in_slices(self, work: Sliced[A], on_done: Callable[[A | Exception], None]) -> None:
        """Run the work in slices, and call `on_done` with what it returned or raised.

        It begins at once, and may have ended before this returns, unless others are waiting for
        their turn.
        """
        self._queue.append((work, on_done))
        if self._timer is None and not self._is_in_slice:
            self._run_slice()

    def stop_all_work(self) -> None:
        """Stop all work where it is; no `on_done` is called any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            work, _ = self._queue.popleft()
            work.close()

    def _run_slice(self) -> None:
        """Run queued works in turn for one slice; schedule the next slice if any work is left.

        The work that the slice ends in is put last.
        """
        self._timer = None
        self._is_in_slice = True
        deadline_ms = self._clock.monotonic_ms() + SLICE_MS
        steps = _STEPS_PER_SLICE
        try:
            while self._queue and steps and self._clock.monotonic_ms() < deadline_ms:
                steps = self._run_first_work(steps, deadline_ms)
        finally:  # A callback may raise.
            self._is_in_slice = False
            if self._queue:
                self._timer = self._scheduler.call_later(0, self._run_slice)

    def _run_first_work(self, max_steps: int, deadline_ms: int) -> StepsLeft:
        """Run the first queued work for at most `max_steps`; return how many steps are left."""
        work, done = self._queue.popleft()
        outcome: Any
        try:
            while max_steps:
                max_steps -= 1
                next(work)
                if self._clock.monotonic_ms() >= deadline_ms:
                    break
        except StopIteration as end:
            outcome = end.value
        except Exception as error:
            outcome = error
        else:
            self._queue.append((work, done))
            return max_steps
        done(outcome)
        return max_steps


def run_to_completion(work: Sliced[A]) -> A:
    """Run the work to its end without a pause and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: A = end.value
            return result
