"""Closing: each window is passed on once, when it has closed, with the value that it has then.

What closes is asked for at each record that moves the step's time past the end of a window, before
the record itself is taken in: by the start of the windows, then by the bytes of their keys. Results
have the headers of the record that closed them. Kafka Streams looks after the record, at most once
a second by the wall clock, and then no longer finds what its store's retention has passed
meanwhile: windows are lost where time leaps (AbstractKStreamTimeWindowAggregateProcessor). Here
results depend on the records alone, and no window is left out. How far it came follows from the
step's time, which is committed with the offsets: after a restart nothing is passed on twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from state.keys import TIME_MAX
from streams.operators.copies import for_those_after
from streams.operators.idle import when_idle
from streams.topology.nodes import Binding, Emit
from streams.topology.views import View
from streams.windows import SessionWindows, SlidingWindows, TimeWindows

Found = Iterable[tuple[Any, Any, int]]
"""Windows, each with its value and timestamp."""


@dataclass(frozen=True, slots=True)
class _Places:
    """How windows lie in time. `behind_ms`: how far the step's time is past a window's place when
    the window has closed. `between(from, to)`: those with a place between the two.
    `next_after(ms)`: no window has a place after this and before what it returns."""

    behind_ms: int
    between: Callable[[int, int], Found]
    next_after: Callable[[int], int]
    earliest: Callable[[int], int]
    """The earliest place of a window that a record of a time may be in."""


def closing(
    at: Binding, view: View, windows: TimeWindows | SlidingWindows | SessionWindows, process: Emit
) -> Emit:
    """`process`, and before it the windows that close by its record."""
    assert view.spec is not None
    store, downstream = at.context.store(view.spec.name), at.downstream
    time = at.context.step_time(at.step)
    emitted = for_those_after(at, view.spec.value)
    places = _places(windows, store)
    behind_ms, earliest = places.behind_ms, places.earliest
    at_end = isinstance(windows, SessionWindows)
    takes_null = not isinstance(windows, SlidingWindows)
    closed_ms = time.ms - behind_ms
    due_ms = closed_ms + 1
    """No window that is open has a place before this."""

    def close() -> None:
        nonlocal closed_ms, due_ms
        from_ms, closed_ms = max(closed_ms + 1, 0), time.ms - behind_ms
        for window, value, timestamp_ms in places.between(from_ms, closed_ms):
            time_ms = window.end_ms if at_end else timestamp_ms
            downstream(window, emitted(value), None, time_ms, True)
        due_ms = places.next_after(closed_ms)

    def close_and_process(key: Any, value: Any, timestamp_ms: int) -> None:
        nonlocal due_ms
        if timestamp_ms > time.ms and key is not None and (takes_null or value is not None):
            time.ms = timestamp_ms
            if timestamp_ms - behind_ms >= due_ms:
                close()
        process(key, value, timestamp_ms)
        place_ms = earliest(timestamp_ms)
        if place_ms < due_ms:
            due_ms = place_ms

    def pass_time(time_ms: int) -> None:
        time.ms = time_ms
        if time_ms - behind_ms >= due_ms:
            close()

    if windows.idle_close_ms is None:
        return close_and_process
    return when_idle(at, windows.idle_close_ms, time, pass_time, close_and_process)


def _places(windows: TimeWindows | SlidingWindows | SessionWindows, store: Any) -> _Places:
    match windows:
        case TimeWindows(size_ms=size_ms, advance_ms=advance_ms, grace_ms=grace_ms):
            return _Places(
                behind_ms=size_ms + grace_ms,
                between=store.all_entries,  # where what begins together lies together
                next_after=lambda ms: max(ms // advance_ms + 1, 0) * advance_ms,
                earliest=lambda ms: TIME_MAX,  # they are due whether there are any or not
            )
        case SlidingWindows(difference_ms=difference_ms, grace_ms=grace_ms):
            return _Places(
                behind_ms=difference_ms + grace_ms + 1,  # its end is part of a window
                between=store.in_time_order,
                next_after=lambda ms: store.first_time(ms + 1),
                earliest=lambda ms: max(ms - difference_ms, 0),
            )
        case SessionWindows():
            return _Places(
                behind_ms=windows.close_after_ms + 1,
                between=store.in_time_order,
                next_after=lambda ms: store.first_time(ms + 1),
                earliest=lambda ms: ms,
            )
