"""Test that a versioned store that writes its changelog again loses nothing of it.

A model of a changelog is cut below each rewrite that was committed. A store that is restored from
what is left answers as the one that wrote it.
"""

from __future__ import annotations

from random import Random

import pytest

from state import version_rewrite
from state.memory import MemoryDisk
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry
from state.store_checkpoint import StoreCheckpoint
from state.versioned import VersionedStore

CODECS = StoreCodecs(str.encode, bytes.decode, str.encode, bytes.decode)
HISTORY_MS = 100


class Logged:
    """Pairs a store with its changelog, of which the records below `start` are deleted."""

    def __init__(self, history_ms: int = HISTORY_MS) -> None:
        self.history_ms = history_ms
        self.store = self._open()
        self.log: list[ChangelogEntry] = []
        self.start = 0

    def _open(self) -> VersionedStore[str]:
        return VersionedStore("v", MemoryDisk(), CODECS, history_ms=self.history_ms)

    def commit(self) -> int:
        """Commit what was written, delete what has expired, and return how much was logged."""
        entries = self.store.drain_writes()
        ended = self.store.ended_rewrite
        self.log += entries
        self.store.commit(StoreCheckpoint(len(self.log), "id"))
        if ended is not None:
            self.start = ended.changelog_offset
        return len(entries)

    def rewrite(self) -> None:
        """Write the changelog again from its end on, to the end of that."""
        self.store.begin_rewrite(len(self.log))
        while self.store.is_rewriting:
            self.commit()

    def restored(self) -> VersionedStore[str]:
        """Return another store, restored from what is left of the changelog."""
        other = self._open()
        other.replay_changelog(self.log[self.start :], StoreCheckpoint(len(self.log), "id"))
        return other


def test_a_rewrite_writes_what_is_on_disk_some_with_each_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version_rewrite, "ENTRIES_MIN", 2)
    world = Logged()
    for number in range(5):
        world.store.put(f"k{number}", "v", number)
    assert world.commit() == 5
    world.store.begin_rewrite(5)
    counts = []
    while world.store.is_rewriting:
        assert world.start == 0
        counts.append(world.commit())
    assert (counts, world.start) == ([2, 2, 1], 5)


def test_a_rewrite_is_faster_than_what_is_written_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(version_rewrite, "ENTRIES_MIN", 1)
    world = Logged()
    for number in range(6):
        world.store.put(f"{number}", "v", number)
    world.commit()
    world.store.begin_rewrite(6)
    for number in range(6, 9):
        world.store.put(f"{number}", "v", number)
    assert world.commit() == 3 + 6


def test_a_rewrite_bounds_the_bytes_of_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_rewrite, "BYTES_MIN", 1_000)
    world = Logged()
    for number in range(6):
        world.store.put(f"{number}", "v" * 600, number)
    world.commit()
    world.store.begin_rewrite(6)
    assert [world.commit() for _ in range(3)] == [2, 2, 2]


def test_what_the_transaction_writes_goes_over_what_is_written_again() -> None:
    world = Logged()
    world.store.put("k", "old", 5)
    world.commit()
    world.store.begin_rewrite(1)
    world.store.put("k", "new", 5)
    world.commit()
    assert world.log[1:] == [(b"k", b"new", 5)]


def test_a_rollback_ends_a_rewrite() -> None:
    world = Logged()
    world.store.put("k", "v", 5)
    world.commit()
    world.store.begin_rewrite(1)
    world.store.drain_writes()
    world.store.rollback_transaction()
    assert (world.store.is_rewriting, world.store.ended_rewrite) == (False, None)
    assert world.commit() == 0


def test_the_latest_version_is_restored_however_old_it_is() -> None:
    world = Logged()
    world.store.put("kept", "v", 5)
    world.store.put("now", "v", 5_000)
    world.commit()
    world.rewrite()
    found = world.restored().get("kept")
    assert found is not None
    assert (found.value, found.timestamp_ms) == ("v", 5)


def test_a_version_that_came_late_does_not_take_the_place_of_the_latest() -> None:
    world = Logged()
    world.store.put("k", "latest", 50)
    world.store.put("k", "late", 10)
    world.commit()
    world.rewrite()
    found = world.restored().get("k")
    assert found is not None
    assert found.value == "latest"


@pytest.mark.parametrize("history_ms", [0, HISTORY_MS])
def test_stream_time_is_restored_where_a_deletion_is_the_latest(history_ms: int) -> None:
    world = Logged(history_ms)
    world.store.put("k", "v", 10)
    world.store.put("k", None, 500)
    for _ in range(3):
        world.commit()
    world.rewrite()
    assert world.restored().stream_time_ms == 500


@pytest.mark.parametrize("seed", range(16))
def test_a_store_answers_as_before_after_a_restore_from_what_is_left(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_rewrite, "ENTRIES_MIN", 1)
    random = Random(seed)
    world = Logged()
    now_ms = 0
    for _ in range(150):
        for _ in range(random.choice((0, 0, 1, 3))):
            now_ms += random.choice((0, 1, 10, 60))
            key = f"k{random.randrange(12)}"
            value = None if random.random() < 0.4 else f"{random.getrandbits(16)}"
            late_ms = random.choice((0, 0, random.randrange(HISTORY_MS + 20)))
            world.store.put(key, value, max(now_ms - late_ms, 0))
        if random.random() < 0.1:
            world.store.rollback_transaction()
        if not world.store.is_rewriting and random.random() < 0.3:
            world.store.begin_rewrite(len(world.log))
        world.commit()
        if random.random() < 0.2:
            check_equal(world.restored(), world.store, f"{seed=}")
        if random.random() < 0.03:
            world.store = world.restored()
    assert world.start > 0, f"{seed=}: nothing was rewritten"


def check_equal(found: VersionedStore[str], wanted: VersionedStore[str], where: str) -> None:
    assert found.stream_time_ms == wanted.stream_time_ms, where
    for number in range(12):
        key = f"k{number}"
        assert found.get(key) == wanted.get(key), f"{where} {key}"
        first_ms = max(wanted.stream_time_ms - HISTORY_MS, 0)
        for time_ms in range(first_ms, wanted.stream_time_ms + 1, 3):
            assert found.get(key, time_ms) == wanted.get(key, time_ms), f"{where} {key} {time_ms}"
