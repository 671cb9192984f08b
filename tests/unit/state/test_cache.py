"""Test that the cache holds only committed values, within one budget for several stores."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any

import orjson
import pytest

from state.cache import ObjectCache, StoreCache, estimate_entry_bytes
from state.entry import StoreEntry, is_immutable
from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint

Store = KeyValueStore[str, Any]


class CountingDisk(MemoryDisk):
    """Counts the look-ups in a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0

    def get(self, key: bytes) -> bytes | None:
        self.gets += 1
        return super().get(key)


def store_on(disk: MemoryDisk, cache: ObjectCache) -> Store:
    codecs = StoreCodecs(str.encode, bytes.decode, orjson.dumps, orjson.loads)
    return KeyValueStore("s", disk, codecs, cache=cache, clock=lambda: 1)


def commit(*stores: Store) -> None:
    for store in stores:
        store.drain_writes()
        store.commit(StoreCheckpoint(1, "t"))


def fill(store: Store, names: Iterable[str]) -> None:
    for name in names:
        store.put(name, 1)
    commit(store)


def test_what_was_committed_is_found_without_the_disk() -> None:
    disk = CountingDisk()
    store = store_on(disk, ObjectCache(10_000))
    store.put("a", 1)
    store.put("b", [1])
    commit(store)
    assert (store.get("a"), store.get("b"), store.get_entry_for_update("b").value) == (1, [1], [1])
    assert disk.gets == 0


def test_what_was_read_is_found_without_the_disk_the_next_time() -> None:
    disk = CountingDisk()
    fill(store_on(disk, ObjectCache(0)), "ab")
    store = store_on(disk, ObjectCache(10_000))
    for _ in range(3):
        assert store.get("a") == 1
    assert disk.gets == 1


@pytest.mark.parametrize("outcome", [commit, Store.rollback_transaction])
def test_an_object_that_a_reader_changed_is_not_met_again(
    outcome: Callable[[Store], object],
) -> None:
    store = store_on(MemoryDisk(), ObjectCache(10_000))
    store.put("a", [1])
    commit(store)
    for _ in range(2):
        read = store.get("a")
        assert read == [1]
        read.append(2)
        assert store.get("a") == [1]
        outcome(store)
        assert store.get("a") == [1]


def test_a_rolled_back_object_is_not_met_again() -> None:
    store = store_on(MemoryDisk(), ObjectCache(10_000))
    for value in ([1], 1):
        store.put("a", value)
        commit(store)
        entry = store.get_entry_for_update("a")
        entry.value = "changed"
        entry.timestamp_ms = 9
        store.drain_writes()
        store.rollback_transaction()
        found = store.entry("a")
        assert found is not None
        assert (found.value, found.timestamp_ms) == (value, 1)
        assert store.get_entry_for_update("a").value == value
        store.rollback_transaction()


def test_an_object_that_user_code_keeps_and_changes_after_the_commit_changes_no_store() -> None:
    cache = ObjectCache(10_000)
    one, other = store_on(MemoryDisk(), cache), store_on(MemoryDisk(), cache)
    shared = {"n": 1}
    one.put("a", shared)
    other.put("a", shared)
    commit(one, other)
    value: Any = one.get_entry_for_update("a").value
    value["n"] = 2
    shared["n"] = 3
    assert other.get_entry_for_update("a").value == {"n": 1}


def test_the_value_before_is_decoded_from_bytes_whatever_became_of_the_object() -> None:
    disk = CountingDisk()
    store = store_on(disk, ObjectCache(10_000))
    store.put("a", [1])
    store.put("b", 5)
    commit(store)
    entry = store.get_entry_for_update("a")
    value: Any = entry.value
    value.append(2)
    assert store.read_committed_value(entry) == [1]
    store.put("b", 6)
    store.put("c", 7)
    before = {
        entry.key: store.read_committed_value(entry) for entry in store.list_written_entries()
    }
    assert before == {"a": [1], "b": 5, "c": None}


def test_the_budget_holds_for_all_stores_and_what_was_used_longest_ago_goes_first() -> None:
    cache = ObjectCache(4 * 400)
    one, other = store_on(MemoryDisk(), cache), store_on(MemoryDisk(), cache)
    fill(one, "ab")
    fill(other, "cd")
    one.get_entry_for_update("a").value = 2
    commit(one)
    fill(other, "ef")
    held = {key for store in (one, other) for key in store._cached.entries}
    assert held == {b"a", b"d", b"e", b"f"}
    assert 0 < cache.used_bytes <= 4 * 400
    assert {key: one.get(key) for key in "ab"} == {"a": 2, "b": 1}


class Emptied(StoreEntry[Any, Any]):
    """Stands in for an entry whose store a restore on another thread evicts during a look at it."""

    share: StoreCache

    @property
    def used(self) -> int:
        self.share.evict_all()
        return 0

    @used.setter
    def used(self, commit: int) -> None: ...


def test_a_share_may_be_emptied_by_a_restore_while_another_store_makes_room() -> None:
    cache = ObjectCache(10_000)
    restored, running = cache.add_store_cache(), store_on(MemoryDisk(), cache)
    entry = Emptied("k", "v", 1, b"12345678v")
    entry.share = restored
    restored.entries[b"k"], restored.bytes = entry, estimate_entry_bytes(b"k", b"12345678v")
    fill(running, [f"key {number}" for number in range(100)])
    assert (restored.entries, restored.bytes) == ({}, 0)
    assert 5_000 < cache.used_bytes <= 10_000


