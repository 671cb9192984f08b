"""Fold a key's records into sliding windows, which begin or end with a record.

For a record at t and a difference d there is a window [t-d, t] that ends with it, and a window
[t+1, t+1+d] that begins right after it as soon as it has a record; both ends are part of a window.
A record goes into all windows of its key over its time. A window that it creates takes over the
aggregate of one with the same other records: so it reads those that begin from t-2d to t+1. Windows
that would begin before 0 are one, [0, d]. Records without a key or a value are dropped.

A window's timestamp is its latest record's, and tells whether there are records behind a time.
Rules, in their order: KStreamSlidingWindowAggregate (processReverse, processEarly).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple, NoReturn

from state.window import WindowStore
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.graph.views import TableView
from streams.operators.copies import create_copier, create_downstream_copier, create_stored_copier
from streams.operators.folding import WindowFold, create_unstored_entry
from streams.operators.lateness import OnLate, create_late_handler
from streams.operators.window_close import wrap_with_emit_on_close
from streams.operators.window_results import create_result_forwarder
from streams.windows import SlidingWindows


class _WindowValue(NamedTuple):
    """Holds the aggregate of a window, and the time of its latest record."""

    value: Any
    latest_ms: int


class _TimedRecord(NamedTuple):
    """Holds a record, and the time in ms such that all windows ending before it have closed."""

    key: Any
    value: Any
    ms: int
    closed_ms: int


class _RecordSkipped(Exception):
    """Reports that a user's function has failed, and the record is to be skipped."""


