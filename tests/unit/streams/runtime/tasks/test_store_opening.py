"""Test that a store of any kind is opened from its declaration."""

from __future__ import annotations

from typing import Any

from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.session import SessionStore
from state.store_checkpoint import StoreCheckpoint
from state.versioned import NOT_PUT, VALID_TO_UNDEFINED, VersionedRecord, VersionedStore
from state.window import WindowStore
from state.windowed import Windowed
from streams import serdes
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import open_store


def opened(kind: StoreKind, **settings: Any) -> Any:
    spec = StoreSpec(name="s", key=serdes.string, value=serdes.int64, kind=kind, **settings)
    return open_store(spec, MemoryDisk(), clock=lambda: 42)


def test_a_key_value_store_takes_the_time_of_the_record_being_processed() -> None:
    store = opened(StoreKind.KEY_VALUE)
    assert isinstance(store, KeyValueStore)
    store.put("a", 1)
    assert store.drain_writes() == [(b"a", (1).to_bytes(8, "big"), 42)]


def test_a_window_store_has_the_window_size_and_the_retention() -> None:
    store = opened(StoreKind.WINDOW, window_size_ms=10, retention_ms=100)
    assert isinstance(store, WindowStore)
    for start in (0, 50, 100):
        store.put("a", start, start)
    assert list(store.all()) == [(Windowed("a", 50, 60), 50), (Windowed("a", 100, 110), 100)]
    assert list(store.fetch("a", 0, 100)) == [(50, 50), (100, 100)]
    assert list(store.backward_fetch("a", 60, 200)) == [(100, 100)]
    assert store.fetch("a", 50) == 50


def test_a_session_store_finds_what_a_record_would_join() -> None:
    store = opened(StoreKind.SESSION, retention_ms=1_000)
    assert isinstance(store, SessionStore)
    store.put(Windowed("a", 0, 10), 1)
    store.put(Windowed("a", 50, 60), 2)
    store.drain_writes()
    store.commit(StoreCheckpoint(2, "t"))
    assert list(store.find_sessions("a", 15, 70)) == [(Windowed("a", 50, 60), 2)]
    store.remove(Windowed("a", 50, 60))
    assert list(store.fetch("a")) == [(Windowed("a", 0, 10), 1)]


def test_a_versioned_store_knows_what_was_valid_when() -> None:
    store = opened(StoreKind.VERSIONED, history_ms=100)
    assert isinstance(store, VersionedStore)
    assert store.put("a", 1, 100) == VALID_TO_UNDEFINED
    assert store.put("a", 2, 150) == VALID_TO_UNDEFINED
    assert store.put("a", 9, 120) == 150
    assert store.put("a", 9, 49) == NOT_PUT
    assert store.get("a", 130) == VersionedRecord(9, 120, 150)
    assert store.get("a") == VersionedRecord(2, 150, None)
