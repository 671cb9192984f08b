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
from streams.operators.closing import closing
from streams.operators.copies import copier, for_those_after, stored_copier
from streams.operators.folding import Folding, forgotten
from streams.operators.lateness import OnLate, lateness
from streams.operators.results import results
from streams.topology.nodes import Binding, Emit, Operator
from streams.topology.views import View
from streams.windows import SlidingWindows


class _Held(NamedTuple):
    """Holds the aggregate of a window, and the time of its latest record."""

    value: Any
    latest_ms: int


class _Record(NamedTuple):
    """Holds a record, and the time before which windows have closed: one that ends then is open."""

    key: Any
    value: Any
    ms: int
    closed_ms: int


class _Skipped(Exception):
    """Reports that a user's function has failed, and the record is to be skipped."""


def sliding_aggregate(
    view: View,
    windows: SlidingWindows,
    folding: Folding,
    *,
    on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    """Return the operator that folds each record into its key's sliding windows."""

    def bind_operator(binding: Binding) -> Emit:
        process = _Sliding(binding, view, windows, folding, on_late, emits=not on_close).process
        return closing(binding, view, windows, process) if on_close else process

    return bind_operator


class _Sliding:
    """Folds records into sliding windows in one task (KStreamSlidingWindowAggregate)."""

    def __init__(
        self,
        at: Binding,
        view: View,
        windows: SlidingWindows,
        folding: Folding,
        on_late: OnLate | None,
        *,
        emits: bool,
    ) -> None:
        assert view.spec is not None
        self._context, self._failed = at.context, at.failed
        self._time = at.context.step_time(at.step)
        self._store: WindowStore[Any] = at.context.store(view.spec.name)
        self._difference_ms, self._grace_ms = windows.difference_ms, windows.grace_ms
        self._initializer, self._fold = folding.initializer, folding.fold
        self._copied = copier(view.spec.value)
        self._copied_from_store = stored_copier(view.spec.value)
        self._sends_old = view.sends_old
        self._late = lateness(at, on_late)
        emitted = for_those_after(at, view.spec.value)
        self._result = results(at, view, self._store, emitted) if emits else None

    def process(self, key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None or value is None:
            self._context.dropped += 1
            return
        time, difference_ms = self._time, self._difference_ms
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        record = _Record(key, value, timestamp_ms, time.ms - self._grace_ms)
        end_ms = timestamp_ms + difference_ms
        if end_ms < record.closed_ms:
            self._late(key, value, timestamp_ms, time.ms, timestamp_ms, end_ms)
            return
        try:
            if timestamp_ms < difference_ms:
                self._take_early(record)
            else:
                self._take(record)
        except _Skipped:
            pass

    def _take(self, record: _Record) -> None:
        """Fold a record into the windows over its time, and create those that are missing.

        They are read newest first, as in Kafka Streams' `processReverse`.
        """
        record_ms, difference_ms = record.ms, self._difference_ms
        starts = set()
        window_after: _Held | None = None
        """The value of a window with the records right after the record, and without it."""
        window_before: _Held | None = None
        """The value of the latest window that ends before the record."""
        previous_ms: int | None = None
        """The time of the latest record before this one."""
        has_window_ending = has_window_after = False
        from_ms = max(record_ms - 2 * difference_ms, 0)
        for start_ms, *found in self._store.entries(
            record.key, from_ms, record_ms + 1, reverse=True
        ):
            window_value = _Held(*found)
            starts.add(start_ms)
            end_ms = start_ms + difference_ms
            if start_ms == record_ms + 1:
                has_window_after = True
            elif end_ms > record_ms:
                window_after = window_after or window_value
                self._update(record, start_ms, window_value)
            elif end_ms == record_ms:
                has_window_ending = True
                self._update(record, start_ms, window_value)
                if window_value.latest_ms >= record_ms:
                    return  # there was a record of this time: all windows exist
                previous_ms = window_value.latest_ms
            else:
                window_before, previous_ms = window_value, window_value.latest_ms
                break
        if previous_ms is not None:
            self._follow(record, previous_ms, starts)
        if not has_window_ending:
            left_start_ms = record_ms - difference_ms
            shares_records = window_before is not None and window_before.latest_ms >= left_start_ms
            self._begin(record, left_start_ms, window_before if shares_records else None)
        if not has_window_after:
            self._begin_behind(record, window_after)

    def _take_early(self, record: _Record) -> None:
        """Handle a record whose timestamp is below the windows' time difference.

        The window that ends with it would begin before 0, so it goes into [0, d] instead. Kafka
        Streams' `processEarly`.
        """
        record_ms = record.ms
        starts = set()
        first_window: _Held | None = None
        window_after: _Held | None = None
        previous_ms: int | None = None
        has_window_after = False
        for start_ms, *found in self._store.entries(record.key, 0, record_ms + 1):
            window_value = _Held(*found)
            starts.add(start_ms)
            if start_ms == 0:
                first_window = window_value
                if window_value.latest_ms < record_ms:
                    previous_ms = window_value.latest_ms
            elif start_ms <= record_ms:
                window_after = window_value
                self._update(record, start_ms, window_value)
            else:
                has_window_after = True
        if window_after is None and first_window is not None and first_window.latest_ms > record_ms:
            window_after = first_window  # all its records come after this record
        if not has_window_after:
            self._begin_behind(record, window_after)
        if previous_ms is not None:
            self._follow(record, previous_ms, starts)
        if first_window is None:
            self._begin(record, 0)
        else:
            self._update(record, 0, first_window)

    def _follow(self, record: _Record, previous_ms: int, starts: Container[int]) -> None:
        """Create the window right after the previous record, if this record is the first in it."""
        start_ms = previous_ms + 1
        if start_ms not in starts and start_ms + self._difference_ms >= record.ms:
            self._begin(record, start_ms)

    def _begin(self, record: _Record, start_ms: int, held: _Held | None = None) -> None:
        """Create a window with the record and the aggregate of `initial_value`, if it is given."""
        if held is None:
            try:
                held = _Held(self._initializer(), record.ms)
            except Exception as error:
                self._skip(record, error)
        self._update(record, start_ms, held, is_there=False)

    def _begin_behind(self, record: _Record, behind: _Held | None) -> None:
        """Create the window right after the record, if there are records for it.

        Two windows may have one object: folds work on copies.
        """
        if behind is not None and behind.latest_ms > record.ms:
            self._write(record, record.ms + 1, behind.value, None, behind.latest_ms)

    def _update(
        self, record: _Record, start_ms: int, held: _Held, *, is_there: bool = True
    ) -> None:
        """Fold the record into one window, or handle it as late if the window has closed."""
        end_ms = start_ms + self._difference_ms
        if end_ms < record.closed_ms:
            self._late(record.key, record.value, record.ms, self._time.ms, start_ms, end_ms)
            return
        old = held.value
        try:
            # Other windows may have this very object, or will be created with it.
            new = self._fold(
                record.key, record.value, None if old is None else self._copied_from_store(old)
            )
            if new is record.value:
                new = self._copied(new)
        except Exception as error:
            self._skip(record, error)
        time_ms = record.ms if old is None else max(record.ms, held.latest_ms)
        old_value = self._copied_from_store(old) if self._sends_old and is_there else None
        self._write(record, start_ms, new, old_value, time_ms)

    def _write(self, record: _Record, start_ms: int, new: Any, was: Any, time_ms: int) -> None:
        """Write a window's new value to the store and forward the result."""
        try:
            self._store.check_value(new)
            entry = self._store.update(record.key, start_ms)
            if entry is None:
                entry = forgotten(record.key, start_ms, start_ms + self._difference_ms)
            entry.value = new
        except Exception as error:
            self._skip(record, error)
        entry.timestamp_ms = record.ms if new is None else time_ms
        if self._result is not None:
            self._result(entry, was, time_ms)

    def _skip(self, record: _Record, error: Exception) -> NoReturn:
        """Report an error of the record to the step's handler, and raise to skip the record."""
        self._failed(error, record.key, record.value)
        raise _Skipped
