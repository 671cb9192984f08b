"""Shards are loaded in slices: what is quick before the broker listens, the rest while it answers.

Until its last slice a shard refuses with 14, and every other one is served. A slice is a few
milliseconds of the loop's time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from coordinator.clock import Clock, Scheduler, Timer

# Replays one slice of a shard; True when that was the last one.
LoadSlice = Callable[[], bool]

QUICK_MS = 150


class Loader:
    """Runs slices, at first at a stretch and then one at a time between other work."""

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._left: deque[LoadSlice] = deque()
        self._scheduled: Timer | None = None

    @property
    def is_done(self) -> bool:
        return not self._left

    def load(self, shards: Iterable[LoadSlice]) -> None:
        """Load these, for at most `QUICK_MS` before this returns. First one slice of each: most
        shards have no more, and one that has much keeps nobody waiting."""
        self._left.extend(shards)
        deadline_ms = self._clock.monotonic_ms() + QUICK_MS
        while self._left and self._clock.monotonic_ms() < deadline_ms:
            self._load_one()
        if self._left and self._scheduled is None:
            self._scheduled = self._scheduler.call_later(0, self._go_on)

    def close(self) -> None:
        self._left.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _go_on(self) -> None:
        self._scheduled = None
        if self._left:
            self._load_one()
        if self._left:
            self._scheduled = self._scheduler.call_later(0, self._go_on)

    def _load_one(self) -> None:
        load_slice = self._left.popleft()
        if not load_slice():
            self._left.append(load_slice)
