"""Test that changelogs have, byte for byte, what Kafka Streams writes for the same operations.

The bytes below are what the stores of Kafka Streams 4.3.0 wrote to their changelogs in its own
TopologyTestDriver, for a record of timestamp 42.
"""

from __future__ import annotations

from typing import Any

import pytest

from state.memory import MemoryDisk
from state.window import WindowStore
from state.windowed import Windowed
from streams import serdes
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import open_store

HOUR_MS = 3_600_000
Golden = list[tuple[str, str | None, int]]


def opened(kind: StoreKind, **settings: Any) -> Any:
    spec = StoreSpec(name="s", key=serdes.string, value=serdes.int64, kind=kind, **settings)
    return open_store(spec, MemoryDisk(), clock=lambda: 42)


def logged(store: Any) -> Golden:
    return [
        (key.hex(), None if value is None else value.hex(), timestamp_ms)
        for key, value, timestamp_ms in store.drain_writes()
    ]


def test_key_value() -> None:
    store = opened(StoreKind.KEY_VALUE)
    store.put("k", 5, 77)
    store.put("gone", None)
    assert logged(store) == [("6b", "0000000000000005", 77), ("676f6e65", None, 42)]


def window_store(*, retain_duplicates: bool) -> WindowStore[int]:
    store: WindowStore[int] = opened(
        StoreKind.WINDOW,
        window_size_ms=60_000,
        retention_ms=HOUR_MS,
        retain_duplicates=retain_duplicates,
    )
    return store


def test_windows() -> None:
    store = window_store(retain_duplicates=False)
    store.put("k", 5, 60_000, 77)
    store.put("key-2", -1, 120_000, 78)
    store.put("k", None, 120_000)
    assert logged(store) == [
        ("6b000000000000ea6000000000", "0000000000000005", 77),
        ("6b65792d32000000000001d4c000000000", "ffffffffffffffff", 78),
        ("6b000000000001d4c000000000", None, 42),
    ]


def test_windows_with_duplicates_are_numbered_from_one() -> None:
    store = window_store(retain_duplicates=True)
    store.put("k", 1, 60_000)
    store.put("k", 2, 60_000)
    store.put("j", 3, 61_000)
    assert logged(store) == [
        ("6b000000000000ea6000000001", "0000000000000001", 42),
        ("6b000000000000ea6000000002", "0000000000000002", 42),
        ("6a000000000000ee4800000003", "0000000000000003", 42),
    ]


@pytest.mark.parametrize("removed", [False, True])
def test_sessions(removed: bool) -> None:
    store = opened(StoreKind.SESSION, retention_ms=HOUR_MS)
    store.put(Windowed("k", 10, 60_000), 9)
    if removed:
        store.remove(Windowed("k", 10, 60_000))
    store.put(Windowed("key-2", 60_000, 60_000), 1)
    assert logged(store) == [
        (
            "6b000000000000ea60000000000000000a",
            None if removed else "0000000000000009",
            42,
        ),
        ("6b65792d32000000000000ea60000000000000ea60", "0000000000000001", 42),
    ]


def test_versions() -> None:
    """Test that a version that comes too late is not logged, though Kafka Streams logs it.

    That is value 3 as of time 400 here, which the store of Kafka Streams has not kept either.
    """
    store = opened(StoreKind.VERSIONED, history_ms=1_000_000)
    returned = [
        store.put("k", 1, 100),
        store.put("k", 2, 300),
        store.put("k", None, 200),
        store.put("x", 1, 2_000_000),
        store.put("k", 3, 400),
    ]
    assert returned == [-1, -1, 300, -1, -(2**63)]
    assert logged(store) == [
        ("6b", "0000000000000001", 100),
        ("6b", "0000000000000002", 300),
        ("6b", None, 200),
        ("78", "0000000000000001", 2_000_000),
    ]
