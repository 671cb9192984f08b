"""Test that sessions found in memory are those on disk, and that few ranges of it are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.cache import ObjectCache
from state.memory import MemoryDisk
from state.recent_windows import RecentWindowsBudget
from state.segmented import WindowSettings
from state.session import SessionStore
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.windowed import Windowed
from state.write_behind import WriteBehindDisk

Store = SessionStore[Any]

CODECS = StoreCodecs(bytes, bytes, orjson.dumps, orjson.loads)
GAP_MS, RETENTION_MS = 10, 60
PLENTY = 1 << 20
FEW = 1_500
"""A budget of bytes that has room for about four sessions."""


class CountingDisk(MemoryDisk):
    """Counts the keys that are looked up and the ranges that are read on a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.lookups = self.ranges = 0

    def get(self, key: bytes) -> bytes | None:
        self.lookups += 1
        return super().get(key)

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        self.ranges += 1
        return super().range(first, end, reverse=reverse)


class Twin:
    """Does everything to a store with sessions in memory and to one that reads its disk alone.

    Changes of the first wait above its disk for a commit or two, and a crash loses them.
    """

    def __init__(self, budget_bytes: int, cache_bytes: int = 0) -> None:
        self._budget_bytes, self._cache_bytes = budget_bytes, cache_bytes
        self.disk = CountingDisk()
        self.plain_disk = MemoryDisk()
        self.changelog: list[ChangelogEntry] = []
        self.reopen()

    def reopen(self) -> None:
        self.budget = RecentWindowsBudget(self._budget_bytes)
        self.cache = ObjectCache(self._cache_bytes)
        waiting = WriteBehindDisk(self.disk, monotonic_s=count(0, 0.6).__next__)
        self.store = self._open(waiting, self.cache, self.budget)
        self.plain = self._open(self.plain_disk, ObjectCache(self._cache_bytes), None)
        self.catch_up()

    def _open(
        self, disk: StoreDisk, cache: ObjectCache, budget: RecentWindowsBudget | None
    ) -> Store:
        return SessionStore(
            "s", disk, CODECS, WindowSettings(RETENTION_MS), recent_sessions=budget, cache=cache
        )

    def add_record(self, key: bytes, time_ms: int, value: Any) -> None:
        """Merge the sessions that a record joins, as an aggregation does."""
        times = time_ms - GAP_MS, time_ms + GAP_MS
        expected = self.find(key, *times)
        start_ms = min([time_ms, *(each.start_ms for each, _ in expected)])
        end_ms = max([time_ms, *(each.end_ms for each, _ in expected)])
        session = Windowed(key, start_ms, end_ms)
        committed = []
        for store in (self.store, self.plain):
            key_bytes, found = store.find_sessions_to_merge(key, *times)
            assert [(entry.key, entry.value) for entry in found.values()] == expected
            if start_ms != end_ms:
                for disk_key, entry in found.items():
                    store.remove_merged_session(disk_key, entry, time_ms)
            if isinstance(value, int):
                taken = store.get_merged_entry_for_update(key_bytes, found, session)
                committed.append(taken and store.read_committed_value(taken))
                if taken is not None:
                    taken.value, taken.timestamp_ms = value, time_ms
            else:
                store.put(session, value, time_ms)
        assert committed[:1] == committed[1:]

    def remove(self, key: bytes, time_ms: int) -> None:
        for session, _ in self.find(key, time_ms, time_ms):
            for store in (self.store, self.plain):
                store.remove(session, time_ms)

    def find(self, key: bytes, from_ms: int, to_ms: int) -> list[tuple[Windowed[Any], Any]]:
        expected = list(self.plain.find_sessions(key, from_ms, to_ms))
        assert list(self.store.find_sessions(key, from_ms, to_ms)) == expected
        return expected

    def end(self, outcome: str) -> None:
        """Commit, roll back, clear, or crash before the disk has what Kafka has."""
        drained = self.store.drain_writes()
        assert drained == self.plain.drain_writes()
        if outcome in ("commit", "crash late", "lose the answer"):
            self.changelog += drained
        match outcome:
            case "commit":
                for store in (self.store, self.plain):
                    store.commit(StoreCheckpoint(len(self.changelog), "t"))
            case "rollback":
                self.roll_back()
            case "lose the answer":
                self.roll_back()
                self.catch_up()
            case "clear":
                for store in (self.store, self.plain):
                    store.clear_all_data()
                self.catch_up()
            case _:
                self.reopen()

    def roll_back(self) -> None:
        for store in (self.store, self.plain):
            store.rollback_transaction()

    def catch_up(self) -> None:
        """Replay what the changelog has and the disk has not, in parts."""
        for store in (self.store, self.plain):
            checkpoint = store.read_checkpoint()
            position = 0 if checkpoint is None else checkpoint.position
            for start in range(position, len(self.changelog), 3):
                part = self.changelog[start : start + 3]
                store.replay_changelog(part, StoreCheckpoint(start + len(part), "t"))


KEYS = st.sampled_from([b"", b"a", b"aa", b"a\0", b"b\xff"])
TIMES = st.integers(0, 60) | st.integers(0, 300)
VALUES = st.integers(0, 9) | st.just([1, 2]) | st.none()
STEPS = st.lists(st.tuples(KEYS, TIMES, VALUES), max_size=20)
OUTCOMES = st.sampled_from(
    ["commit"] * 4 + ["rollback", "lose the answer", "clear", "crash", "crash late"]
)


