"""Test that ranges merge overlay and disk, both ways, even while the overlay is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.overlay import SortedOverlayKeys
from state.rocksdb import RocksDisk
from state.segmented import WindowSettings
from state.state_serdes import StoreCodecs
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.window import WindowStore
from state.window_duplicates import DuplicatesWindowStore

Store = KeyValueStore[str, str]


@pytest.fixture(params=["memory", "rocksdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    disk: StoreDisk = MemoryDisk() if request.param == "memory" else RocksDisk(tmp_path / "db")
    store: Store = KeyValueStore(
        "s", disk, StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode), clock=lambda: 1
    )
    for name in "bdfh":
        store.put(name, "disk")
    commit(store)
    yield store
    store.close()


def commit(store: Store) -> None:
    store.drain_writes()
    store.commit(StoreCheckpoint(1, "t"))


def keys(found: Iterator[tuple[str, str]]) -> str:
    return "".join(key for key, _ in found)


def test_what_the_transaction_wrote_and_deleted_is_seen_in_both_directions(store: Store) -> None:
    store.put("a", "new")
    store.put("d", "new")
    store.put("z", "new")
    store.delete("f")
    store.put("h", "new")
    store.delete("h")
    expected = [("a", "new"), ("b", "disk"), ("d", "new"), ("z", "new")]
    assert list(store.all()) == expected
    assert list(store.reverse_all()) == expected[::-1]


def test_a_range_includes_both_ends_and_a_bound_may_be_left_out(store: Store) -> None:
    assert keys(store.range("b", "f")) == "bdf"
    assert keys(store.range("c", None)) == "dfh"
    assert keys(store.range(None, "d")) == "bd"
    assert keys(store.reverse_range("c", "h")) == "hfd"
    assert keys(store.range("h", "b")) == ""


@pytest.mark.parametrize("prefix", ["d", b"d"])
def test_a_prefix_is_a_key_or_bytes(store: Store, prefix: str | bytes) -> None:
    store.put("da", "new")
    assert keys(store.prefix_scan(prefix)) == "dda"
    assert keys(store.prefix_scan(100, lambda letter: b"%c" % letter)) == "dda"


def test_a_range_may_write_what_it_meets(store: Store) -> None:
    for key, value in store.all():
        store.put(key, value + "!")
        store.put(key + "x", "new")
        store.delete("h")
    assert keys(store.all()) == "bbxddxffx"
    assert store.get("b") == "disk!"


def test_a_range_sees_the_keys_of_its_beginning_with_the_values_they_have(store: Store) -> None:
    found = store.all()
    assert next(found) == ("b", "disk")
    store.put("c", "new")
    store.put("d", "changed")
    store.delete("f")
    assert list(found) == [("d", "changed"), ("h", "disk")]


def test_a_range_that_outlives_its_transaction_is_refused(store: Store) -> None:
    store.put("a", "new")
    found = store.all()
    next(found)
    commit(store)
    with pytest.raises(RuntimeError, match="range outlived its transaction"):
        list(found)


def test_the_order_of_an_overlay_takes_in_only_what_is_new() -> None:
    class Key(bytes):
        compared = 0

        def __lt__(self, other: bytes) -> bool:
            Key.compared += 1
            return bytes(self) < bytes(other)

    overlay: dict[bytes, int] = {Key(b"%05d" % n): 0 for n in range(0, 10_000, 2)}
    order = SortedOverlayKeys(overlay)
    order.keys_between(None, None)
    Key.compared = 0
    for number in (5, 777, 4_001):
        overlay[Key(b"%05d" % number)] = 0
        assert order.keys_between(b"%05d" % number, b"%05d" % (number + 1)) == [b"%05d" % number]
    assert Key.compared < 200


def test_the_count_is_about_that_of_the_keys(store: Store) -> None:
    assert store.approximate_count() == 4
    store.put("new", "1")
    store.delete("b")
    assert store.approximate_count() == 4


def test_a_store_outside_of_a_task_asks_for_the_time() -> None:
    store: Store = KeyValueStore(
        "s", MemoryDisk(), StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)
    )
    with pytest.raises(RuntimeError, match=re.escape("give timestamp_ms")):
        store.put("a", "1")
    store.put("a", "1", 5)
    assert store.drain_writes() == [(b"a", b"1", 5)]


def window_store(
    disk: MemoryDisk | None = None, *, retain_duplicates: bool = False
) -> WindowStore[bytes]:
    kind = DuplicatesWindowStore if retain_duplicates else WindowStore
    return kind(
        "w",
        disk or MemoryDisk(),
        StoreCodecs(bytes, bytes, bytes, bytes),
        WindowSettings(3_600_000, window_size_ms=10),
        clock=lambda: 1,
    )


def test_a_range_of_keys_has_a_window_whose_bytes_sort_after_a_longer_key() -> None:
    store = window_store()
    store.put(b"a", b"v", 60_000)
    found = store.fetch_range(None, b"a" + bytes(8), 0, 60_000)
    assert [window.key for window, _ in found] == [b"a"]


def test_duplicates_that_come_after_a_rollback_are_numbered_as_if_it_had_not_been() -> None:
    """Test that a rollback takes back the numbers of duplicates.

    Otherwise a number would be above the changelog's position, and be assigned again after a
    restart.
    """
    disk = MemoryDisk()
    store = window_store(disk, retain_duplicates=True)
    for _ in range(3):
        store.put(b"a", b"rolled back", 0)
    store.rollback_transaction()
    for value in (b"1", b"2"):
        store.put(b"a", value, 0)
    store.drain_writes()
    store.commit(StoreCheckpoint(2, "t"))
    restarted = window_store(disk, retain_duplicates=True)
    for value in (b"3", b"4", b"5"):
        restarted.put(b"a", value, 0)
    found = [value for _, value in restarted.fetch(b"a", 0, 0)]
    assert found == [b"1", b"2", b"3", b"4", b"5"]


def test_duplicates_that_come_after_a_replay_replace_none() -> None:
    store = window_store(retain_duplicates=True)
    for value in (b"1", b"2"):
        store.put(b"a", value, 0)
    drained = store.drain_writes()
    again = window_store(retain_duplicates=True)
    again.replay_changelog(drained, StoreCheckpoint(2, "t"))
    again.put(b"a", b"3", 0)
    assert list(again.fetch(b"a", 0, 0)) == [(0, b"1"), (0, b"2"), (0, b"3")]


@pytest.mark.parametrize("topic_id", ["", "t"], ids=["no changelog", "a changelog"])
def test_duplicates_that_come_after_a_restart_replace_none(topic_id: str) -> None:
    disk = MemoryDisk()
    for position, value in enumerate((b"1", b"2", b"3"), start=1):
        store = window_store(retain_duplicates=True, disk=disk)
        store.put(b"a", value, 0)
        store.drain_writes()
        store.commit(StoreCheckpoint(position if topic_id else 0, topic_id))
    store = window_store(retain_duplicates=True, disk=disk)
    assert list(store.fetch(b"a", 0, 0)) == [(0, b"1"), (0, b"2"), (0, b"3")]
