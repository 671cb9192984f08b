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

from typing import Any

from streams.operators.copies import for_those_after
from streams.topology.nodes import Binding, Emit
from streams.topology.views import View
from streams.windows import TimeWindows


def closing_windows(at: Binding, view: View, windows: TimeWindows, process: Emit) -> Emit:
    """`process`, and before it the windows that close by its record."""
    spec = view.spec
    assert spec is not None
    time = at.context.step_time(at.step)
    store, downstream = at.context.store(spec.name), at.downstream
    emitted = for_those_after(at, spec.value)
    advance_ms = windows.advance_ms
    behind_ms = windows.size_ms + windows.grace_ms
    closed_ms = time.ms - behind_ms
    """The latest start of a window that has closed."""
    due_ms = _next(closed_ms, advance_ms)

    def close() -> None:
        nonlocal closed_ms, due_ms
        from_ms, closed_ms = max(closed_ms + 1, 0), time.ms - behind_ms
        due_ms = _next(closed_ms, advance_ms)
        for window, value, timestamp_ms in store.all_entries(from_ms, closed_ms):
            downstream(window, emitted(value), None, timestamp_ms, True)

    def close_and_process(key: Any, value: Any, timestamp_ms: int) -> None:
        if timestamp_ms > time.ms and key is not None:
            time.ms = timestamp_ms
            if timestamp_ms - behind_ms >= due_ms:
                close()
        process(key, value, timestamp_ms)

    return close_and_process


def _next(closed_ms: int, advance_ms: int) -> int:
    """The first start of a window after those that have closed."""
    return max(closed_ms // advance_ms + 1, 0) * advance_ms
