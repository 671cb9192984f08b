"""Test that windows and sessions that are also stored by time are found in its order.

This holds after commits, rollbacks, crashes and restores too.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from state.keys import BY_TIME, TIME_MAX
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.window import WindowStore
from state.windowed import Windowed
from state.write_behind import WriteBehindDisk

CODECS = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)
MINUTE_MS = 60_000


def sessions(disk: StoreDisk, retention_ms: int = 100 * MINUTE_MS) -> SessionStore[str]:
    return SessionStore("s", disk, CODECS, WindowSettings(retention_ms, by_time=True))


def windows(disk: StoreDisk, retention_ms: int = 100 * MINUTE_MS) -> WindowStore[str]:
    return WindowStore(
        "w", disk, CODECS, WindowSettings(retention_ms, window_size_ms=5, by_time=True)
    )


def commit(store: Any) -> list[Any]:
    drained: list[Any] = store.drain_writes()
    store.commit(StoreCheckpoint(1, "t"))
    return drained


def test_sessions_come_by_their_end_then_their_start_then_their_key() -> None:
    store = sessions(MemoryDisk())
    for key, start_ms, end_ms in (("b", 3, 9), ("a", 3, 9), ("c", 1, 9), ("d", 7, 7), ("e", 0, 12)):
        store.put(Windowed(key, start_ms, end_ms), key, 0)
    found = [each.key for each, _, _ in store.iterate_entries_in_time_order(0, 11)]
    assert found == ["d", "c", "a", "b"]


def test_windows_come_by_their_start_then_their_key_with_their_timestamp() -> None:
    store = windows(MemoryDisk())
    for key, start_ms in (("b", 3), ("a", 3), ("c", 1)):
        store.put(key, key, start_ms, 40 + start_ms)
    assert list(store.iterate_entries_in_time_order(0, 3)) == [
        (Windowed("c", 1, 6), "c", 41),
        (Windowed("a", 3, 8), "a", 43),
        (Windowed("b", 3, 8), "b", 43),
    ]


def test_the_first_time_from_one_on_is_told() -> None:
    store = sessions(MemoryDisk())
    assert store.find_first_entry_time(0) == TIME_MAX
    store.put(Windowed("k", 1, 9), "v", 0)
    commit(store)
    store.put(Windowed("k", 20, 25), "v", 0)
    assert [store.find_first_entry_time(ms) for ms in (0, 9, 10, 26)] == [9, 9, 25, TIME_MAX]


def test_what_is_removed_goes_from_the_order_of_time_as_well() -> None:
    disk = MemoryDisk()
    store = sessions(disk)
    store.put(Windowed("k", 1, 9), "v", 0)
    commit(store)
    store.remove(Windowed("k", 1, 9), 0)
    commit(store)
    assert disk.approximate_count() == 0


def test_what_has_expired_goes_from_the_order_of_time_as_well() -> None:
    disk = MemoryDisk()
    store = sessions(disk, retention_ms=2 * MINUTE_MS)
    for minute in range(20):
        store.put(Windowed("k", minute * MINUTE_MS, minute * MINUTE_MS), "v", 0)
        commit(store)
    assert disk.approximate_count() <= 2 * 3
    assert len(list(disk.range(BY_TIME, None))) <= 3


def test_a_store_that_was_not_kept_by_time_is_caught_up_from_its_changelog() -> None:
    disk = MemoryDisk()
    plain = SessionStore[str]("s", disk, CODECS, WindowSettings(100 * MINUTE_MS))
    plain.put(Windowed("k", 1, 2), "v", 0)
    drained = commit(plain)
    store = sessions(disk)
    assert "now sessions in segments of" in store.rebuild_reason
    store.clear_all_data()
    assert store.read_checkpoint() is None
    store.replay_changelog(drained, StoreCheckpoint(1, "t"))
    assert [each for each, _, _ in store.iterate_entries_in_time_order(0, 5)] == [
        Windowed("k", 1, 2)
    ]


@pytest.mark.parametrize("make", [sessions, windows], ids=["sessions", "windows"])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_as_if_all_had_been_sorted(make: Any, seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    disk: StoreDisk = MemoryDisk() if seed % 2 else RocksDisk(tmp_path / "db", store_name="s")
    if seed % 3 == 0:
        disk = WriteBehindDisk(disk, monotonic_s=count(0, 0.3).__next__)
    store = make(disk)
    model: dict[Windowed[str], str] = {}
    committed = dict(model)
    for step in range(300):
        match rng.choice(["put", "put", "put", "remove", "commit", "rollback", "ask", "reload"]):
            case "put" | "remove" as action:
                start_ms = rng.randrange(50)
                length_ms = 5 if make is windows else rng.randrange(4)
                window = Windowed(rng.choice(["a", "b", "ab"]), start_ms, start_ms + length_ms)
                value = str(step) if action == "put" else None
                if make is sessions and step % 2:
                    store.put(window, value, step)
                else:
                    entry = store.get_entry_for_update(
                        *((window.key, start_ms) if make is windows else (window,))
                    )
                    entry.value, entry.timestamp_ms = value, step
                if value is None:
                    model.pop(window, None)
                else:
                    model[window] = value
            case "commit":
                commit(store)
                committed = dict(model)
            case "rollback":
                store.rollback_transaction()
                model = dict(committed)
            case "reload":
                store.rollback_transaction()
                model = dict(committed)
                store = make(disk)
            case "ask":
                from_ms = rng.randrange(50)
                to_ms = from_ms + rng.randrange(20)

                def place(window: Windowed[str]) -> tuple[int, ...]:
                    if make is windows:
                        return (window.start_ms,)
                    return window.end_ms, window.start_ms

                wanted = sorted(
                    (window for window in model if from_ms <= place(window)[0] <= to_ms),
                    key=lambda window: (place(window), window.key),
                )
                found = [
                    (each, value)
                    for each, value, _ in store.iterate_entries_in_time_order(from_ms, to_ms)
                ]
                assert found == [(each, model[each]) for each in wanted], f"{seed=} {step=}"
    disk.close()
