"""Test a store's overlay: reads see its writes, it drains once, and commits or rolls back whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.cache import ObjectCache
from state.errors import StoreSerdeError
from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint

Store = KeyValueStore[str, Any]


def store_on(disk: StoreDisk) -> Store:
    return KeyValueStore(
        "counts",
        disk,
        StoreCodecs(str.encode, bytes.decode, orjson.dumps, orjson.loads),
        cache=ObjectCache(1 << 20),
    )


@pytest.fixture(params=["memory", "rocksdb"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreDisk]:
    disk: StoreDisk = MemoryDisk() if request.param == "memory" else RocksDisk(tmp_path / "db")
    yield disk
    disk.close()


def commit(store: Store, position: int) -> None:
    store.drain_writes()
    store.commit(StoreCheckpoint(position, "topic"))


def test_a_transaction_reads_its_own_writes_before_anything_is_on_disk(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=10)
    assert store.get("a") == 1
    assert list(disk.range(None, None)) == []
    assert store.read_checkpoint() is None


def test_drain_serialises_each_dirty_key_once_with_its_last_value(disk: StoreDisk) -> None:
    store = store_on(disk)
    for count in (1, 2, 3):
        store.put("a", count, timestamp_ms=count)
    store.delete("b", timestamp_ms=9)
    expected = [(b"a", b"3", 3), (b"b", None, 9)]
    assert store.drain_writes() == expected
    assert store.drain_writes() is store.drain_writes()


def test_commit_makes_data_and_checkpoint_durable_together(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=10)
    store.put("gone", 1, timestamp_ms=10)
    commit(store, 2)
    store.delete("gone", timestamp_ms=11)
    commit(store, 3)
    assert store.get("a") == 1
    assert store.get("gone") is None
    assert list(disk.range(None, None)) == [(b"a", (10).to_bytes(8, "big") + b"1")]
    assert store.read_checkpoint() == StoreCheckpoint(3, "topic")
    entry = store.entry("a")
    assert entry is not None
    assert entry.timestamp_ms == 10


def test_rollback_forgets_writes_and_objects_that_were_changed_in_place(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", {"n": 1}, timestamp_ms=1)
    commit(store, 1)
    value = store.get("a")
    assert value is not None
    value["n"] = 99
    store.put("a", value, timestamp_ms=2)
    store.drain_writes()
    store.rollback_transaction()
    assert store.get("a") == {"n": 1}
    assert store.read_checkpoint() == StoreCheckpoint(1, "topic")


def test_an_object_read_but_not_written_is_not_kept_when_it_is_changed_in_place(
    disk: StoreDisk,
) -> None:
    store = store_on(disk)
    store.put("a", {"n": 1}, timestamp_ms=1)
    commit(store, 1)
    value = store.get("a")
    assert value is not None
    value["n"] = 99
    assert store.get("a") == {"n": 1}


def bump(store: Store, key: str, timestamp_ms: int = 1) -> None:
    entry = store.get_entry_for_update(key)
    entry.value = (entry.value or 0) + 1
    entry.timestamp_ms = timestamp_ms


def test_an_update_reads_and_writes_a_key_in_one(disk: StoreDisk) -> None:
    store = store_on(disk)
    assert store.get_entry_for_update("a").timestamp_ms == -1
    for position in (1, 2, 3):
        bump(store, "a", timestamp_ms=position)
        commit(store, position)
    assert list(disk.range(None, None)) == [(b"a", (3).to_bytes(8, "big") + b"3")]


def test_what_a_rolled_back_update_changed_in_place_is_gone(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", [1], timestamp_ms=1)
    commit(store, 1)
    for _ in range(2):
        value = store.get_entry_for_update("a").value
        assert value == [1]
        value.append(2)
        store.drain_writes()
        store.rollback_transaction()
    assert store.get("a") == [1]


def test_a_kept_object_gives_way_to_a_put_a_deletion_and_a_replay(disk: StoreDisk) -> None:
    store = store_on(disk)
    bump(store, "a")
    commit(store, 1)
    store.put("a", 10, timestamp_ms=2)
    bump(store, "a")
    commit(store, 2)
    assert store.get("a") == 11
    store.replay_changelog([(b"a", b"20", 3)], StoreCheckpoint(3, "topic"))
    bump(store, "a")
    commit(store, 4)
    assert store.get("a") == 21
    store.delete("a", timestamp_ms=5)
    commit(store, 5)
    assert store.get_entry_for_update("a").timestamp_ms == -1


def test_a_write_between_drain_and_the_outcome_is_refused(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=1)
    store.drain_writes()
    with pytest.raises(RuntimeError, match="after drain"):
        store.put("b", 1, timestamp_ms=1)


def test_commit_without_drain_is_refused(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=1)
    with pytest.raises(RuntimeError, match="before drain"):
        store.commit(StoreCheckpoint(1, "topic"))


def test_items_merge_the_overlay_with_the_disk_in_key_order(disk: StoreDisk) -> None:
    store = store_on(disk)
    for key in ("b", "d", "f"):
        store.put(key, 1, timestamp_ms=1)
    commit(store, 3)
    store.put("a", 2, timestamp_ms=2)
    store.put("d", 2, timestamp_ms=2)
    store.delete("f", timestamp_ms=2)
    store.put("z", 2, timestamp_ms=2)
    assert list(store.all()) == [("a", 2), ("b", 1), ("d", 2), ("z", 2)]


def test_replaying_the_changelog_twice_gives_the_same_state(disk: StoreDisk) -> None:
    store = store_on(disk)
    entries: list[ChangelogEntry] = [(b"a", b"1", 1), (b"b", b"2", 2)]
    entries += [(b"a", b"3", 3), (b"b", None, 4)]
    for _ in range(2):
        store.replay_changelog(entries, StoreCheckpoint(4, "topic"))
        assert list(store.all()) == [("a", 3)]


def test_more_changes_than_one_batch_holds_arrive_whole(disk: StoreDisk) -> None:
    store = store_on(disk)
    for number in range(12_345):
        store.put(f"{number:06}", number, timestamp_ms=number)
    commit(store, 12_345)
    assert sum(1 for _ in disk.range(None, None)) == 12_345
    assert store.read_checkpoint() == StoreCheckpoint(12_345, "topic")


def test_clear_forgets_state_and_checkpoint(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=1)
    commit(store, 1)
    store.clear_all_data()
    assert store.get("a") is None
    assert store.read_checkpoint() is None


def test_a_value_that_cannot_be_encoded_leaves_the_transaction_as_it_was(disk: StoreDisk) -> None:
    store = store_on(disk)
    store.put("a", 1, timestamp_ms=1)
    store.put("b", object(), timestamp_ms=1)
    for _ in range(2):
        with pytest.raises(StoreSerdeError, match="store 'counts' can't take value <object"):
            store.drain_writes()
    assert store.get("a") == 1


def test_a_store_that_is_reopened_has_what_was_committed_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "db"
    store = store_on(RocksDisk(path))
    store.put("a", 1, timestamp_ms=1)
    commit(store, 7)
    store.put("a", 2, timestamp_ms=2)
    store.close()
    reopened = store_on(RocksDisk(path))
    assert reopened.get("a") == 1
    assert reopened.read_checkpoint() == StoreCheckpoint(7, "topic")
    reopened.close()


def test_a_value_that_another_serde_wrote_is_told_with_the_store_and_its_key(
    disk: StoreDisk,
) -> None:
    written = store_on(disk)
    written.put("a", 1, timestamp_ms=10)
    commit(written, 1)

    def refuse_bytes(value: bytes) -> Any:
        raise ValueError("not mine")

    codecs = StoreCodecs(str.encode, bytes.decode, orjson.dumps, refuse_bytes)
    store: Store = KeyValueStore("counts", disk, codecs, cache=ObjectCache(1 << 20))
    expected = r"store 'counts' can't read the value b'1' of key 'a': not mine\. Was it written"
    for read in (store.get, store.get_entry_for_update):
        with pytest.raises(StoreSerdeError, match=expected):
            read("a")
