"""Count the records of each key, and keep the count in a store.

Records without a key or without a value are not counted, as in Kafka Streams. With caching the
result of a key goes downstream once a commit, with the value it has then; without, at each record.
A result's timestamp is the largest of the records counted (KStreamAggregate).
"""

from __future__ import annotations

from typing import Any

from state.key_value import KeyValueStore
from streams.operators.aggregate import aggregate, in_stream_time
from streams.operators.copies import as_it_is
from streams.operators.held import held_back
from streams.topology.nodes import Binding, Emit, Operator, StoreKind
from streams.topology.views import View


def _one_more(key: Any, value: Any, counted: Any) -> int:
    return 1 if counted is None else counted + 1


def count(view: View) -> Operator:
    """Return the operator that counts each key's records and forwards the count."""

    def bind_operator(binding: Binding) -> Emit:
        context, downstream, failed = binding.context, binding.downstream, binding.failed
        spec = view.spec
        assert spec is not None
        if spec.kind is StoreKind.VERSIONED:
            return aggregate(view, _one_more)(binding)
        store: KeyValueStore[Any, int] = context.store(spec.name)
        update = store.update
        caching, sends_old = spec.caching, view.sends_old
        pending_results = held_back(binding, store, view, as_it_is) if caching else {}

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped += 1
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

        return process_record if spec.ttl_ms is None else in_stream_time(store, process_record)

    return bind_operator
