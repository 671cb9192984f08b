"""Folding: how the records of a window become one value, and sessions become one session.

A fold may change the object that it is handed, which is the store's alone. Where it may fail and
its record be skipped it works on a copy, so that what it did by half is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.entry import Entry
from state.window import WindowStore
from state.windowed import Windowed
from streams.operators.copies import copier, stored_copier
from streams.serdes import Serde


@dataclass(frozen=True, slots=True)
class Folding:
    """`initializer()` is the value without a record; `fold(key, value, so_far)` takes a record in;
    `merger(key, one, other)` makes one of two sessions. A value may be None: none."""

    initializer: Callable[[], Any]
    fold: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any] | None = None
    counts: bool = False
    """It is a count: a step may do it by itself."""


def counting() -> Folding:
    return Folding(
        lambda: 0,
        lambda key, value, count: count + 1,
        lambda key, one, two: one + two,
        counts=True,
    )


def reducing(reducer: Callable[[Any, Any], Any]) -> Folding:
    """The first value of a window is its aggregate."""

    def fold(key: Any, value: Any, old: Any) -> Any:
        return value if old is None else reducer(old, value)

    return Folding(lambda: None, fold, lambda key, one, other: fold(key, other, one))


def forgotten(key: Any, start_ms: int, end_ms: int) -> Entry[Windowed[Any], Any]:
    """Stands for a window that its store has forgotten: a result goes on, and is not kept. It takes
    a step that lags behind another of the same store (cogroup), or whose time was lost."""
    return Entry(Windowed(key, start_ms, end_ms), None, -1, None)


Fold = Callable[[Any, Any, int, int, int], tuple[Entry[Windowed[Any], Any], Any]]
"""Key, value, timestamp, start and end of a window -> its entry, changed, and the old value."""


def folded_into(
    store: WindowStore[Any], folding: Folding, serde: Serde[Any], *, beside: bool, old: bool
) -> Fold:
    """Takes a record into a window. With `beside` the fold works on a copy, and a window whose
    first record is skipped has not been written. With `old` it returns the value that the window
    had, None where it had none (docs/decisions/0018)."""
    initializer, fold = folding.initializer, folding.fold
    find, update, check_value = store.entry, store.update, store.check_value
    copied, copied_from_store = copier(serde), stored_copier(serde)

    def take(
        key: Any, value: Any, timestamp_ms: int, start_ms: int, end_ms: int
    ) -> tuple[Entry[Windowed[Any], Any], Any]:
        if beside:
            held = find(key, start_ms)
            so_far = None if held is None else copied_from_store(held.value)
            entry = None
        else:
            entry = update(key, start_ms)
            so_far = None if entry is None else entry.value
        began = so_far is None
        if began:
            so_far = initializer()
        was = None if began or not old else copied_from_store(so_far)
        new = fold(key, value, so_far)
        check_value(new)
        if entry is None:
            entry = update(key, start_ms)
            if entry is None:
                entry = forgotten(key, start_ms, end_ms)
        entry.value = copied(new) if new is value else new
        if began or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry, was

    return take
