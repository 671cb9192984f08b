"""Fold each key's records into one value, kept in a store (`aggregate`, `reduce`).

Records without a key or without a value are dropped, and a fold that returns None deletes the key,
as in Kafka Streams (KStreamAggregate, KStreamReduce). With caching the result of a key goes
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

from state.entry import StoreEntry
from state.key_value import KeyValueStore
from state.versioned import NOT_PUT, VALID_TO_UNDEFINED, VersionedStore
from streams.graph.nodes import Binding, ForwardRecord, Operator, StoreKind
from streams.graph.views import TableView
from streams.operators.copies import (
    CopyFunction,
    create_copier,
    create_downstream_copier,
    create_stored_copier,
)
from streams.operators.uncommitted_results import register_emit_at_commit

AggregateFold = Callable[[Any, Any, Any], Any]
"""Takes key, value, and the aggregate so far or None; returns the next aggregate."""


def create_aggregate_fold(
    initializer: Callable[[], Any], aggregator: Callable[[Any, Any, Any], Any]
) -> AggregateFold:
    """Return a fold that calls `aggregator`, at first with the initializer's value."""

    def aggregate_value(key: Any, value: Any, aggregate: Any) -> Any:
        return aggregator(key, value, initializer() if aggregate is None else aggregate)

    return aggregate_value


def create_reduce_fold(reducer: Callable[[Any, Any], Any]) -> AggregateFold:
    """Return a fold that calls `reducer`; the first value of a key is its aggregate."""

    def reduce_value(key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is None else reducer(aggregate, value)

    return reduce_value


def aggregate_records(view: TableView, fold: AggregateFold) -> Operator:
    """Return the operator that folds each record by key and forwards the key's new aggregate."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        spec = view.spec
        assert spec is not None
        if spec.kind is StoreKind.VERSIONED:
            return _create_version_aggregator(binding, view, fold)
        store: KeyValueStore[Any, Any] = context.get_store(spec.name)
        copied, emitted = create_copier(spec.value), create_downstream_copier(binding, spec.value)
        sends_old, caching = view.sends_old_values, spec.caching
        if context.skips_processing:
            advance = _create_copying_fold(store, fold, copied, create_stored_copier(spec.value))
        else:
            advance = _create_in_place_fold(store, fold, copied)
        pending_results = register_emit_at_commit(binding, store, view, emitted) if caching else {}
        copy = store.copy_entry

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped_count += 1
                return
            try:
                # The fold may change the object that it is handed: the old value is a copy.
                previous = copy(key) if sends_old and not caching else None
                entry = advance(key, value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)
                return
            time_ms = entry.timestamp_ms
            if entry.value is None:
                entry.timestamp_ms = timestamp_ms  # a deletion has the time of its own record
            if caching:
                pending_results.pop(entry, None)
                pending_results[entry] = context.message
            else:
                old = None if previous is None else previous.value
                downstream(key, emitted(entry.value), old, time_ms, True)

        return (
            process_record
            if spec.ttl_ms is None
            else wrap_with_stream_time_advance(store, process_record)
        )

    return bind_operator


def wrap_with_stream_time_advance(store: Any, process_record: ForwardRecord) -> ForwardRecord:
    """Return a function that advances the store's stream time, then calls `process_record`.

    The store's aggregates expire: one that expires by a record is gone when the record is folded.
    """
    advance = store.advance_stream_time

    def process_in_time(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is not None and value is not None:
            advance(timestamp_ms)
        process_record(key, value, timestamp_ms)

    return process_in_time


def _create_version_aggregator(
    binding: Binding, view: TableView, fold: AggregateFold
) -> ForwardRecord:
    """Return a function that folds each record and writes the result to a versioned store.

    The store holds bytes: the fold is handed an object of its own, and the result needs no copy.
    """
    context, downstream, failed = binding.context, binding.downstream, binding.skip_record_or_raise
    assert view.spec is not None
    store: VersionedStore[Any] = context.get_store(view.spec.name)
    get, put, sends_old = store.get, store.put, view.sends_old_values

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None or value is None:
            context.dropped_count += 1
            return
        try:
            found = get(key)
            previous = get(key) if sends_old else None
            new = fold(key, value, None if found is None else found.value)
            if found is not None and found.timestamp_ms > timestamp_ms:
                timestamp_ms = found.timestamp_ms
            until_ms = put(key, new, timestamp_ms)
        except Exception as error:
            failed(error, key, value)
            return
        if until_ms != NOT_PUT:
            old = None if previous is None else previous.value
            downstream(key, new, old, timestamp_ms, until_ms == VALID_TO_UNDEFINED)

    return process_record


FoldIntoEntry = Callable[[Any, Any, int], StoreEntry[Any, Any]]
"""Folds key, value and timestamp in ms into the key's entry and returns the entry."""


def _create_in_place_fold(
    store: KeyValueStore[Any, Any], fold: AggregateFold, copy_value: CopyFunction
) -> FoldIntoEntry:
    """Return a function that folds a record into its key's entry in place.

    It needs one look-up and no copy. It is used where a fold that fails ends the transaction.
    """
    update, check_value = store.get_entry_for_update, store.check_value

    def fold_in_place(key: Any, value: Any, timestamp_ms: int) -> StoreEntry[Any, Any]:
        entry = update(key)
        old = entry.value
        new = fold(key, value, old)
        check_value(new)
        entry.value = copy_value(new) if new is value else new
        if old is None or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry

    return fold_in_place


def _create_copying_fold(
    store: KeyValueStore[Any, Any],
    fold: AggregateFold,
    copy_value: CopyFunction,
    copy_stored_value: CopyFunction,
) -> FoldIntoEntry:
    """Return a function that folds a record into a copy of its key's aggregate, then writes it.

    It is used where a fold may fail and its record be skipped: a key whose first record is skipped
    is not written.
    """
    find, update, check_value = store.entry, store.get_entry_for_update, store.check_value

    def fold_into_copy(key: Any, value: Any, timestamp_ms: int) -> StoreEntry[Any, Any]:
        stored = find(key)
        old = None if stored is None else stored.value
        new = fold(key, value, copy_stored_value(old))
        if new is value:
            new = copy_value(new)
        check_value(new)
        entry = update(key)
        entry.value = new
        if old is None or timestamp_ms > entry.timestamp_ms:
            entry.timestamp_ms = timestamp_ms
        return entry

    return fold_into_copy
