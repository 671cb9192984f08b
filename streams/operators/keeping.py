"""Keeping: a table's new value goes into its store, and then on as an update.

With caching the update goes at the commit. A versioned store says whether the value is the latest
of its key, and takes none that is older than its history; a store with a `ttl` takes none that has
expired: nobody is told of such a one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.versioned import NOT_PUT, VALID_TO_UNDEFINED
from streams.operators.copies import copier_into, for_those_after
from streams.operators.held import held_back
from streams.topology.nodes import Binding, StoreKind, Update
from streams.topology.views import View

Keep = Callable[[Any, Any, int], None]
"""Key, new value or None, timestamp in ms."""


def keeper(at: Binding, view: View, *, without_nothing: bool = False) -> Keep:
    """What keeps a value in the store of `view` and passes it on: the old value is what the store
    had. `without_nothing`: where the key had no value and has none now nothing is written, and
    nobody told, if old values are sent."""
    spec = view.spec
    assert spec is not None
    store = at.context.store(spec.name)
    if spec.kind is StoreKind.VERSIONED:
        return _versioned(at, store, view, without_nothing=without_nothing)
    downstream, sends_old = at.downstream, view.sends_old
    context, failed = at.context, at.failed
    emitted = for_those_after(at, spec.value)
    update, check_value = store.update, store.check_value
    caching = spec.caching
    held = held_back(at, store, view, emitted) if caching else {}
    find = store.entry if sends_old and without_nothing else None
    admits = None if spec.ttl_ms is None else store.admits

    def keep(key: Any, new: Any, timestamp_ms: int) -> None:
        if admits is not None and not admits(timestamp_ms, deletes=new is None):
            context.dropped += 1
            return
        try:
            if new is None and find is not None and find(key) is None:
                return
            check_value(new)
            entry = update(key)
            old = entry.value
            entry.value = new
        except Exception as error:
            failed(error, key, new)
            return
        entry.timestamp_ms = timestamp_ms
        if caching:
            held.pop(entry, None)
            held[entry] = context.message
        else:
            downstream(key, emitted(new), old if sends_old else None, timestamp_ms, True)

    return keep


def _versioned(at: Binding, store: Any, view: View, *, without_nothing: bool) -> Keep:
    downstream, sends_old = at.downstream, view.sends_old
    put, get, failed = store.put, store.get, at.failed
    skips = sends_old and without_nothing

    def keep(key: Any, new: Any, timestamp_ms: int) -> None:
        try:
            was = get(key) if sends_old else None
            if skips and was is None and new is None:
                return
            until_ms = put(key, new, timestamp_ms)
        except Exception as error:
            failed(error, key, new)
            return
        if until_ms != NOT_PUT:
            old = None if was is None else was.value
            downstream(key, new, old, timestamp_ms, until_ms == VALID_TO_UNDEFINED)

    return keep


def update_keeper(at: Binding, view: View) -> Update:
    """What keeps the new value of an update in the store of `view` and passes the update on: with
    the old value that it came with, and not what the store had, unless results are cached."""
    spec = view.spec
    assert spec is not None
    store = at.context.store(spec.name)
    if spec.kind is not StoreKind.VERSIONED and spec.caching:
        return _cached_updates(at, store, view)
    downstream, put, failed = at.downstream, store.put, at.failed
    versioned = spec.kind is StoreKind.VERSIONED
    own = copier_into(spec)
    context, admits = at.context, None if spec.ttl_ms is None else store.admits

    def keep(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        if admits is not None and not admits(timestamp_ms, deletes=new is None):
            context.dropped += 1
            return
        try:
            until_ms = put(key, own(new), timestamp_ms)
        except Exception as error:
            failed(error, key, new)
            return
        if until_ms != NOT_PUT:
            is_latest = not versioned or until_ms == VALID_TO_UNDEFINED
            downstream(key, new, old, timestamp_ms, is_latest)

    return keep


def _cached_updates(at: Binding, store: Any, view: View) -> Update:
    assert view.spec is not None
    context, update, failed = at.context, store.update, at.failed
    check_value = store.check_value
    held = held_back(at, store, view, for_those_after(at, view.spec.value))
    own = copier_into(view.spec)
    admits = None if view.spec.ttl_ms is None else store.admits

    def keep(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        if admits is not None and not admits(timestamp_ms, deletes=new is None):
            context.dropped += 1
            return
        try:
            mine = own(new)
            check_value(mine)
            entry = update(key)
            entry.value = mine
        except Exception as error:
            failed(error, key, new)
            return
        entry.timestamp_ms = timestamp_ms
        held.pop(entry, None)
        held[entry] = context.message

    return keep
