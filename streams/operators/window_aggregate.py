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
from streams.graph.internal_context import StepStreamTime
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.graph.views import TableView
from streams.operators.copies import create_downstream_copier, return_unchanged
from streams.operators.folding import WindowFold, create_unstored_entry, create_window_folder
from streams.operators.lateness import OnLate, create_late_handler
from streams.operators.window_close import wrap_with_emit_on_close
from streams.operators.window_results import create_result_forwarder
from streams.windows import TimeWindows, UnlimitedWindows

AddToWindow = Callable[[Any, Any, int, int, int], bool]
"""Folds key and value with a timestamp into the window from start to end; False: it was skipped."""
HandleLateRecord = Callable[[Any, Any, int, int, int | None, int | None], None]


def aggregate_windows(
    view: TableView,
    windows: TimeWindows | UnlimitedWindows,
    window_fold: WindowFold,
    *,
    emits_on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    """Return the operator that folds each record into its windows and forwards the results."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        time = binding.stream_time
        fold_into_window = (
            _create_window_counter if window_fold.is_count else _create_window_folder
        )(binding, view, window_fold, emits=not emits_on_close)
        if isinstance(windows, UnlimitedWindows):
            return _create_unlimited_processor(binding, time, windows, fold_into_window)
        handle_late = create_late_handler(binding, on_late)
        tumbling = windows.size_ms == windows.advance_ms
        process_record = (_create_tumbling_processor if tumbling else _create_hopping_processor)(
            binding, time, windows, fold_into_window, handle_late
        )
        return (
            wrap_with_emit_on_close(binding, view, windows, process_record)
            if emits_on_close
            else process_record
        )

    return bind_operator


def _create_window_counter(
    binding: Binding, view: TableView, window_fold: WindowFold, *, emits: bool
) -> AddToWindow:
    """Return a function that counts a record in one window, without a call of the fold."""
    spec = view.spec
    assert spec is not None
    store: WindowStore[int] = binding.context.get_store(spec.name)
    update, failed = store.get_entry_for_update, binding.skip_record_or_raise
    forward_result = (
        create_result_forwarder(binding, view, store, return_unchanged) if emits else None
    )

    def count_in_window(
        key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int
    ) -> bool:
        try:
            entry = update(key, start_ms)
            if entry is None:
                entry = create_unstored_entry(key, start_ms, end_ms)
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


def _create_window_folder(
    binding: Binding, view: TableView, window_fold: WindowFold, *, emits: bool
) -> AddToWindow:
    """Return a function that folds a record into one window and forwards the result."""
    spec = view.spec
    assert spec is not None
    store = binding.context.get_store(spec.name)
    failed = binding.skip_record_or_raise
    fold = create_window_folder(
        store,
        window_fold,
        spec.value,
        works_on_copy=binding.context.skips_processing,
        returns_old=emits and view.sends_old_values and not spec.caching,
    )
    forward_result = (
        create_result_forwarder(binding, view, store, create_downstream_copier(binding, spec.value))
        if emits
        else None
    )

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


def _create_tumbling_processor(
    binding: Binding,
    step_time: StepStreamTime,
    windows: TimeWindows,
    fold_into_window: AddToWindow,
    handle_late: HandleLateRecord,
) -> ForwardRecord:
    """Return a function that folds each record into its one tumbling window."""
    context, size_ms, grace_ms = binding.context, windows.size_ms, windows.grace_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped_count += 1
            return
        if timestamp_ms > step_time.ms:
            step_time.ms = timestamp_ms
        start_ms = timestamp_ms - timestamp_ms % size_ms
        end_ms = start_ms + size_ms
        if end_ms > step_time.ms - grace_ms:
            fold_into_window(key, value, timestamp_ms, start_ms, end_ms)
        else:
            handle_late(key, value, timestamp_ms, step_time.ms, start_ms, end_ms)

    return process_record


def _create_hopping_processor(
    binding: Binding,
    step_time: StepStreamTime,
    windows: TimeWindows,
    fold_into_window: AddToWindow,
    handle_late: HandleLateRecord,
) -> ForwardRecord:
    """Return a function that folds each record into its hopping windows, oldest first."""
    context, size_ms, grace_ms = binding.context, windows.size_ms, windows.grace_ms
    advance_ms = windows.advance_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped_count += 1
            return
        if timestamp_ms > step_time.ms:
            step_time.ms = timestamp_ms
        closed_ms = step_time.ms - grace_ms
        first_ms = max(timestamp_ms - size_ms + advance_ms, 0) // advance_ms * advance_ms
        for start_ms in range(first_ms, timestamp_ms + 1, advance_ms):
            end_ms = start_ms + size_ms
            if end_ms <= closed_ms:
                handle_late(key, value, timestamp_ms, step_time.ms, start_ms, end_ms)
            elif not fold_into_window(key, value, timestamp_ms, start_ms, end_ms):
                return

    return process_record


def _create_unlimited_processor(
    binding: Binding,
    step_time: StepStreamTime,
    windows: UnlimitedWindows,
    fold_into_window: AddToWindow,
) -> ForwardRecord:
    """Return a function that folds each record from the start on into the one unlimited window."""
    context, start_ms, end_ms = binding.context, windows.start_ms, windows.size_ms

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped_count += 1
            return
        if timestamp_ms > step_time.ms:
            step_time.ms = timestamp_ms
        if timestamp_ms >= start_ms:
            fold_into_window(key, value, timestamp_ms, start_ms, end_ms)

    return process_record
