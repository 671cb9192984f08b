"""Keep many timers as keys with deadlines, with one scheduled call for the earliest.

Setting a timer again moves it. Heartbeats move theirs further out all the time, so a later deadline
costs one dictionary write: the heap keeps the old entry, which is pushed again when it comes up.
Kafka's counterpart is CoordinatorTimer.

uvloop, which the broker runs on, runs its timers before it reads from its sockets. After it has
stood still, heartbeats of the meantime wait there: a call that comes much too late therefore gives
way once. (asyncio's own loop reads first.)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from coordinator.clock import Clock, Scheduler, Timer

K = TypeVar("K")

STALL_MS = 100.0
"""A call that comes so much too late comes after a stall of the event loop."""
_READING_TURN_MS = 1.0
"""The shortest delay of a timer of the loop: its sockets are read before it is over."""


class KeyedTimers(Generic[K]):
    """Holds a deadline for each key and calls `on_expiry` with each key whose time has come."""

    def __init__(self, clock: Clock, scheduler: Scheduler, on_expiry: Callable[[K], None]) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._on_expiry = on_expiry
        self._deadlines_ms: dict[K, float] = {}
        self._heap_deadlines_ms: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._scheduled: Timer | None = None
        self._scheduled_ms = 0.0
        self._has_given_way = False

    def set_timer(self, key: K, delay_ms: float) -> None:
        """Let `key` expire after `delay_ms`, instead of whenever it was to expire before."""
        deadline_ms: float = self._clock.monotonic_ms()
        if delay_ms > 0:
            deadline_ms += delay_ms
        self._deadlines_ms[key] = deadline_ms
        heap_deadline_ms = self._heap_deadlines_ms.get(key)
        if heap_deadline_ms is None or deadline_ms < heap_deadline_ms:
            self._push_deadline(key, deadline_ms)
            self._schedule_earliest()

    def cancel_timer(self, key: K) -> None:
        """Cancel the timer of a key; nothing happens if none is set."""
        self._deadlines_ms.pop(key, None)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self._deadlines_ms.clear()
        self._heap_deadlines_ms.clear()
        self._heap.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines_ms

    def _push_deadline(self, key: K, deadline_ms: float) -> None:
        self._heap_deadlines_ms[key] = deadline_ms
        self._sequence += 1
        heapq.heappush(self._heap, (deadline_ms, self._sequence, key))

    def _schedule_earliest(self) -> None:
        """Let the scheduler call at the earliest deadline, unless it will call by then already."""
        if not self._heap:
            return
        earliest_ms = self._heap[0][0]
        if self._scheduled is not None:
            if self._scheduled_ms <= earliest_ms:
                return
            self._scheduled.cancel()
        self._scheduled_ms = earliest_ms
        delay_ms = max(0.0, earliest_ms - self._clock.monotonic_ms())
        self._scheduled = self._scheduler.call_later(delay_ms, self._expire_due)

    def _expire_due(self) -> None:
        """Call `on_expiry` with each key that is due, and schedule the next deadline."""
        self._scheduled = None
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._scheduled_ms > STALL_MS and not self._has_given_way:
            self._has_given_way = True
            self._scheduled = self._scheduler.call_later(_READING_TURN_MS, self._expire_due)
            return
        self._has_given_way = False
        due: list[K] = []
        while self._heap and self._heap[0][0] <= now_ms:
            heap_deadline_ms, _, key = heapq.heappop(self._heap)
            if self._heap_deadlines_ms.get(key) != heap_deadline_ms:
                continue
            del self._heap_deadlines_ms[key]
            deadline_ms = self._deadlines_ms.get(key)
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._push_deadline(key, deadline_ms)
            else:
                due.append(key)
        try:
            for key in due:
                # The callback of an earlier key may have cancelled this one, or set it anew.
                if self._deadlines_ms.get(key, now_ms + 1) <= now_ms:
                    del self._deadlines_ms[key]
                    self._on_expiry(key)
        finally:
            for key in due:
                if key in self._deadlines_ms and key not in self._heap_deadlines_ms:
                    self._push_deadline(
                        key, self._deadlines_ms[key]
                    )  # An exception ended this round early.
            self._schedule_earliest()
