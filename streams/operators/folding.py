"""Fold a record into a window's value, and merge two sessions.

A fold may change the object that it is handed, which is the store's alone. Where it may fail and
its record be skipped it works on a copy, so that a change made half-way is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from state.entry import StoreEntry
from state.window import WindowStore
from state.windowed import Windowed
from streams.operators.copies import create_copier, create_stored_copier
from streams.serdes import Serde

OldValue: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class WindowFold:
    """Defines an aggregation of windows by its initializer, its fold and its session merger.

    `initializer()` returns the value without a record; `fold(key, value, aggregate)` adds a record;
    `merger(key, one, other)` merges the values of two sessions. A value may be None: none.
    """

    initializer: Callable[[], Any]
    fold: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any] | None = None
    is_count: bool = False
    """Whether it is a count, which a step may compute without calls."""


def create_count_fold() -> WindowFold:
    """Return the fold that counts the records of a window."""
    return WindowFold(
        lambda: 0,
        lambda key, value, count: count + 1,
        lambda key, one, two: one + two,
        is_count=True,
    )


def create_reduce_fold(reducer: Callable[[Any, Any], Any]) -> WindowFold:
    """Return the fold that calls `reducer`; the first value of a window is its aggregate."""

    def reduce_value(key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is None else reducer(aggregate, value)

    return WindowFold(
        lambda: None, reduce_value, lambda key, one, other: reduce_value(key, other, one)
    )


def create_unstored_entry(key: Any, start_ms: int, end_ms: int) -> StoreEntry[Windowed[Any], Any]:
    """Return an entry for a window that has expired in its store: its result is not stored.

    That happens in a step that lags behind another of the same store (cogroup), or whose time was
    lost.
    """
    return StoreEntry(Windowed(key, start_ms, end_ms), None, -1, None)


FoldIntoWindow = Callable[[Any, Any, int, int, int], tuple[StoreEntry[Windowed[Any], Any], Any]]
"""Takes key, value, timestamp, start and end of a window; returns its entry and old value."""


def create_window_folder(
    store: WindowStore[Any],
    folding: WindowFold,
    serde: Serde[Any],
    *,
    works_on_copy: bool,
    returns_old: bool,
) -> FoldIntoWindow:
    """Return a function that folds a record into one window of `store`.

    With `works_on_copy` the fold works on a copy, and a window whose first record is skipped has
    not been written. With `returns_old` the function returns the value that the window had, or None
    (docs/decisions/0018).
    """
    initializer, fold = folding.initializer, folding.fold
    find, update, check_value = store.entry, store.get_entry_for_update, store.check_value
    copy_value, copy_stored_value = create_copier(serde), create_stored_copier(serde)

    def fold_into_window(
        key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int
    ) -> tuple[StoreEntry[Windowed[Any], Any], OldValue]:
        if works_on_copy:
            stored = find(key, start_ms)
            aggregate = None if stored is None else copy_stored_value(stored.value)
            entry = None
        else:
            entry = update(key, start_ms)
            aggregate = None if entry is None else entry.value
        is_new = aggregate is None
        if is_new:
            aggregate = initializer()
        old_value = None if is_new or not returns_old else copy_stored_value(aggregate)
        new = fold(key, value, aggregate)
        check_value(new)
        if entry is None:
            entry = update(key, start_ms)
            if entry is None:
                entry = create_unstored_entry(key, start_ms, end_ms)
        entry.value = copy_value(new) if new is value else new
        if is_new or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry, old_value

    return fold_into_window
