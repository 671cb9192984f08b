"""Count: how many records each key has, kept in a store.

Records without a key or without a value are not counted, as in Kafka Streams. With caching the
result of a key goes downstream once a commit, with the value it has then; without, at each record.
A result's timestamp is the largest of the records counted (KStreamAggregate).
"""

from __future__ import annotations

from typing import Any

from state.key_value import KeyValueStore
from streams.topology.nodes import Binding, Emit, Operator


def count(store_name: str, *, caching: bool) -> Operator:
    def bind(at: Binding) -> Emit:
        context, downstream, failed = at.context, at.downstream, at.failed
        store: KeyValueStore[Any, int] = context.store(store_name)
        update = store.update

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if key is None or value is None:
                context.dropped += 1
                return
            try:
                entry = update(key)
            except Exception as error:
                failed(error, key, value)
                return
            entry.value = 1 if entry.value is None else entry.value + 1
            if timestamp_ms > entry.timestamp_ms:
                entry.timestamp_ms = timestamp_ms
            if not caching:
                downstream(key, entry.value, entry.timestamp_ms)

        def flush() -> None:
            for entry in store.dirty():
                downstream(entry.key, entry.value, entry.timestamp_ms)

        if caching:
            context.flushers.append(flush)
        return process

    return bind