@given(
    budget_bytes=st.sampled_from([0, FEW, PLENTY]),
    cache_bytes=st.sampled_from([0, 1_000, PLENTY]),
    transactions=st.lists(st.tuples(STEPS, OUTCOMES), max_size=6),
)
def test_a_store_finds_in_memory_the_sessions_that_it_would_find_on_disk(
    budget_bytes: int,
    cache_bytes: int,
    transactions: list[tuple[list[tuple[bytes, int, Any]], str]],
) -> None:
    twin = Twin(budget_bytes, cache_bytes)
    for steps, outcome in transactions:
        for key, time_ms, value in steps:
            if value is None:
                twin.remove(key, time_ms)
            else:
                twin.add_record(key, time_ms, value)
        twin.end(outcome)
        assert twin.budget.used_bytes <= budget_bytes
        for key in (b"", b"a", b"a\0"):
            twin.find(key, 0, 300)
    twin.end("commit")
    used_bytes = twin.cache.used_bytes
    twin.roll_back()  # which counts what is in the cache anew
    assert twin.cache.used_bytes == used_bytes


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_a_search_reads_no_disk_once_stream_time_is_a_search_further(outcome: str) -> None:
    twin = Twin(PLENTY)
    for time_ms in range(0, 40, 5):
        twin.add_record(b"a", time_ms, time_ms)
    twin.end("commit")
    twin.add_record(b"a", 45, 45)
    twin.end(outcome)
    for time_ms in (50, 60, 70):
        twin.add_record(b"a", time_ms, time_ms)
    ranges = twin.disk.ranges
    twin.add_record(b"a", 75, 75)
    twin.add_record(b"b\xff", 75, 75)
    assert twin.disk.ranges == ranges


def test_a_new_session_is_not_looked_up_on_disk() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)  # the first search says how far one goes
    lookups = twin.disk.lookups
    for time_ms in range(20, 60, 5):
        twin.add_record(b"a", time_ms, time_ms)
    assert twin.disk.lookups == lookups


def test_a_session_that_is_written_again_has_its_committed_value() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)  # the first search says how far one goes
    twin.add_record(b"b", 40, 1)
    twin.end("commit")
    session = Windowed(b"b", 40, 40)
    merged = twin.store.get_merged_entry_for_update(
        *twin.store.find_sessions_to_merge(b"b", 40, 40), session
    )
    assert merged is not None
    assert (merged.value, twin.store.read_committed_value(merged)) == (1, 1)
    twin.roll_back()
    written = twin.store.get_entry_for_update(session)
    assert written is not None
    assert (written.value, twin.store.read_committed_value(written)) == (1, 1)


def test_a_session_that_a_crash_left_on_disk_beyond_stream_time_is_looked_up() -> None:
    session = Windowed(b"a", 50, 50)
    twin = Twin(PLENTY)
    twin.add_record(b"a", 50, 1)
    twin.end("commit")
    plain_disk, checkpoint = twin.plain_disk, twin.store.read_checkpoint()
    assert checkpoint is not None
    plain_disk.write_changes({}, replace(checkpoint, stream_time_ms=0))
    twin.reopen()
    key_bytes, found = twin.plain.find_sessions_to_merge(b"a", 50, 50)
    entry = twin.plain.get_merged_entry_for_update(key_bytes, found, session)
    assert found == {}
    assert entry is not None
    assert twin.plain.read_committed_value(entry) == 1


def test_a_session_in_memory_that_has_expired_is_not_found() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)  # the first search says how far one goes
    for key, time_ms in ((b"a", 40), (b"c", 41), (b"b", 100)):
        twin.add_record(key, time_ms, 1)
    ranges = twin.disk.ranges
    assert twin.store.find_sessions_to_merge(b"a", 30, 50)[1] == {}
    found = twin.store.find_sessions_to_merge(b"c", 31, 51)[1]
    assert [entry.key for entry in found.values()] == [Windowed(b"c", 41, 41)]
    assert twin.disk.ranges == ranges


def test_no_session_is_merged_after_the_drain() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)
    key_bytes, found = twin.store.find_sessions_to_merge(b"a", 0, 20)
    twin.store.drain_writes()
    for disk_key, entry in found.items():
        with pytest.raises(RuntimeError, match="after drain"):
            twin.store.remove_merged_session(disk_key, entry, 10)
    with pytest.raises(RuntimeError, match="after drain"):
        twin.store.get_merged_entry_for_update(key_bytes, found, Windowed(b"a", 0, 10))


def test_a_session_that_a_rollback_brings_back_is_found() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)
    twin.add_record(b"b", 20, 0)
    twin.end("commit")
    for time_ms in (5, 8, 9):
        twin.add_record(b"a", time_ms, time_ms)
    twin.end("rollback")
    assert [session.end_ms for session, _ in twin.find(b"a", 0, 20)] == [0]


def test_what_is_no_session_any_more_is_forgotten() -> None:
    twin = Twin(PLENTY)
    twin.add_record(b"a", 0, 0)  # the first search says how far one goes
    sizes = []
    for time_ms in range(1, 200):
        twin.add_record(b"a", time_ms, time_ms)
        sizes.append(twin.budget.used_bytes)
        if time_ms % 10 == 0:
            twin.end("commit")
    assert len(set(sizes[:9])) == 1  # while all is in one bucket
    assert max(sizes) < 5 * min(sizes)
    twin.store.close()
    assert twin.budget.used_bytes == 0
