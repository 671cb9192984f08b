"""Window aggregate: the records of a key folded by windows of a size (KStreamWindowAggregate).

A record moves the step's own stream time and goes into each window that it falls into, oldest
first; a window that has closed by then misses it, and it is late there. Records without a key are
dropped; those without a value are taken like any other. A result's timestamp is the largest of the
records in its window, and what has no window (before the start of an unlimited one) is passed over.
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
"""Key, value, timestamp, start and end of a window: takes the record in. False: it was skipped."""
Late = Callable[[Any, Any, int, int, int | None, int | None], None]


def window_aggregate(
    view: View,
    windows: TimeWindows | UnlimitedWindows,
    folding: Folding,
    *,
    on_close: bool = False,
    on_late: OnLate | None = None,
) -> Operator:
    def bind(at: Binding) -> Emit:
        time = at.context.step_time(at.step)
        into = (_counting if folding.counts else _folding)(at, view, folding, emits=not on_close)
        if isinstance(windows, UnlimitedWindows):
            return _unlimited(at, time, windows, into)
        late = lateness(at, on_late)
        tumbling = windows.size_ms == windows.advance_ms
        process = (_tumbling if tumbling else _hopping)(at, time, windows, into, late)
        return closing(at, view, windows, process) if on_close else process

    return bind


def _counting(at: Binding, view: View, folding: Folding, *, emits: bool) -> Into:
    """`_folding` for a count, without a call for it."""
    spec = view.spec
    assert spec is not None
    store: WindowStore[int] = at.context.store(spec.name)
    update, failed = store.update, at.failed
    result = results(at, view, store, as_it_is) if emits else None

    def into(key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int) -> bool:
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
        if result is not None:
            result(entry, old, entry.timestamp_ms)
        return True

    return into


def _folding(at: Binding, view: View, folding: Folding, *, emits: bool) -> Into:
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
    result = results(at, view, store, for_those_after(at, spec.value)) if emits else None

    def into(key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int) -> bool:
        try:
            entry, was = fold(key, value, timestamp_ms, start_ms, end_ms)
        except Exception as error:
            failed(error, key, value)
            return False
        time_ms = entry.timestamp_ms
        if entry.value is None:
            entry.timestamp_ms = timestamp_ms  # a deletion has the time of its own record
        if result is not None:
            result(entry, was, time_ms)
        return True

    return into


def _tumbling(at: Binding, time: StepTime, windows: TimeWindows, into: Into, late: Late) -> Emit:
    context, size_ms, grace_ms = at.context, windows.size_ms, windows.grace_ms

    def process(key: Any, value: Any, timestamp_ms: int) -> None:
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

    return process


def _hopping(at: Binding, time: StepTime, windows: TimeWindows, into: Into, late: Late) -> Emit:
    context, size_ms, grace_ms = at.context, windows.size_ms, windows.grace_ms
    advance_ms = windows.advance_ms

    def process(key: Any, value: Any, timestamp_ms: int) -> None:
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

    return process


def _unlimited(at: Binding, time: StepTime, windows: UnlimitedWindows, into: Into) -> Emit:
    context, start_ms, end_ms = at.context, windows.start_ms, windows.size_ms

    def process(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped += 1
            return
        if timestamp_ms > time.ms:
            time.ms = timestamp_ms
        if timestamp_ms >= start_ms:
            into(key, value, timestamp_ms, start_ms, end_ms)

    return process
