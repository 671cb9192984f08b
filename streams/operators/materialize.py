"""Materialize a table: write its new values to its store, and forward them as updates.

With caching the update goes at the commit. A versioned store says whether the value is the latest
of its key, and takes none that is older than its history; a store with a `ttl` takes none that has
expired: such a value is not forwarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.versioned import NOT_PUT, VALID_TO_UNDEFINED
from streams.graph.nodes import Binding, ForwardUpdate, StoreKind
from streams.graph.views import TableView
from streams.operators.copies import create_copier_into, create_downstream_copier
from streams.operators.uncommitted_results import register_emit_at_commit

WriteToStore = Callable[[Any, Any, int], None]
"""Writes the new value of a key, or None to delete it, with a timestamp in ms."""


def create_value_materializer(
    binding: Binding, view: TableView, *, skips_empty: bool = False
) -> WriteToStore:
    """Return a function that writes a value to the store of `view` and forwards the update.

    The old value that is forwarded is the one that the store had. With `skips_empty` a key that had
    no value and gets none is neither written nor forwarded, if old values are sent.
    """
    spec = view.spec
    assert spec is not None
    store = binding.context.get_store(spec.name)
    if spec.kind is StoreKind.VERSIONED:
        return _create_version_materializer(binding, store, view, skips_empty=skips_empty)
    downstream, sends_old = binding.downstream, view.sends_old_values
    context, failed = binding.context, binding.skip_record_or_raise
    copy_value = create_downstream_copier(binding, spec.value)
    update, check_value = store.get_entry_for_update, store.check_value
    caching = spec.caching
    pending_results = register_emit_at_commit(binding, store, view, copy_value) if caching else {}
    find_entry = store.entry if sends_old and skips_empty else None
    try_admit_write = None if spec.ttl_ms is None else store.try_admit_write

    def write_value(key: Any, new: Any, timestamp_ms: int) -> None:
        if try_admit_write is not None and not try_admit_write(timestamp_ms, deletes=new is None):
            context.dropped_count += 1
            return
        try:
            if new is None and find_entry is not None and find_entry(key) is None:
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
            pending_results.pop(entry, None)
            pending_results[entry] = context.message
        else:
            downstream(key, copy_value(new), old if sends_old else None, timestamp_ms, True)

    return write_value


def _create_version_materializer(
    binding: Binding, store: Any, view: TableView, *, skips_empty: bool
) -> WriteToStore:
    downstream, sends_old = binding.downstream, view.sends_old_values
    put, get, failed = store.put, store.get, binding.skip_record_or_raise
    skips = sends_old and skips_empty

    def write_version(key: Any, new: Any, timestamp_ms: int) -> None:
        try:
            previous = get(key) if sends_old else None
            if skips and previous is None and new is None:
                return
            valid_to_ms = put(key, new, timestamp_ms)
        except Exception as error:
            failed(error, key, new)
            return
        if valid_to_ms != NOT_PUT:
            old = None if previous is None else previous.value
            downstream(key, new, old, timestamp_ms, valid_to_ms == VALID_TO_UNDEFINED)

    return write_version


def create_update_materializer(binding: Binding, view: TableView) -> ForwardUpdate:
    """Return a function that writes an update's new value to the store of `view` and forwards it.

    The old value that is forwarded is the update's own, and not the store's, unless results are
    cached.
    """
    spec = view.spec
    assert spec is not None
    store = binding.context.get_store(spec.name)
    if spec.kind is not StoreKind.VERSIONED and spec.caching:
        return _create_cached_update_materializer(binding, store, view)
    downstream, put, failed = binding.downstream, store.put, binding.skip_record_or_raise
    versioned = spec.kind is StoreKind.VERSIONED
    copy_value = create_copier_into(spec)
    context, try_admit_write = (
        binding.context,
        None if spec.ttl_ms is None else store.try_admit_write,
    )

    def write_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        if try_admit_write is not None and not try_admit_write(timestamp_ms, deletes=new is None):
            context.dropped_count += 1
            return
        try:
            valid_to_ms = put(key, copy_value(new), timestamp_ms)
        except Exception as error:
            failed(error, key, new)
            return
        if valid_to_ms != NOT_PUT:
            is_latest = not versioned or valid_to_ms == VALID_TO_UNDEFINED
            downstream(key, new, old, timestamp_ms, is_latest)

    return write_update


def _create_cached_update_materializer(
    binding: Binding, store: Any, view: TableView
) -> ForwardUpdate:
    assert view.spec is not None
    context, update, failed = (
        binding.context,
        store.get_entry_for_update,
        binding.skip_record_or_raise,
    )
    check_value = store.check_value
    pending_results = register_emit_at_commit(
        binding, store, view, create_downstream_copier(binding, view.spec.value)
    )
    copy_value = create_copier_into(view.spec)
    try_admit_write = None if view.spec.ttl_ms is None else store.try_admit_write

    def write_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        if try_admit_write is not None and not try_admit_write(timestamp_ms, deletes=new is None):
            context.dropped_count += 1
            return
        try:
            own_value = copy_value(new)
            check_value(own_value)
            entry = update(key)
            entry.value = own_value
        except Exception as error:
            failed(error, key, new)
            return
        entry.timestamp_ms = timestamp_ms
        pending_results.pop(entry, None)
        pending_results[entry] = context.message

    return write_update
