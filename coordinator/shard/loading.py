"""Load shards in slices: briefly before the broker listens, the rest between requests.

Until its last slice is replayed a shard refuses with COORDINATOR_LOAD_IN_PROGRESS; every other one
is served. A slice takes a few milliseconds of the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from coordinator.clock import Clock, Scheduler, Timer

# Replays one slice of a shard's log; returns True when that was the last one.
LoadSlice = Callable[[], bool]

QUICK_MS = 150


class ShardLoader:
    """Runs slices of shards' loading, first without a pause, then between other work."""

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._remaining_slices: deque[LoadSlice] = deque()
        self._scheduled: Timer | None = None

    @property
    def is_done(self) -> bool:
        """Return whether no shard is left to load."""
        return not self._remaining_slices

    def load_shards(self, load_slices: Iterable[LoadSlice]) -> None:
        """Load shards for at most `QUICK_MS`, then schedule what is left for later turns.

        One slice of each shard comes first: most shards have no more, and one that has much keeps
        nobody waiting.
        """
        self._remaining_slices.extend(load_slices)
        deadline_ms = self._clock.monotonic_ms() + QUICK_MS
        while self._remaining_slices and self._clock.monotonic_ms() < deadline_ms:
            self._load_one_slice()
        if self._remaining_slices and self._scheduled is None:
            self._scheduled = self._scheduler.call_later(0, self._load_scheduled_slice)

    def stop_loading(self) -> None:
        """Stop loading: drop the slices that are left and cancel the scheduled one."""
        self._remaining_slices.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _load_scheduled_slice(self) -> None:
        self._scheduled = None
        if self._remaining_slices:
            self._load_one_slice()
        if self._remaining_slices:
            self._scheduled = self._scheduler.call_later(0, self._load_scheduled_slice)

    def _load_one_slice(self) -> None:
        load_slice = self._remaining_slices.popleft()
        if not load_slice():
            self._remaining_slices.append(load_slice)
