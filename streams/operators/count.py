"""Count the records of each key, and keep the count in a store.

Records without a key or without a value are not counted, as in Kafka Streams. With caching the
result of a key goes downstream once a commit, with the value it has then; without, at each record.
A result's timestamp is the largest of the records counted (KStreamAggregate).
"""

from __future__ import annotations

from typing import Any

from state.key_value import KeyValueStore
from streams.graph.nodes import Binding, ForwardRecord, Operator, StoreKind
from streams.graph.views import TableView
from streams.operators.aggregate import aggregate_records, wrap_with_stream_time_advance
from streams.operators.copies import return_unchanged
from streams.operators.uncommitted_results import register_emit_at_commit


def _add_one(key: Any, value: Any, count: Any) -> int:
    return 1 if count is None else count + 1


def count_records(view: TableView) -> Operator:
    """Return the operator that counts each key's records and forwards the count."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        context, downstream, failed = (
            binding.context,
            binding.downstream,
            binding.skip_record_or_raise,
        )
        spec = view.spec
        assert spec is not None
        if spec.kind is StoreKind.VERSIONED:
            return aggregate_records(view, _add_one)(binding)
        store: KeyValueStore[Any, int] = context.get_store(spec.name)
        update = store.get_entry_for_update
        caching, sends_old = spec.caching, view.sends_old_values
        pending_results = (
            register_emit_at_commit(binding, store, view, return_unchanged) if caching else {}
        )

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped_count += 1
                return
            try:
                entry = update(key)
                old = entry.value
                entry.value = 1 if old is None else old + 1
            except Exception as error:
                failed(error, key, value)
                return
            if timestamp_ms > entry.timestamp_ms:
                entry.timestamp_ms = timestamp_ms
            if caching:
                pending_results.pop(entry, None)
                pending_results[entry] = context.message
            else:
                downstream(key, entry.value, old if sends_old else None, entry.timestamp_ms, True)

        return (
            process_record
            if spec.ttl_ms is None
            else wrap_with_stream_time_advance(store, process_record)
        )

    return bind_operator
