"""Aggregate: each key's records folded into one value, kept in a store.

Records without a key or without a value are passed over, and a fold that returns None deletes the
key, as in Kafka Streams (KStreamAggregate, KStreamReduce). With caching the result of a key goes
downstream once a commit, with the value it has then; without, at each record. A result's timestamp
is the largest of the records in it.

The store keeps the aggregate as an object and serialises it at the commit. A fold may change it in
place, so the object is the store's alone: it goes in a rollback, and where somebody else could
change it or would see it change, a copy is made through bytes:
- what goes downstream, unless nothing but sinks follows, which only serialise it;
- an input value that became the aggregate as it is: other branches have it too;
- what a fold is handed where a failed one may be skipped: it may have failed half-way through.
Numbers, text and the like need no copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.entry import Entry
from state.key_value import KeyValueStore
from state.versioned import NOT_PUT, VALID_TO_UNDEFINED, VersionedStore
from streams.operators.copies import Copied, copier, for_those_after, stored_copier
from streams.operators.held import held_back
from streams.topology.nodes import Binding, Emit, Operator, StoreKind
from streams.topology.views import View

Fold = Callable[[Any, Any, Any], Any]
"""Key, value, and the aggregate so far or None -> the next aggregate."""


def aggregating(initializer: Callable[[], Any], aggregator: Callable[[Any, Any, Any], Any]) -> Fold:
    def fold(key: Any, value: Any, old: Any) -> Any:
        return aggregator(key, value, initializer() if old is None else old)

    return fold


def reducing(reducer: Callable[[Any, Any], Any]) -> Fold:
    """The first value of a key is its aggregate."""

    def fold(key: Any, value: Any, old: Any) -> Any:
        return value if old is None else reducer(old, value)

    return fold


def aggregate(view: View, fold: Fold) -> Operator:
    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        spec = view.spec
        assert spec is not None
        if spec.kind is StoreKind.VERSIONED:
            return _in_versions(at, view, fold)
        store: KeyValueStore[Any, Any] = context.store(spec.name)
        copied, emitted = copier(spec.value), for_those_after(at, spec.value)
        sends_old, caching = view.sends_old, spec.caching
        if context.skips_processing:
            advance = _beside(store, fold, copied, stored_copier(spec.value))
        else:
            advance = _in_place(store, fold, copied)
        held = held_back(at, store, view, emitted) if caching else {}
        copy = store.copy

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped += 1
                return
            try:
                # The fold may change the object that it is handed: the old value is another.
                was = copy(key) if sends_old and not caching else None
                entry = advance(key, value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            time_ms = entry.timestamp_ms
            if entry.value is None:
                entry.timestamp_ms = timestamp_ms  # a deletion has the time of its own record
            if caching:
                held.pop(entry, None)
                held[entry] = context.message
            else:
                old = None if was is None else was.value
                downstream(key, emitted(entry.value), old, time_ms, True)

        return process if spec.ttl_ms is None else in_stream_time(store, process)

    return bind


def in_stream_time(store: Any, process: Emit) -> Emit:
    """Return `process` behind a step by which each record that counts moves the stream time of
    `store`, whose aggregates expire: one that expires by a record is gone when it is taken in."""
    advance = store.advance

    def process_in_time(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is not None and value is not None:
            advance(timestamp_ms)
        process(key, value, timestamp_ms)

    return process_in_time


def _in_versions(at: Binding, view: View, fold: Fold) -> Emit:
    """Each result is a version as of its timestamp. The store holds bytes: what the fold is handed
    is its own, and what it returns anybody's."""
    context, downstream, failed = at.context, at.downstream, at.failed
    assert view.spec is not None
    store: VersionedStore[Any] = context.store(view.spec.name)
    get, put, sends_old = store.get, store.put, view.sends_old

    def process(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None or value is None:
            context.dropped += 1
            return
        try:
            found = get(key)
            was = get(key) if sends_old else None
            new = fold(key, value, None if found is None else found.value)
            if found is not None and found.timestamp_ms > timestamp_ms:
                timestamp_ms = found.timestamp_ms
            until_ms = put(key, new, timestamp_ms)
        except Exception as error:
            failed(error, key, value)
            return
        if until_ms != NOT_PUT:
            old = None if was is None else was.value
            downstream(key, new, old, timestamp_ms, until_ms == VALID_TO_UNDEFINED)

    return process


Advance = Callable[[Any, Any, int], Entry[Any, Any]]
"""Takes a record into the aggregate of its key."""


def _in_place(store: KeyValueStore[Any, Any], fold: Fold, copied: Copied) -> Advance:
    """Where a fold that fails ends the transaction: one look-up, and no copy."""
    update, check_value = store.update, store.check_value

    def advance(key: Any, value: Any, timestamp_ms: int) -> Entry[Any, Any]:
        entry = update(key)
        old = entry.value
        new = fold(key, value, old)
        check_value(new)
        entry.value = copied(new) if new is value else new
        if old is None or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry

    return advance


def _beside(
    store: KeyValueStore[Any, Any], fold: Fold, copied: Copied, copied_from_store: Copied
) -> Advance:
    """Where a fold may fail and its record be skipped: it works on a copy, and a key whose first
    record is skipped has not been written."""
    find, update, check_value = store.entry, store.update, store.check_value

    def advance(key: Any, value: Any, timestamp_ms: int) -> Entry[Any, Any]:
        held = find(key)
        old = None if held is None else held.value
        new = fold(key, value, copied_from_store(old))
        if new is value:
            new = copied(new)
        check_value(new)
        entry = update(key)
        entry.value = new
        if old is None or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry

    return advance
