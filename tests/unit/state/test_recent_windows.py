"""Test that entries of a window store in memory are those on disk, and that they are bounded."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.cache import ObjectCache
from state.early_serialization import ChangeLimit
from state.errors import StoreSerdeError
from state.memory import MemoryDisk
from state.recent_windows import RecentWindows, RecentWindowsBudget
from state.segmented import WindowSettings
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry
from state.store_checkpoint import StoreCheckpoint
from state.window_duplicates import DuplicatesWindowStore
from streams import serdes
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import open_store

Store = DuplicatesWindowStore[Any]

CODECS = StoreCodecs(bytes, bytes, orjson.dumps, orjson.loads)
SIZE_MS, RETENTION_MS = 20, 100
PLENTY = 1 << 20
FEW = 1_500
"""A budget of bytes that has room for about four entries."""


class CountingDisk(MemoryDisk):
    """Counts the ranges that are read on a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges = 0

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        self.ranges += 1
        return super().range(first, end, reverse=reverse)

    def delete_range(self, first: bytes, end: bytes) -> None:
        ranges = self.ranges
        super().delete_range(first, end)
        self.ranges = ranges


class Twin:
    """Does everything to a store with entries in memory and to one that reads its disk alone."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self.disk = CountingDisk()
        self._plain_disk = MemoryDisk()
        self.changelog: list[ChangelogEntry] = []
        self.reopen()

    def reopen(self) -> None:
        self.budget = RecentWindowsBudget(self._budget_bytes)
        self.store = self._open(self.disk, self.budget)
        self._plain = self._open(self._plain_disk, None)
        self.catch_up()

    def _open(self, disk: MemoryDisk, budget: RecentWindowsBudget | None) -> Store:
        return DuplicatesWindowStore(
            "w",
            disk,
            CODECS,
            WindowSettings(RETENTION_MS, window_size_ms=SIZE_MS, segment_ms=30),
            recent_windows=budget,
        )

    def put(self, key: bytes, start_ms: int, value: Any) -> None:
        stored = self.store.put(key, value, start_ms, start_ms)
        assert stored == self._plain.put(key, value, start_ms, start_ms)

    def end(self, outcome: str) -> None:
        """Commit, roll back, close, clear, or crash before the disk has what Kafka has."""
        drained = self.store.drain_writes()
        assert drained == self._plain.drain_writes()
        if outcome in ("commit", "crash late", "lose the answer"):
            self.changelog += drained
        match outcome:
            case "commit":
                for store in (self.store, self._plain):
                    store.commit(StoreCheckpoint(len(self.changelog), "t"))
            case "rollback":
                self.roll_back()
            case "lose the answer":
                self.roll_back()
                self.catch_up()
            case "clear":
                for store in (self.store, self._plain):
                    store.clear_all_data()
                self.catch_up()
            case _:
                self.reopen()

    def roll_back(self) -> None:
        for store in (self.store, self._plain):
            store.rollback_transaction()

    def catch_up(self) -> None:
        """Replay what the changelog has and the disk has not, in parts."""
        for store in (self.store, self._plain):
            checkpoint = store.read_checkpoint()
            position = 0 if checkpoint is None else checkpoint.position
            for start in range(position, len(self.changelog), 3):
                part = self.changelog[start : start + 3]
                store.replay_changelog(part, StoreCheckpoint(start + len(part), "t"))

    def check(self, key: bytes, from_ms: int, to_ms: int) -> None:
        expected = list(self._plain.fetch(key, from_ms, to_ms))
        assert self.store.find_values(key, from_ms, to_ms) == expected
        assert list(self.store.fetch(key, from_ms, to_ms)) == expected


KEYS = st.sampled_from([b"", b"a", b"aa", b"a\0", b"b\xff"])
TIMES = st.integers(0, 60) | st.integers(0, 400)
STEPS = st.lists(st.tuples(KEYS, TIMES, st.integers(0, 9) | st.just([1, 2])), max_size=15)
OUTCOMES = st.sampled_from(
    ["commit"] * 4 + ["rollback", "lose the answer", "clear", "crash", "crash late"]
)


@given(
    budget_bytes=st.sampled_from([0, FEW, PLENTY]),
    transactions=st.lists(st.tuples(STEPS, OUTCOMES), max_size=6),
    reach_ms=st.integers(0, 50),
)
def test_a_store_finds_in_memory_what_it_would_find_on_disk(
    budget_bytes: int,
    transactions: list[tuple[list[tuple[bytes, int, Any]], str]],
    reach_ms: int,
) -> None:
    twin = Twin(budget_bytes)
    for steps, outcome in transactions:
        for key, start_ms, value in steps:
            twin.check(key, max(start_ms - reach_ms, 0), start_ms + reach_ms)
            twin.put(key, start_ms, value)
        twin.end(outcome)
        assert twin.budget.used_bytes <= budget_bytes
        for key in (b"", b"a", b"a\0"):
            twin.check(key, 0, 2**63 - 1)
            for from_ms in range(0, 420, 30):
                twin.check(key, from_ms, from_ms + reach_ms)


def test_records_that_come_in_order_are_found_without_the_disk() -> None:
    twin = Twin(PLENTY)
    for start_ms in range(0, 1_000, 2):
        twin.store.find_values(b"a", max(start_ms - SIZE_MS, 0), start_ms)
        twin.put(b"a", start_ms, start_ms)
        if start_ms % 50 == 0:
            twin.end("commit")
    assert twin.disk.ranges == 0


def test_what_was_rolled_back_is_not_found() -> None:
    twin = Twin(PLENTY)
    twin.put(b"a", 100, "kept")
    twin.end("commit")
    twin.put(b"a", 101, "gone")
    twin.put(b"a", 500, "gone")
    twin.end("rollback")
    assert twin.store.find_values(b"a", 90, 110) == [(100, "kept")]
    twin.put(b"a", 102, "again")
    assert twin.store.find_values(b"a", 90, 110) == [(100, "kept"), (102, "again")]


@pytest.mark.parametrize("outcome", ["crash late", "lose the answer", "clear"])
def test_what_was_not_put_since_the_store_was_opened_or_replayed_is_read_from_the_disk(
    outcome: str,
) -> None:
    twin = Twin(PLENTY)
    twin.put(b"a", 100, "on disk")
    twin.end("commit")
    twin.put(b"a", 110, "in the changelog")
    twin.end(outcome)
    before = [(100, "on disk")]
    if outcome != "clear":
        before.append((110, "in the changelog"))
    assert twin.store.find_values(b"a", 90, 120) == before
    twin.put(b"a", 120, "in memory")
    assert twin.store.find_values(b"a", 90, 120) == [*before, (120, "in memory")]


def test_the_memory_is_complete_again_once_windows_begin_after_a_restart() -> None:
    twin = Twin(PLENTY)
    twin.put(b"a", 100, 1)
    twin.end("commit")
    twin.end("crash")
    twin.put(b"a", 140, 2)
    twin.disk.ranges = 0
    assert twin.store.find_values(b"a", 101, 150) == [(140, 2)]
    assert twin.disk.ranges == 0
    assert twin.store.find_values(b"a", 100, 150) == [(100, 1), (140, 2)]
    assert twin.disk.ranges > 0


def test_a_late_record_comes_before_newer_ones_and_after_those_of_its_time() -> None:
    twin = Twin(PLENTY)
    for start_ms, value in ((50, 1), (31, 2), (50, 3), (30, 4), (31, 5)):
        twin.put(b"a", start_ms, value)
    assert twin.store.find_values(b"a", 0, 60) == [(30, 4), (31, 2), (31, 5), (50, 1), (50, 3)]
    assert twin.store.find_values(b"a", 31, 49) == [(31, 2), (31, 5)]


def test_what_has_expired_is_not_found_and_leaves_the_memory_at_the_commit() -> None:
    twin = Twin(PLENTY)
    twin.put(b"a", 0, 1)
    used = twin.budget.used_bytes
    twin.put(b"a", 2 * RETENTION_MS, 2)
    assert twin.store.find_values(b"a", 0, 2 * RETENTION_MS) == [(2 * RETENTION_MS, 2)]
    twin.end("commit")
    assert twin.budget.used_bytes == used


def test_a_value_is_decoded_for_each_reader() -> None:
    twin = Twin(PLENTY)
    twin.put(b"a", 10, [1])
    [(_, found)] = twin.store.find_values(b"a", 0, 20)
    found.append(2)
    assert twin.store.find_values(b"a", 0, 20) == [(10, [1])]


def test_the_store_that_takes_most_gives_way_and_reads_its_disk() -> None:
    budget = RecentWindowsBudget(3_000)
    disks = CountingDisk(), CountingDisk()
    small, large = (
        DuplicatesWindowStore[Any](
            "w",
            disk,
            CODECS,
            WindowSettings(RETENTION_MS, window_size_ms=SIZE_MS),
            recent_windows=budget,
        )
        for disk in disks
    )
    small.put(b"a", 0, 0, 0)
    for start_ms in range(60):
        large.put(b"a", start_ms, start_ms, start_ms)
    for store in (small, large):
        store.drain_writes()
        store.commit(StoreCheckpoint(1, "t"))
    assert 0 < budget.used_bytes <= 3_000
    assert len(small.find_values(b"a", 0, 100)) == 1
    assert len(large.find_values(b"a", 0, 100)) == 60
    assert [disk.ranges for disk in disks] == [0, 1]


def test_the_budget_keeps_nothing_of_a_store_that_is_closed() -> None:
    budget = RecentWindowsBudget(PLENTY)
    before = count_recent_windows()
    store: Store = DuplicatesWindowStore(
        "w",
        MemoryDisk(),
        CODECS,
        WindowSettings(RETENTION_MS, window_size_ms=SIZE_MS),
        recent_windows=budget,
    )
    store.put(b"a", 1, 1, 1)
    assert count_recent_windows() == before + 1
    store.close()
    assert budget.used_bytes == 0
    del store
    assert count_recent_windows() == before


def count_recent_windows() -> int:
    gc.collect()
    return sum(isinstance(each, RecentWindows) for each in gc.get_objects())


def test_the_memory_that_entries_take_is_counted() -> None:
    budget = RecentWindowsBudget(1 << 30)
    windows = budget.add_store(1_000)
    windows.restart(0)
    keys = [b"key-%d" % number for number in range(20_000)]
    value = b"v" * 100
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(40_000):
            suffix = number.to_bytes(12, "big")
            windows.add_entry(keys[number % 20_000], number // 10, suffix, value)
        measured, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert measured / 2 < budget.used_bytes < measured * 2


@pytest.mark.parametrize("logged", [True, False])
def test_a_store_without_a_changelog_reads_its_disk(logged: bool) -> None:
    # After a crash in a write it may have entries that are newer than its stream time.
    spec = StoreSpec(
        name="w",
        key=serdes.bytes,
        value=serdes.bytes,
        kind=StoreKind.WINDOW,
        retention_ms=RETENTION_MS,
        window_size_ms=SIZE_MS,
        retain_duplicates=True,
        logged=logged,
    )
    cache = ObjectCache(0)
    store: Any = open_store(spec, MemoryDisk(), cache=cache)
    store.put(b"a", b"1", 10, 10)
    assert bool(cache.recent_windows.used_bytes) is logged
    assert store.find_values(b"a", 0, 20) == [(10, b"1")]


def test_a_late_record_is_dropped_also_if_its_value_is_too_large() -> None:
    store = Twin(PLENTY).store
    store.put(b"a", "live", 10 * RETENTION_MS, 10 * RETENTION_MS)
    refused: list[None] = []
    store.serialize_early(lambda: refused.append(None), ChangeLimit(64, "max.message.bytes"))
    assert not store.put(b"a", "x" * 100, 0, 0)
    assert (store.dropped, refused) == (1, [])
    with pytest.raises(StoreSerdeError, match=r"max\.message\.bytes"):
        store.put(b"a", "x" * 100, 10 * RETENTION_MS, 10 * RETENTION_MS)
