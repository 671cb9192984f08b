"""Read a global table from outside of its application, or from a processor.

What copies the topic is `streams.runtime.global_tables.tables`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from state.key_value import KeyValueStore

K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyGlobalStore(Generic[K, V]):
    """Reads the copy of a global table, as Kafka Streams' ReadOnlyKeyValueStore does."""

    def __init__(self, name: str, store: KeyValueStore[K, V]) -> None:
        self._name = name
        self.get = store.get
        self.entry = store.entry
        self.range, self.reverse_range = store.range, store.reverse_range
        self.all, self.reverse_all = store.all, store.reverse_all
        self.prefix_scan = store.prefix_scan
        self.approximate_count = store.approximate_count

    def __getattr__(self, method: str) -> Any:
        raise AttributeError(
            f"{method}: {self._name!r} is a global table, which its topic alone writes; it can be "
            "asked for get, entry, range, all, prefix_scan and approximate_count"
        )
