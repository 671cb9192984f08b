"""Count the calls of a store's methods, and time some of them.

A method is replaced on the object by a function that counts: steps take the method when they are
bound, so a call costs one more function call. One call in 64 is timed, so that the clock costs
little; what is rare, and whatever takes long, is timed at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

from streams.common.timings import Timing

_TIMED_ONE_IN = 64
"""The first call is timed, and then one of so many. Python allocates no memory to count so few."""


class MeteredCalls:
    """Holds how often a method was called, and how long the timed calls took.

    A call is one of each of the operations whose `timings` are given.
    """

    def __init__(self, timings: Sequence[Timing], monotonic_s: Callable[[], float]) -> None:
        self._timings = timings
        self._monotonic_s = monotonic_s
        self._get_untimed_left: Callable[[], int] = lambda: 1
        self._timed_total = 0
        self._added_count = 0
        self._timed_s = self._timed_max_s = 0.0
        self._timed_count = 0
        self._average_s = 0.0

    def wrap_to_count_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `call`, counts it, and times one call in 64."""
        if tuple(signature(call).parameters) == ("key",):
            return self._wrap_to_count_look_ups(call)
        monotonic_s = self._monotonic_s
        left = 1

        def count_call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left:
                return call(*arguments, **options)
            left = _TIMED_ONE_IN
            began_at_s = monotonic_s()
            try:
                return call(*arguments, **options)
            finally:
                self.add_timed_call(monotonic_s() - began_at_s)

        self._get_untimed_left = lambda: left
        return count_call

    def _wrap_to_count_look_ups(self, look_up: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that counts and times a method with a key alone: in half the time."""
        monotonic_s = self._monotonic_s
        left = 1

        def count_look_up(key: Any) -> Any:
            nonlocal left
            left -= 1
            if left:
                return look_up(key)
            left = _TIMED_ONE_IN
            began_at_s = monotonic_s()
            try:
                return look_up(key)
            finally:
                self.add_timed_call(monotonic_s() - began_at_s)

        self._get_untimed_left = lambda: left
        return count_look_up

    def wrap_to_time_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `call`, counts it and times it."""
        monotonic_s = self._monotonic_s

        def time_call(*arguments: Any, **options: Any) -> Any:
            began_at_s = monotonic_s()
            try:
                return call(*arguments, **options)
            finally:
                now_s = monotonic_s()
                for timing in self._timings:
                    timing.observe(now_s - began_at_s, now_s)

        return time_call

    def add_timed_call(self, seconds: float) -> None:
        """Add the seconds of a call that was timed."""
        self._timed_count += 1
        self._timed_total += 1
        self._timed_s += seconds
        self._timed_max_s = max(self._timed_max_s, seconds)

    def add_to_timings(self) -> None:
        """Add the calls since the last time to the timings, with the average of the timed ones."""
        # The last of each 64 is a timed one, and the first call of all was.
        count = self._timed_total * _TIMED_ONE_IN + 1 - self._get_untimed_left()
        calls = count - self._added_count
        if not calls:
            return
        if self._timed_count:
            self._average_s = self._timed_s / self._timed_count
        for timing in self._timings:
            timing.observe_calls(calls, self._average_s, self._timed_max_s, self._monotonic_s())
        self._added_count = count
        self._timed_s = self._timed_max_s = 0.0
        self._timed_count = 0


class OpenIterators:
    """Knows the iterators of a store that have begun and are neither exhausted nor closed."""

    def __init__(self, monotonic_s: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._monotonic_s, self._now_ms = monotonic_s, now_ms
        self.durations = Timing(monotonic_s)
        self._opened_at_ms: dict[int, int] = {}
        self._number = 0

    @property
    def count(self) -> int:
        """Return how many are open."""
        return len(self._opened_at_ms)

    @property
    def oldest_opened_at_ms(self) -> int | None:
        """Return the wall-clock time at which the oldest one began; None if none is open."""
        return min(list(self._opened_at_ms.values()), default=None)

    def track_iterator_while_open(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """Yield what an iterator yields, which counts as open from its first step on."""
        self._number += 1
        number, began_at_s = self._number, self._monotonic_s()
        self._opened_at_ms[number] = self._now_ms()
        try:
            yield from iterator
        finally:
            del self._opened_at_ms[number]
            self.durations.observe_since(began_at_s)

    def wrap_call_to_track_iterator(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `call`, and follows the iterator that it returns."""

        def follow_result(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            return (
                self.track_iterator_while_open(result) if isinstance(result, Iterator) else result
            )

        return follow_result
