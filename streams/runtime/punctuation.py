"""Schedule punctuations: callbacks that a processor wants to be called as time goes by.

    clock    time is                                    the first call
    stream   the highest timestamp of the task's        as soon as there is a record
             records so far
    wall     the machine's                              one interval after it was asked for

A schedule keeps to its times: the first plus a number of intervals. Calls that were missed, because
time leapt or nothing was processed, become one call, with the present time. A call may schedule
others, and cancel itself. Source: Kafka Streams' PunctuationQueue and PunctuationSchedule.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from streams.errors import StreamsError

Punctuate = Callable[[int], object]
"""Is called with the time in ms: stream time or wall-clock time."""


class Schedule:
    """Schedules one callback of one clock, and says when it is next called."""

    __slots__ = ("_number", "at_ms", "callback", "cancelled", "interval_ms")

    def __init__(self, at_ms: int, number: int, interval_ms: int, callback: Punctuate) -> None:
        self.at_ms = at_ms
        self.interval_ms = interval_ms
        self.callback = callback
        self.cancelled = False
        self._number = number

    def cancel(self) -> None:
        """Cancel the schedule: its callback is not called any more."""
        self.cancelled = True

    def __lt__(self, other: Schedule) -> bool:
        """Return whether this schedule comes first: by its time, then by the order of requests."""
        return (self.at_ms, self._number) < (other.at_ms, other._number)


class Timeline:
    """Holds the schedules of one clock, in the order of their times."""

    def __init__(self) -> None:
        self._heap: list[Schedule] = []
        self._numbers = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, first_ms: int, interval_ms: int, callback: Punctuate) -> Schedule:
        """Add a callback that is called first at `first_ms`, and then every `interval_ms`."""
        schedule = Schedule(first_ms, next(self._numbers), interval_ms, callback)
        heappush(self._heap, schedule)
        return schedule

    def due(self, now_ms: int) -> bool:
        """Return whether a callback is to be called at `now_ms`."""
        heap = self._heap
        while heap and heap[0].cancelled:
            heappop(heap)
        return bool(heap) and heap[0].at_ms <= now_ms

    def punctuate(self, now_ms: int) -> int:
        """Call all callbacks that are due, in the order of their times, and return their number."""
        called = 0
        while self.due(now_ms):
            schedule = heappop(self._heap)
            called += 1
            schedule.callback(now_ms)
            if not schedule.cancelled:
                missed = (now_ms - schedule.at_ms) // schedule.interval_ms
                schedule.at_ms += (missed + 1) * schedule.interval_ms
                heappush(self._heap, schedule)
        return called


class Punctuations:
    """Holds the schedules of one task, by stream time and by the wall clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.stream = Timeline()
        self.wall = Timeline()

    def schedule(self, interval_ms: int, callback: Punctuate, clock: str) -> Callable[[], None]:
        """Call `callback` every `interval_ms` of `clock`, and return a function that cancels this.

        Raises: StreamsError for an interval below 1 ms or a clock other than `stream` and `wall`.
        """
        if interval_ms < 1:
            raise StreamsError(f"a punctuation every {interval_ms} ms: it must be at least 1")
        match clock:
            case "stream":
                return self.stream.add(0, interval_ms, callback).cancel
            case "wall":
                first_ms = self._now_ms() + interval_ms
                return self.wall.add(first_ms, interval_ms, callback).cancel
        raise StreamsError(f"a punctuation by the clock {clock!r}: there are 'stream' and 'wall'")
