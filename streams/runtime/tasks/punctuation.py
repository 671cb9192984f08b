"""Schedule punctuations: callbacks that a processor wants to be called as time goes by.

    clock    time is                                    the first call
    stream   the highest timestamp of the task's        as soon as there is a record
             records so far
    wall     the machine's                              one interval after it was asked for

A schedule keeps to its times: the first plus a number of intervals. Calls that were missed, because
time leapt or nothing was processed, become one call, with the present time. Where the machine's
clock is set back, the next call comes one interval later, and not when the former time is reached
again, as in Kafka Streams. A call may schedule others, and cancel itself. Source: Kafka Streams'
PunctuationQueue and PunctuationSchedule.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeAlias

from streams.errors import StreamsError

PunctuationCount: TypeAlias = int
"""Number of punctuations that were called."""

IsDue: TypeAlias = bool
"""True if a punctuation is to be called."""

PunctuationCallback = Callable[[int], object]
"""Is called with the time in ms: stream time or wall-clock time."""


class PunctuationSchedule:
    """Represents one scheduled callback on one clock, with the time of its next call."""

    __slots__ = ("_number", "callback", "interval_ms", "is_cancelled", "next_at_ms")

    def __init__(
        self, at_ms: int, number: int, interval_ms: int, callback: PunctuationCallback
    ) -> None:
        self.next_at_ms = at_ms
        self.interval_ms = interval_ms
        self.callback = callback
        self.is_cancelled = False
        self._number = number

    def cancel(self) -> None:
        """Cancel the schedule: its callback is not called any more."""
        self.is_cancelled = True

    def __lt__(self, other: PunctuationSchedule) -> bool:
        """Return whether this schedule comes first: by its time, then by the order of requests."""
        return (self.next_at_ms, self._number) < (other.next_at_ms, other._number)


class PunctuationQueue:
    """Holds the schedules of one clock, in the order of their times."""

    def __init__(self) -> None:
        self._heap: list[PunctuationSchedule] = []
        self._numbers = count()
        self._now_ms = -1

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add_schedule(
        self, first_ms: int, interval_ms: int, callback: PunctuationCallback
    ) -> PunctuationSchedule:
        """Add a callback that is called first at `first_ms`, and then every `interval_ms`."""
        schedule = PunctuationSchedule(first_ms, next(self._numbers), interval_ms, callback)
        heappush(self._heap, schedule)
        return schedule

    def follow_clock(self, now_ms: int) -> IsDue:
        """Follow the clock to `now_ms`, and return whether a callback is to be called then."""
        if now_ms < self._now_ms:
            self._bring_forward_after_clock_setback(now_ms)
        self._now_ms = now_ms
        heap = self._heap
        while heap and heap[0].is_cancelled:
            heappop(heap)
        return bool(heap) and heap[0].next_at_ms <= now_ms

    def _bring_forward_after_clock_setback(self, now_ms: int) -> None:
        """Bring forward punctuations that would wait too long, as the clock was set back."""
        for schedule in self._heap:
            schedule.next_at_ms = min(schedule.next_at_ms, now_ms + schedule.interval_ms)
        heapify(self._heap)

    def call_due(self, now_ms: int) -> PunctuationCount:
        """Call all callbacks that are due, in the order of their times, and return their number."""
        called = 0
        while self.follow_clock(now_ms):
            schedule = heappop(self._heap)
            called += 1
            schedule.callback(now_ms)
            if not schedule.is_cancelled:
                missed = (now_ms - schedule.next_at_ms) // schedule.interval_ms
                schedule.next_at_ms += (missed + 1) * schedule.interval_ms
                heappush(self._heap, schedule)
        return called


class TaskPunctuations:
    """Holds the schedules of one task, by stream time and by the wall clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.by_stream_time = PunctuationQueue()
        self.by_wall_clock = PunctuationQueue()

    def schedule_callback(
        self, interval_ms: int, callback: PunctuationCallback, clock: str
    ) -> Callable[[], None]:
        """Call `callback` every `interval_ms` of `clock`, and return a function that cancels this.

        Raises: StreamsError for an interval below 1 ms or a clock other than `stream` and `wall`.
        """
        if interval_ms < 1:
            raise StreamsError(f"a punctuation every {interval_ms} ms: it must be at least 1")
        match clock:
            case "stream":
                return self.by_stream_time.add_schedule(0, interval_ms, callback).cancel
            case "wall":
                first_ms = self._now_ms() + interval_ms
                return self.by_wall_clock.add_schedule(first_ms, interval_ms, callback).cancel
        raise StreamsError(f"a punctuation by the clock {clock!r}: there are 'stream' and 'wall'")
