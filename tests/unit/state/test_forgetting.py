"""Test that expired entries are not returned, and leave the disk in bounded work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from state.errors import StateError, StoreCorrupted
from state.keys import pack_time
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store_checkpoint import StoreCheckpoint
from state.ttl_store import TtlStore
from state.versioned import VersionedStore
from state.window import WindowStore
from state.windowed import Windowed

CODECS = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)
MINUTE_MS = 60_000


class CountingDisk(MemoryDisk):
    """Counts the entries that ranges return, and records the ranges that are deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0
        self.ranges_deleted: list[tuple[bytes, bytes]] = []

    def range(self, first: bytes | None, end: bytes | None, *, reverse: bool = False) -> Any:
        for each in super().range(first, end, reverse=reverse):
            self.read += 1
            yield each

    def delete_range(self, first: bytes, end: bytes) -> None:
        self.ranges_deleted.append((first, end))
        super().delete_range(first, end)


def commit(store: Any) -> list[Any]:
    drained: list[Any] = store.drain_writes()
    store.commit(StoreCheckpoint(1, "t"))
    return drained


@pytest.mark.parametrize("write", ["put", "update"])
def test_a_window_is_kept_up_to_the_retention_behind_and_dropped_from_there_on(write: str) -> None:
    store = WindowStore[str]("w", MemoryDisk(), CODECS, WindowSettings(10, window_size_ms=5))
    store.put("k", "v", 100, 0)
    for start_ms in (91, 90):
        if write == "put":
            store.put("k", "v", start_ms, 0)
        else:
            assert (store.get_entry_for_update("k", start_ms) is None) == (start_ms == 90)
    assert store.dropped == 1


def test_windows_go_by_whole_segments_one_range_each_time_one_has_expired() -> None:
    disk = CountingDisk()
    store = WindowStore[str](
        "w", disk, CODECS, WindowSettings(10 * MINUTE_MS, window_size_ms=MINUTE_MS)
    )
    for minute in range(40):
        store.put("k", "v", minute * MINUTE_MS, 0)
        commit(store)
        assert disk.approximate_count() <= 15
    assert [last for _, last in disk.ranges_deleted] == [pack_time(n) for n in range(1, 6)]
    assert [start for start, _ in store.fetch("k", 0, 40 * MINUTE_MS)] == [
        minute * MINUTE_MS for minute in range(30, 40)
    ]


def test_a_window_store_that_is_opened_again_knows_what_has_expired() -> None:
    disk = MemoryDisk()
    for start_ms in (0, 9 * MINUTE_MS, 10 * MINUTE_MS):
        store = WindowStore[str](
            "w", disk, CODECS, WindowSettings(10 * MINUTE_MS, window_size_ms=MINUTE_MS)
        )
        store.put("k", "v", start_ms, 0)
        commit(store)
    store = WindowStore[str](
        "w", disk, CODECS, WindowSettings(10 * MINUTE_MS, window_size_ms=MINUTE_MS)
    )
    assert store.stream_time_ms == 10 * MINUTE_MS
    assert store.fetch("k", 0) is None
    store.put("k", "late", 0, 0)
    assert (store.dropped, store.list_written_entries()) == (1, [])


def test_sessions_expire_by_their_end() -> None:
    disk = CountingDisk()
    store = SessionStore[str]("s", disk, CODECS, WindowSettings(10 * MINUTE_MS))
    long, short = Windowed("k", 0, 9 * MINUTE_MS), Windowed("k", 0, MINUTE_MS)
    store.put(long, "long", 0)
    store.put(short, "short", 0)
    commit(store)
    store.put(Windowed("other", 11 * MINUTE_MS, 12 * MINUTE_MS), "later", 0)
    assert [session for session, _ in store.fetch("k")] == [long]
    assert store.fetch_session("k", 0, MINUTE_MS) is None


def test_a_time_to_live_is_swept_a_little_at_each_commit_with_deletions_in_the_changelog() -> None:
    disk = CountingDisk()
    store = TtlStore[str, str]("t", disk, CODECS, ttl_ms=100)
    for number in range(1_000):
        store.put(f"{number:04}", "v", 0)
    commit(store)
    swept: list[Any] = []
    for step in range(1_000):
        before = disk.read
        store.put("now", "v", 100 + step)
        swept += [each for each in commit(store) if each[1] is None]
        assert disk.read - before <= 66
        assert store.get("0999") is None
        if disk.approximate_count() == 1:
            break
    assert disk.approximate_count() == 1
    assert step < 20
    assert sorted(key for key, _, _ in swept) == [b"%04d" % number for number in range(1_000)]


def test_a_sweep_rests_when_time_has_not_moved() -> None:
    disk = CountingDisk()
    store = TtlStore[str, str]("t", disk, CODECS, ttl_ms=100)
    for number in range(10):
        store.put(f"{number}", "v", 50)
    commit(store)
    commit(store)
    read = disk.read
    for _ in range(5):
        store.put("1", "v", 50)
        commit(store)
    assert disk.read == read


