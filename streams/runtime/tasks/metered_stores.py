"""Measure the operations of stores: Kafka Streams' MeteredKeyValueStore and the like.

Iterators are followed in any case. The rest is counted for the recording level `debug` alone. The
look-up of an entry that a step goes on to change is a read and a write, as Kafka Streams makes it.
"""

from __future__ import annotations

from collections.abc import Callable

from state.buffer import BufferStore
from state.store import StateStore
from streams.common.host import Clocks
from streams.common.timings import Timing
from streams.graph.nodes import StoreKind
from streams.runtime.tasks.metered_calls import MeteredCalls, OpenIterators

_WINDOW_READS = (
    *("fetch", "backward_fetch", "fetch_range", "backward_fetch_range", "entry", "entries"),
    *("fetch_all", "backward_fetch_all", "all", "backward_all", "all_entries", "find_values"),
)
_SESSION_READS = (
    *("fetch", "backward_fetch", "fetch_range", "backward_fetch_range", "entry", "fetch_session"),
    *("find_sessions", "backward_find_sessions", "find_sessions_to_merge", "find_ended", "all"),
)
_METHODS: dict[StoreKind, dict[str, tuple[str, ...]]] = {
    StoreKind.KEY_VALUE: {
        "get": ("get", "entry", "copy_entry", "get_entry_for_update"),
        "put": ("put", "get_entry_for_update"),
        "put-if-absent": ("put_if_absent",),
        "delete": ("delete",),
        "range": ("range", "reverse_range"),
        "prefix-scan": ("prefix_scan",),
        "all": ("all", "reverse_all"),
    },
    StoreKind.WINDOW: {
        "put": ("put", "get_entry_for_update"),
        "fetch": (*_WINDOW_READS, "get_entry_for_update"),
    },
    StoreKind.SESSION: {
        "put": ("put", "get_entry_for_update", "get_merged_entry_for_update"),
        "remove": ("remove", "remove_merged_session"),
        "fetch": _SESSION_READS,
    },
    StoreKind.VERSIONED: {"get": ("get",), "put": ("put",), "delete": ("delete",)},
    StoreKind.BUFFER: {},
}
"""By kind of store the operations of Kafka Streams, and which methods of ours are one."""
_ALWAYS_TIMED = {
    "flush": ("drain_writes",),
    "commit": ("commit",),
    "restore": ("replay_changelog",),
}
_ITERATOR_METHODS = (
    *("range", "reverse_range", "all", "reverse_all", "prefix_scan", "backward_all"),
    *("fetch", "backward_fetch", "fetch_range", "backward_fetch_range"),
    *("fetch_all", "backward_fetch_all", "find_sessions", "backward_find_sessions"),
)


class StoreMeter:
    """Measures one store: `timings` by operation, and the iterators that are open.

    Of a suppression's buffer it observes how many records and bytes it has.
    """

    def __init__(self, store: StateStore, clocks: Clocks) -> None:
        self._monotonic_s = clocks.monotonic_s
        self._buffer = store if isinstance(store, BufferStore) else None
        self.iterators = OpenIterators(clocks.monotonic_s, clocks.now_ms)
        self.timings: dict[str, Timing] = {}
        self.buffered_records = Timing(clocks.monotonic_s)
        self.buffered_bytes = Timing(clocks.monotonic_s)
        self._calls: list[MeteredCalls] = []

    def meter_operations(self, store: StateStore, kind: StoreKind) -> None:
        """Let a store count and time the calls of the methods that are operations."""
        operations_by_method: dict[str, list[str]] = {}
        for operation, methods in {**_METHODS[kind], **_ALWAYS_TIMED}.items():
            self.timings[operation] = Timing(self._monotonic_s)
            for method in methods:
                operations_by_method.setdefault(method, []).append(operation)
        for method, operations in operations_by_method.items():
            calls = MeteredCalls([self.timings[o] for o in operations], self._monotonic_s)
            self._calls.append(calls)
            is_rare = _ALWAYS_TIMED.keys() >= set(operations)
            _replace_method(
                store, method, calls.wrap_to_time_calls if is_rare else calls.wrap_to_count_calls
            )

    def add_calls_to_timings(self) -> None:
        """Add the calls since the last time to the timings."""
        for calls in self._calls:
            calls.add_to_timings()

    def observe_buffer(self) -> None:
        """Record how many bytes and keys a suppression's buffer holds now."""
        if self._buffer is not None:
            now_s = self._monotonic_s()
            self.buffered_records.observe(self._buffer.record_count, now_s)
            self.buffered_bytes.observe(self._buffer.size_bytes, now_s)


def meter_store(store: StateStore, kind: StoreKind, clocks: Clocks, *, details: bool) -> StoreMeter:
    """Let a store count the calls of its methods; with `details` all, else iterators alone."""
    meter = StoreMeter(store, clocks)
    if details:
        meter.meter_operations(store, kind)
    if kind is not StoreKind.BUFFER:
        for method in _ITERATOR_METHODS:
            _replace_method(store, method, meter.iterators.wrap_call_to_track_iterator)
    return meter


def _replace_method(
    store: StateStore, name: str, meter: Callable[[Callable[..., object]], Callable[..., object]]
) -> None:
    """Replace a method, if the store has it, by a function that measures and calls it."""
    if (method := getattr(store, name, None)) is not None:
        setattr(store, name, meter(method))