def aggregate_sliding_windows(
    view: TableView,
    windows: SlidingWindows,
    window_fold: WindowFold,
    *,
    emits_on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    """Return the operator that folds each record into its key's sliding windows."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        process = _SlidingAggregator(
            binding, view, windows, window_fold, on_late, emits=not emits_on_close
        ).aggregate_record
        return (
            wrap_with_emit_on_close(binding, view, windows, process) if emits_on_close else process
        )

    return bind_operator


class _SlidingAggregator:
    """Folds records into sliding windows in one task (KStreamSlidingWindowAggregate)."""

    def __init__(
        self,
        binding: Binding,
        view: TableView,
        windows: SlidingWindows,
        window_fold: WindowFold,
        on_late: OnLate | None,
        *,
        emits: bool,
    ) -> None:
        assert view.spec is not None
        self._context, self._failed = binding.context, binding.skip_record_or_raise
        self._time = binding.stream_time
        self._store: WindowStore[Any] = binding.context.get_store(view.spec.name)
        self._difference_ms, self._grace_ms = windows.difference_ms, windows.grace_ms
        self._initializer, self._fold = window_fold.initializer, window_fold.fold
        self._copied = create_copier(view.spec.value)
        self._copied_from_store = create_stored_copier(view.spec.value)
        self._sends_old = view.sends_old_values
        self._late = create_late_handler(binding, on_late)
        emitted = create_downstream_copier(binding, view.spec.value)
        self._result = (
            create_result_forwarder(binding, view, self._store, emitted) if emits else None
        )

    def aggregate_record(self, key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None or value is None:
            self._context.dropped_count += 1
            return
        time, difference_ms = self._time, self._difference_ms
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        record = _TimedRecord(key, value, timestamp_ms, time.ms - self._grace_ms)
        end_ms = timestamp_ms + difference_ms
        if end_ms < record.closed_ms:
            self._late(key, value, timestamp_ms, time.ms, timestamp_ms, end_ms)
            return
        try:
            if timestamp_ms < difference_ms:
                self._fold_early_record(record)
            else:
                self._fold_into_windows(record)
        except _RecordSkipped:
            pass

    def _fold_into_windows(self, record: _TimedRecord) -> None:
        """Fold a record into the windows over its time, and create those that are missing.

        They are read newest first, as in Kafka Streams' `processReverse`.
        """
        record_ms, difference_ms = record.ms, self._difference_ms
        starts = set()
        window_after: _WindowValue | None = None
        """The value of a window with the records right after the record, and without it."""
        window_before: _WindowValue | None = None
        """The value of the latest window that ends before the record."""
        previous_ms: int | None = None
        """The time of the latest record before this one."""
        has_window_ending = has_window_after = False
        from_ms = max(record_ms - 2 * difference_ms, 0)
        for start_ms, *found in self._store.entries(
            record.key, from_ms, record_ms + 1, reverse=True
        ):
            window_value = _WindowValue(*found)
            starts.add(start_ms)
            end_ms = start_ms + difference_ms
            if start_ms == record_ms + 1:
                has_window_after = True
            elif end_ms > record_ms:
                window_after = window_after or window_value
                self._fold_into_window(record, start_ms, window_value)
            elif end_ms == record_ms:
                has_window_ending = True
                self._fold_into_window(record, start_ms, window_value)
                if window_value.latest_ms >= record_ms:
                    return  # there was a record of this time: all windows exist
                previous_ms = window_value.latest_ms
            else:
                window_before, previous_ms = window_value, window_value.latest_ms
                break
        if previous_ms is not None:
            self._create_previous_record_right_window(record, previous_ms, starts)
        if not has_window_ending:
            left_start_ms = record_ms - difference_ms
            shares_records = window_before is not None and window_before.latest_ms >= left_start_ms
            self._create_window(record, left_start_ms, window_before if shares_records else None)
        if not has_window_after:
            self._create_current_record_right_window(record, window_after)

    def _fold_early_record(self, record: _TimedRecord) -> None:
        """Fold a record earlier than the time difference: its window would start before 0.

        It goes into the window [0, difference] instead (Kafka Streams' `processEarly`).
        """
        record_ms = record.ms
        starts = set()
        first_window: _WindowValue | None = None
        window_after: _WindowValue | None = None
        previous_ms: int | None = None
        has_window_after = False
        for start_ms, *found in self._store.entries(record.key, 0, record_ms + 1):
            window_value = _WindowValue(*found)
            starts.add(start_ms)
            if start_ms == 0:
                first_window = window_value
                if window_value.latest_ms < record_ms:
                    previous_ms = window_value.latest_ms
            elif start_ms <= record_ms:
                window_after = window_value
                self._fold_into_window(record, start_ms, window_value)
            else:
                has_window_after = True
        if window_after is None and first_window is not None and first_window.latest_ms > record_ms:
            window_after = first_window  # all its records come after this record
        if not has_window_after:
            self._create_current_record_right_window(record, window_after)
        if previous_ms is not None:
            self._create_previous_record_right_window(record, previous_ms, starts)
        if first_window is None:
            self._create_window(record, 0)
        else:
            self._fold_into_window(record, 0, first_window)

    def _create_previous_record_right_window(
        self, record: _TimedRecord, previous_ms: int, window_starts: Container[int]
    ) -> None:
        """Create the window that starts 1 ms after the previous record, if this record is in it."""
        start_ms = previous_ms + 1
        if start_ms not in window_starts and start_ms + self._difference_ms >= record.ms:
            self._create_window(record, start_ms)

    def _create_window(
        self, record: _TimedRecord, start_ms: int, initial_value: _WindowValue | None = None
    ) -> None:
        """Create a window with the record and the aggregate of `initial_value`, if it is given."""
        if initial_value is None:
            try:
                initial_value = _WindowValue(self._initializer(), record.ms)
            except Exception as error:
                self._report_error_and_raise_skip(record, error)
        self._fold_into_window(record, start_ms, initial_value, exists=False)

    def _create_current_record_right_window(
        self, record: _TimedRecord, right_records: _WindowValue | None
    ) -> None:
        """Create the window that starts 1 ms after the record, if later records are in that window.

        Two windows may have one object: folds work on copies.
        """
        if right_records is not None and right_records.latest_ms > record.ms:
            self._write_window(
                record, record.ms + 1, right_records.value, None, right_records.latest_ms
            )

    def _fold_into_window(
        self,
        record: _TimedRecord,
        start_ms: int,
        window_value: _WindowValue,
        *,
        exists: bool = True,
    ) -> None:
        """Fold the record into one window, or handle it as late if the window has closed."""
        end_ms = start_ms + self._difference_ms
        if end_ms < record.closed_ms:
            self._late(record.key, record.value, record.ms, self._time.ms, start_ms, end_ms)
            return
        old = window_value.value
        try:
            # Other windows may have this very object, or will be created with it.
            new = self._fold(
                record.key, record.value, None if old is None else self._copied_from_store(old)
            )
            if new is record.value:
                new = self._copied(new)
        except Exception as error:
            self._report_error_and_raise_skip(record, error)
        time_ms = record.ms if old is None else max(record.ms, window_value.latest_ms)
        old_value = self._copied_from_store(old) if self._sends_old and exists else None
        self._write_window(record, start_ms, new, old_value, time_ms)

    def _write_window(
        self, record: _TimedRecord, start_ms: int, new: Any, old_value: Any, time_ms: int
    ) -> None:
        """Write a window's new value to the store and forward the result."""
        try:
            self._store.check_value(new)
            entry = self._store.get_entry_for_update(record.key, start_ms)
            if entry is None:
                entry = create_unstored_entry(record.key, start_ms, start_ms + self._difference_ms)
            entry.value = new
        except Exception as error:
            self._report_error_and_raise_skip(record, error)
        entry.timestamp_ms = record.ms if new is None else time_ms
        if self._result is not None:
            self._result(entry, old_value, time_ms)

    def _report_error_and_raise_skip(self, record: _TimedRecord, error: Exception) -> NoReturn:
        """Report an error of the record to the step's handler, and raise to skip the record."""
        self._failed(error, record.key, record.value)
        raise _RecordSkipped