def test_versions_that_nobody_can_ask_for_are_swept_and_deletions_after_them() -> None:
    disk = MemoryDisk()
    store = VersionedStore[str]("v", disk, CODECS, history_ms=100)
    for timestamp_ms in range(0, 50, 10):
        store.put("kept", f"{timestamp_ms}", timestamp_ms)
        store.put("gone", f"{timestamp_ms}", timestamp_ms)
    store.put("gone", None, 50)
    commit(store)
    for timestamp_ms in (200, 300):
        store.put("now", "v", timestamp_ms)
        commit(store)
    left = [key for key, _ in disk.range(None, None)]
    assert left == [b"kept" + pack_time(40), b"now" + pack_time(200), b"now" + pack_time(300)]
    kept = store.get("kept")
    assert kept is not None
    assert (kept.value, store.get("gone")) == ("40", None)


def test_a_deletion_stays_while_an_older_version_could_come_back_without_it() -> None:
    """Test that a tombstone stays while an older version of its key is on the disk.

    Other keys' bytes lie between the two: the sweep doesn't meet them side by side.
    """
    disk = MemoryDisk()
    store = VersionedStore[bytes](
        "v", disk, StoreCodecs(bytes, bytes, bytes, bytes), history_ms=100
    )
    between = b"a" + pack_time(20)
    store.put(b"a", b"old", 10)
    store.put(between, b"x", 15)
    store.put(b"a", None, 30)
    commit(store)
    for timestamp_ms in (200, 300, 400):
        store.put(b"now", b"v", timestamp_ms)
        commit(store)
        assert store.get(b"a") is None


def test_a_store_whose_retention_was_changed_is_left_as_it_is_until_it_is_cleared() -> None:
    disk = MemoryDisk()

    def opened(minutes: int) -> WindowStore[str]:
        retention_ms = minutes * MINUTE_MS
        return WindowStore(
            "w", disk, CODECS, WindowSettings(retention_ms, window_size_ms=MINUTE_MS)
        )

    store = opened(10)
    store.put("k", "v", 9 * MINUTE_MS, 0)
    changelog = commit(store)
    assert opened(10).rebuild_reason == ""
    store = opened(30)
    assert "retention or its grace was changed" in store.rebuild_reason
    checkpoint = store.read_checkpoint()
    assert checkpoint is not None
    assert (checkpoint.position, store.stream_time_ms) == (1, -1)
    with pytest.raises(StateError, match="'w' is not used as it is: its kind"):
        store.fetch("k", 9 * MINUTE_MS)
    with pytest.raises(StateError, match="'w' is not used as it is: its kind"):
        store.replay_changelog(changelog, StoreCheckpoint(1, "t"))
    assert opened(10).fetch("k", 9 * MINUTE_MS) == "v"  # the former declaration goes on
    store.clear_all_data()
    assert store.rebuild_reason == ""
    store.replay_changelog(changelog, StoreCheckpoint(1, "t"))
    assert store.fetch("k", 9 * MINUTE_MS) == "v"
    assert opened(30).fetch("k", 9 * MINUTE_MS) == "v"


def test_a_damaged_store_is_opened_and_left_as_it_is() -> None:
    class Damaged(MemoryDisk):
        def read_checkpoint(self) -> StoreCheckpoint | None:
            raise StoreCorrupted("w", "/state", "bad block")

        def clear_all_data(self) -> None:
            raise AssertionError("it is cleared, and nobody has asked the changelog")

    store = WindowStore[str](
        "w", Damaged(), CODECS, WindowSettings(MINUTE_MS, window_size_ms=MINUTE_MS)
    )
    with pytest.raises(StoreCorrupted, match="bad block"):
        store.read_checkpoint()


@pytest.mark.parametrize("kind", [WindowStore, SessionStore])
def test_a_store_that_was_caught_up_past_records_of_nobody_is_not_emptied(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Test that a changelog of only aborted records and markers does not empty the store."""
    disk = MemoryDisk()

    def opened() -> Any:
        return kind("w", disk, CODECS, WindowSettings(MINUTE_MS, window_size_ms=1))

    opened().replay_changelog([], StoreCheckpoint(7, "t"))
    checkpoint = opened().read_checkpoint()
    assert checkpoint is not None
    assert checkpoint.position == 7
    assert caplog.text == ""


def test_time_and_layout_are_on_disk_with_the_position(tmp_path: Path) -> None:
    checkpoint = StoreCheckpoint(1, "t", 5, 7, "windows in segments of 60000 ms")
    disk = RocksDisk(tmp_path / "db")
    disk.write_changes({b"k": b"v"}, checkpoint)
    disk.close()
    disk = RocksDisk(tmp_path / "db")
    assert disk.read_checkpoint() == checkpoint
    disk.close()
