"""Give a processor the store of a table that is restored from the table's own topic: to read only.

Such a store has no changelog (`reuse.ktable.source.topics`), so whatever a processor wrote to it
would be gone after a restore, without a word, as in Kafka Streams. Here the write is refused.
"""

from __future__ import annotations

from typing import Any

from streams.errors import StreamsError

_READING_METHODS = (
    "all",
    "approximate_count",
    "entry",
    "get",
    "prefix_scan",
    "range",
    "reverse_all",
    "reverse_range",
)


class ReadOnlyTableStore:
    """Has the reading methods of `store`; any other raises StreamsError with the way out.

    `step` is that of the processor, `name` that of the store, which `topic` restores.
    """

    def __init__(self, store: Any, *, step: str, name: str, topic: str) -> None:
        self._store = store
        self._step, self._name, self._topic = step, name, topic
        for method in _READING_METHODS:
            if hasattr(store, method):
                setattr(self, method, getattr(store, method))  # no look-up for each record

    @property
    def stream_time_ms(self) -> int:
        """Return the largest timestamp of the store's records, as versioned stores have it."""
        time_ms: int = self._store.stream_time_ms
        return time_ms

    def __getattr__(self, method: str) -> Any:
        """Refuse a method that is not a reading one of the store."""
        if method.startswith("_"):  # as a copy is made
            raise AttributeError(method)
        raise StreamsError(
            f"step {self._step!r} calls {method}() of store {self._name!r}, which it may only "
            f"read: it is restored from topic {self._topic!r} (reuse.ktable.source.topics, or "
            "add_read_only_store), and what is written to it would be lost. Write to a store of "
            f"your own (app.add_store), or to topic {self._topic!r}; or take "
            "reuse.ktable.source.topics out of topology_optimization, which gives a table a "
            "changelog"
        )
