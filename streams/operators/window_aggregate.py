"""Fold a key's records into windows of a fixed size (KStreamWindowAggregate).

A record advances the step's own stream time and is folded into each window that it falls into,
oldest first; a window that has closed by then misses it, and it is late there. Records without a
key are dropped; those without a value are folded like any other. A result's timestamp is the
largest of the records in its window. A record that has no window (before the start of an unlimited
one) is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.window import WindowStore
from streams.operators.closing import closing
from streams.operators.copies import as_it_is, for_those_after
from streams.operators.folding import Folding, folded_into, forgotten
from streams.operators.lateness import OnLate, lateness
from streams.operators.results import results
from streams.topology.nodes import Binding, Emit, Operator, StepTime
from streams.topology.views import View
from streams.windows import TimeWindows, UnlimitedWindows

Into = Callable[[Any, Any, int, int, int], bool]
"""Folds key and value with a timestamp into the window from start to end; False: it was skipped."""
Late = Callable[[Any, Any, int, int, int | None, int | None], None]


def window_aggregate(
    view: View,
    windows: TimeWindows | UnlimitedWindows,
    folding: Folding,
    *,
    on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    """Return the operator that folds each record into its windows and forwards the results."""

    def bind_operator(binding: Binding) -> Emit:
        time = binding.context.step_time(binding.step)
        fold_into_window = (_counting if folding.counts else _folding)(
            binding, view, folding, emits=not on_close
        )
        if isinstance(windows, UnlimitedWindows):
            return _unlimited(binding, time, windows, fold_into_window)
        handle_late = lateness(binding, on_late)
        tumbling = windows.size_ms == windows.advance_ms
        process_record = (_tumbling if tumbling else _hopping)(
            binding, time, windows, fold_into_window, handle_late
        )
        return closing(binding, view, windows, process_record) if on_close else process_record

    return bind_operator


def _counting(at: Binding, view: View, folding: Folding, *, emits: bool) -> Into:
    """Return a function that counts a record in one window, without a call of the fold."""
    spec = view.spec
    assert spec is not None
    store: WindowStore[int] = at.context.store(spec.name)
    update, failed = store.update, at.failed
    forward_result = results(at, view, store, as_it_is) if emits else None

    def count_in_window(
        key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int
    ) -> bool:
        try:
            entry = update(key, start_ms)
            if entry is None:
                entry = forgotten(key, start_ms, end_ms)
            old = entry.value
            entry.value = 1 if old is None else old + 1
        except Exception as error:
            failed(error, key, value)
            return False
        if timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        if forward_result is not None:
            forward_result(entry, old, entry.timestamp_ms)
        return True

    return count_in_window


def _folding(at: Binding, view: View, folding: Folding, *, emits: bool) -> Into:
    """Return a function that folds a record into one window and forwards the result."""
    spec = view.spec
    assert spec is not None
    store = at.context.store(spec.name)
    failed = at.failed
    fold = folded_into(
        store,
        folding,
        spec.value,
        beside=at.context.skips_processing,
        old=emits and view.sends_old and not spec.caching,
    )
    forward_result = results(at, view, store, for_those_after(at, spec.value)) if emits else None

    def fold_into_window(
        key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int
    ) -> bool:
        try:
            entry, old_value = fold(key, value, timestamp_ms, start_ms, end_ms)
        except Exception as error:
            failed(error, key, value)
            return False
        time_ms = entry.timestamp_ms
        if entry.value is None:
            entry.timestamp_ms = timestamp_ms  # a deletion has the time of its own record
        if forward_result is not None:
            forward_result(entry, old_value, time_ms)
        return True

    return fold_into_window


def _tumbling(at: Binding, time: StepTime, windows: TimeWindows, into: Into, late: Late) -> Emit:
    """Return a function that folds each record into its one tumbling window."""
    context, size_ms, grace_ms = at.context, windows.size_ms, windows.grace_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        start_ms = timestamp_ms - timestamp_ms % size_ms
        end_ms = start_ms + size_ms
        if end_ms > time.ms - grace_ms:
            into(key, value, timestamp_ms, start_ms, end_ms)
        else:
            late(key, value, timestamp_ms, time.ms, start_ms, end_ms)

    return process_record


def _hopping(at: Binding, time: StepTime, windows: TimeWindows, into: Into, late: Late) -> Emit:
    """Return a function that folds each record into its hopping windows, oldest first."""
    context, size_ms, grace_ms = at.context, windows.size_ms, windows.grace_ms
    advance_ms = windows.advance_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        closed_ms = time.ms - grace_ms
        first_ms = max(timestamp_ms - size_ms + advance_ms, 0) // advance_ms * advance_ms
        for start_ms in range(first_ms, timestamp_ms + 1, advance_ms):
            end_ms = start_ms + size_ms
            if end_ms <= closed_ms:
                late(key, value, timestamp_ms, time.ms, start_ms, end_ms)
            elif not into(key, value, timestamp_ms, start_ms, end_ms):
                return

    return process_record


def _unlimited(at: Binding, time: StepTime, windows: UnlimitedWindows, into: Into) -> Emit:
    """Return a function that folds each record from the start on into the one unlimited window."""
    context, start_ms, end_ms = at.context, windows.start_ms, windows.size_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        if timestamp_ms >= start_ms:
            into(key, value, timestamp_ms, start_ms, end_ms)

    return process_record