def test_what_is_being_written_still_counts_when_all_else_of_a_store_has_gone() -> None:
    cache = ObjectCache(10_000)
    writing, reading = store_on(MemoryDisk(), cache), store_on(MemoryDisk(), cache)
    fill(writing, "abcdefghijklmnopqrst")
    for name in "abcdefghijklmnopqrs":
        writing.put(name, 2)
    fill(reading, "abcdefghijklmnopqrst")
    commit(writing)
    cached = [*cache._store_caches[0].entries.items(), *cache._store_caches[1].entries.items()]
    assert cache.used_bytes == sum(
        estimate_entry_bytes(key, entry.stored or b"") for key, entry in cached
    )


def test_reading_keeps_an_entry_from_going() -> None:
    cache = ObjectCache(3 * 400)
    store = store_on(MemoryDisk(), cache)
    for name in "abc":
        fill(store, name)
    store.get("a")
    fill(store, "d")
    assert set(store._cached.entries) == {b"a", b"c", b"d"}


def test_reads_evict_when_they_have_added_a_share_of_the_budget() -> None:
    cache = ObjectCache(32 * 400)
    store = store_on(MemoryDisk(), cache)
    names = [f"key {number:03}" for number in range(200)]
    fill(store, names)
    used = [0]
    for name in names:
        assert store.get(name) is not None
        used.append(cache.used_bytes)
    assert max(used) <= 32 * 400 + 400 + 2 * 400
    assert any(later < before for before, later in pairwise(used))


def test_what_the_budget_counts_stays_right_through_updates_deletions_and_rollbacks() -> None:
    cache = ObjectCache(1_000_000)
    store = store_on(MemoryDisk(), cache)
    for round_ in range(4):
        for number in range(20):
            store.get_entry_for_update(f"{number}").value = "x" * (number * round_)
        store.delete(f"{round_}")
        if round_ % 2:
            commit(store)
        else:
            store.drain_writes()
            store.rollback_transaction()
        counted = cache.used_bytes
        store._cached.recount_bytes()
        assert cache.used_bytes == counted
    store.close()
    assert cache.used_bytes == 0


def test_nothing_is_kept_without_a_budget() -> None:
    disk = CountingDisk()
    store = store_on(disk, ObjectCache(0))
    fill(store, "a")
    assert (store.get("a"), store.get("a"), disk.gets) == (1, 1, 2)


@dataclass(frozen=True)
class Frozen:
    parts: tuple[int, ...]
    more: Any = None


@dataclass
class Plain:
    parts: list[int] = field(default_factory=list)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        ("a", True),
        ((1, ("b", None)), True),
        (Frozen((1, 2)), True),
        (Frozen((1, 2), more=[]), False),
        ((1, []), False),
        ([], False),
        ({}, False),
        (Plain(), False),
        (bytearray(), False),
    ],
)
def test_only_what_nobody_can_change_counts_as_immutable(value: object, expected: bool) -> None:
    assert is_immutable(value) is expected


class ObservedKey(bytes):
    """Represents a key that calls `on_measured` when its size is asked for."""

    on_measured: Callable[[], object] = staticmethod(lambda: None)

    def __len__(self) -> int:
        self.on_measured()
        return super().__len__()


def test_a_store_is_cleared_while_a_commit_of_another_evicts_its_entries() -> None:
    """Test what happens between two entries of a store that a restorer clears."""
    cache = ObjectCache(2_000)
    keys: list[ObservedKey] = []

    def encode_key(name: str) -> bytes:
        keys.append(ObservedKey(name.encode()))
        return keys[-1]

    codecs = StoreCodecs(encode_key, bytes.decode, orjson.dumps, orjson.loads)
    cleared = KeyValueStore[str, Any]("r", MemoryDisk(), codecs, cache=cache, clock=lambda: 1)
    other = store_on(MemoryDisk(), cache)
    fill(cleared, "abcd")

    def commit_other() -> None:
        for key in keys:
            key.on_measured = lambda: None
        fill(other, "uvwxyz")

    for key in keys:
        key.on_measured = commit_other
    cleared.clear_all_data()
    assert list(cleared.range(None, None)) == []
    commit_other()
    assert cache.used_bytes <= 2_000


class Suit(Enum):
    HEARTS = "hearts"
    SPADES = "spades"


VALUES: dict[str, Callable[[int], Any]] = {
    "integers": lambda n: n + 1_000,
    "text": lambda n: f"{n:0200}",
    "small dicts": lambda n: {"count": n + 1_000, "name": f"name {n}"},
    "members of an enumeration": lambda n: (Suit.HEARTS, f"name {n}"),
    "lists": lambda n: [f"item {n} {i}" for i in range(30)],
    "growing lists": lambda n: [n * 1_000 + i for i in range(n % 50)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_uncommitted_bytes_are_about_the_memory_that_writes_take(kind: str) -> None:
    make = VALUES[kind]
    store = store_on(MemoryDisk(), ObjectCache(0))
    assert store.uncommitted_bytes == 0
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(5_000):
            store.put(f"key-{number}", make(number))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < store.uncommitted_bytes < taken * 2


def test_the_memory_of_the_cache_is_about_its_budget() -> None:
    budget = 2_000_000
    store = store_on(MemoryDisk(), ObjectCache(budget))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(20_000):
            store.put(f"key-{number}", number + 1_000)
        commit(store)
        gc.collect()
        with_all, _ = tracemalloc.get_traced_memory()
        store._cached.evict_all()
        gc.collect()
        without, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert budget / 2 < with_all - without < budget * 1.5
