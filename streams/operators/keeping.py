"""Keeping: a table's new value goes into its store, and then on as an update.

With caching the update goes at the commit. A versioned store says whether the value is the latest
of its key, and takes none that is older than its history: nobody is told of such a one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.versioned import NOT_PUT, VALID_TO_UNDEFINED
from streams.operators.copies import for_those_after
from streams.operators.held import held_back
from streams.topology.nodes import Binding, StoreKind
from streams.topology.views import View

Keep = Callable[[Any, Any, int], None]
"""Key, new value or None, timestamp in ms."""


def keeper(at: Binding, view: View, *, without_nothing: bool = False) -> Keep:
    """What keeps a value in the store of `view` and passes it on. `without_nothing`: where the key
    had no value and has none now nothing is written, and nobody told, if old values are sent."""
    spec = view.spec
    assert spec is not None
    store = at.context.store(spec.name)
    if spec.kind is StoreKind.VERSIONED:
        return _versioned(at, store, view)
    downstream, sends_old = at.downstream, view.sends_old
    context = at.context
    emitted = for_those_after(at, spec.value)
    update = store.update
    caching = spec.caching
    held = held_back(at, store, view, emitted) if caching else {}
    find = store.entry if sends_old and without_nothing else None

    def keep(key: Any, new: Any, timestamp_ms: int) -> None:
        if new is None and find is not None and find(key) is None:
            return
        entry = update(key)
        old = entry.value
        entry.value = new
        entry.timestamp_ms = timestamp_ms
        if caching:
            held.pop(entry, None)
            held[entry] = context.message
        else:
            downstream(key, emitted(new), old if sends_old else None, timestamp_ms, True)

    return keep


def _versioned(at: Binding, store: Any, view: View) -> Keep:
    downstream, sends_old = at.downstream, view.sends_old
    put, get = store.put, store.get

    def keep(key: Any, new: Any, timestamp_ms: int) -> None:
        was = get(key) if sends_old else None
        until_ms = put(key, new, timestamp_ms)
        if until_ms != NOT_PUT:
            old = None if was is None else was.value
            downstream(key, new, old, timestamp_ms, until_ms == VALID_TO_UNDEFINED)

    return keep
