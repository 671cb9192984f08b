"""Emit each window once, when it has closed, with the value that it has then.

The windows that close are read at each record that moves the step's time past the end of a window,
before the record itself is aggregated: by the start of the windows, then by the bytes of their
keys. Results have the headers of the record that closed them. Kafka Streams looks after the record,
at most once a second by the wall clock, and then no longer finds what its store's retention has
passed meanwhile: windows are lost where time leaps (AbstractKStreamTimeWindowAggregateProcessor).
Here results depend on the records alone, and no window is left out. The progress follows from the
step's time, which is committed with the offsets: after a restart no window is emitted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from state.keys import TIME_MAX
from streams.graph.nodes import Binding, ForwardRecord
from streams.graph.views import TableView
from streams.operators.copies import create_downstream_copier
from streams.operators.idle_stream_time import wrap_with_idle_time_advance
from streams.windows import SessionWindows, SlidingWindows, TimeWindows

StoredWindows = Iterable[tuple[Any, Any, int]]
"""Windows of a store, each with its value and timestamp in ms."""


@dataclass(frozen=True, slots=True)
class _WindowCloseSchedule:
    """Computes which windows have closed at a time, and when the next may close.

    Each window has a time by which it is found, its start or its end: `windows_between(from, to)`
    returns the windows found between two times. A window has closed when the step's time is
    `close_delay_ms` past it. No window has a time after `ms` and before `next_time_after(ms)`.
    """

    close_delay_ms: int
    windows_between: Callable[[int, int], StoredWindows]
    next_time_after: Callable[[int], int]
    earliest_time_for: Callable[[int], int]
    """Returns the earliest time of a window that a record of a given time may be in."""


@dataclass(slots=True)
class _CloseProgress:
    """Holds how far windows have been closed, for all steps that write their store, in ms."""

    closed_until_ms: int
    due_ms: int
    """No open window has a time before this."""


def wrap_with_emit_on_close(
    binding: Binding,
    view: TableView,
    windows: TimeWindows | SlidingWindows | SessionWindows,
    process_record: ForwardRecord,
) -> ForwardRecord:
    """Return a function that emits the windows a record closes, then calls `process_record`."""
    assert view.spec is not None
    store, downstream = binding.context.get_store(view.spec.name), binding.downstream
    time = binding.stream_time
    emitted = create_downstream_copier(binding, view.spec.value)
    schedule = _create_close_schedule(windows, store)
    behind_ms, earliest = schedule.close_delay_ms, schedule.earliest_time_for
    at_end = isinstance(windows, SessionWindows)
    takes_null_values = not isinstance(windows, SlidingWindows)
    measured = binding.context.get_or_create_step_measurements(binding.step)
    monotonic_s, add_emission = measured.monotonic_s, measured.create_final_emit_recorder()
    progress = binding.context.shared_by_steps.setdefault(
        view.spec.name, _CloseProgress(time.ms - behind_ms, time.ms - behind_ms + 1)
    )

    def emit_closed_windows() -> None:
        began_at_s, count = monotonic_s(), 0
        from_ms = max(progress.closed_until_ms + 1, 0)
        progress.closed_until_ms = until_ms = time.ms - behind_ms
        for window, value, timestamp_ms in schedule.windows_between(from_ms, until_ms):
            time_ms = window.end_ms if at_end else timestamp_ms
            downstream(window, emitted(value), None, time_ms, True)
            count += 1
        add_emission(began_at_s, count)
        progress.due_ms = schedule.next_time_after(until_ms)

    def close_and_process(key: Any, value: Any, timestamp_ms: int) -> None:
        if timestamp_ms > time.ms and key is not None and (takes_null_values or value is not None):
            time.ms = timestamp_ms
            if timestamp_ms - behind_ms >= progress.due_ms:
                emit_closed_windows()
        process_record(key, value, timestamp_ms)
        earliest_ms = earliest(timestamp_ms)
        if earliest_ms < progress.due_ms:
            progress.due_ms = earliest_ms

    def advance_time(time_ms: int) -> None:
        time.ms = time_ms
        if time_ms - behind_ms >= progress.due_ms:
            emit_closed_windows()

    if windows.idle_close_ms is None:
        return close_and_process
    return wrap_with_idle_time_advance(
        binding, windows.idle_close_ms, time, advance_time, close_and_process
    )


def _create_close_schedule(
    windows: TimeWindows | SlidingWindows | SessionWindows, store: Any
) -> _WindowCloseSchedule:
    """Return the schedule by which windows of this kind close."""
    match windows:
        case TimeWindows(size_ms=size_ms, advance_ms=advance_ms, grace_ms=grace_ms):
            return _WindowCloseSchedule(
                close_delay_ms=size_ms + grace_ms,
                windows_between=store.all_entries,  # windows of one start are adjacent in it
                next_time_after=lambda ms: max(ms // advance_ms + 1, 0) * advance_ms,
                earliest_time_for=lambda ms: TIME_MAX,  # they are due whether there are any or not
            )
        case SlidingWindows(difference_ms=difference_ms, grace_ms=grace_ms):
            return _WindowCloseSchedule(
                close_delay_ms=difference_ms + grace_ms + 1,  # its end is part of a window
                windows_between=store.iterate_entries_in_time_order,
                next_time_after=lambda ms: store.find_first_entry_time(ms + 1),
                earliest_time_for=lambda ms: max(ms - difference_ms, 0),
            )
        case SessionWindows():
            return _WindowCloseSchedule(
                close_delay_ms=windows.close_delay_past_end_ms + 1,
                windows_between=store.iterate_entries_in_time_order,
                next_time_after=lambda ms: store.find_first_entry_time(ms + 1),
                earliest_time_for=lambda ms: ms,
            )
