"""Test when a versioned store writes its changelog again, and which offset a commit then names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from state.versioned import VersionedStore
from streams import serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.assigning.internal_topics import find_changelog_expiry
from streams.runtime.changelogs.changelog import ChangelogRange
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.changelogs.version_expiry import REWRITE_RECORDS_MIN
from streams.runtime.changelogs.window_expiry import (
    ExpiredRecords,
    WindowExpiry,
    name_expiry_entries,
    to_metadata_entries,
)
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task_stores import TaskStores
from tests.unit.streams.runtime.restored import CHANGELOG as STANDBY_LOG
from tests.unit.streams.runtime.restored import Restoring, held

CHANGELOG = Partition("a-v-changelog", 0)
INPUT = Partition("in", 0)
SPEC = StoreSpec(
    name="v",
    key=serdes.string,
    value=serdes.string,
    kind=StoreKind.VERSIONED,
    history_ms=100,
)


class World:
    """Holds a task's stores with one of versions, and commits what is put into it."""

    def __init__(self, spec: StoreSpec = SPEC) -> None:
        store = open_store(spec, MemoryDisk(), clock=lambda: 0)
        assert isinstance(store, VersionedStore)
        self.store = store
        logged = LoggedStore(store, CHANGELOG, "id", 0, expiry=find_changelog_expiry(spec))
        self.stores = TaskStores("0_0", {"v": logged})

    @property
    def logged(self) -> LoggedStore:
        return self.stores.logged["v"]

    def commit(self, key: str | None = None) -> int | None:
        """Commit a version of a key, or nothing, and return the expired offset that is named."""
        if key is not None:
            self.store.put(key, "v", 5)
        self.stores.serialize_changes()
        self.logged.changelog_position += len(self.store.drain_writes())
        entries = self.stores.advance_expiry()
        assert set(entries) in (set(), set(name_expiry_entries("v")))
        self.store.commit(StoreCheckpoint(self.logged.changelog_position, "id", 1))
        return entries.get("expired offset of v")


def test_the_first_commit_says_that_the_changelog_has_all() -> None:
    world = World()
    assert world.commit("k") == 0
    assert world.stores.pop_expired_records([INPUT]) == []
    assert world.commit("k") == 0
    assert world.logged.changelog_position == 2, "nothing is written again"


def test_a_changelog_is_written_again_when_as_many_records_have_followed_and_some_more() -> None:
    world = World()
    for number in range(3):
        world.commit(f"{number}")
    world.logged.changelog_position = REWRITE_RECORDS_MIN - 1
    assert world.commit() == 0
    first = world.logged.changelog_position = REWRITE_RECORDS_MIN
    assert world.commit() == first
    assert world.logged.changelog_position == first + 3
    expired = [ExpiredRecords(CHANGELOG, first, "v", (INPUT,))]
    assert world.stores.pop_expired_records([INPUT]) == expired
    assert world.stores.pop_expired_records([INPUT]) == []
    world.logged.changelog_position = first + REWRITE_RECORDS_MIN + 2 * 3 - 1
    assert world.commit() == first
    world.logged.changelog_position += 1
    assert world.commit() == first + REWRITE_RECORDS_MIN + 2 * 3


@pytest.mark.parametrize("first_offset", [None, 0])
def test_a_store_of_a_commit_without_an_expired_offset_is_written_again_at_once(
    first_offset: int | None,
) -> None:
    world = World()
    world.store.replay_changelog([(b"k", b"v", 5)], StoreCheckpoint(7, "id"))
    world.logged.changelog_position = 7
    entries = {} if first_offset is None else to_metadata_entries("v", WindowExpiry(0, -1, 8))
    committed = {INPUT: OffsetAndMetadata(3, encode_metadata({"v": 7}, 50, entries=entries))}
    world.stores.note_committed_expiry(committed)
    assert world.commit() == (7 if first_offset is None else 0)


@pytest.mark.parametrize(("is_accepted", "kept_ms"), [(True, None), (False, 1_000)])
def test_a_store_is_written_again_that_was_restored_of_what_proves_nothing(
    is_accepted: bool, kept_ms: int | None
) -> None:
    world = World()
    world.logged.window_expiry = WindowExpiry(0, -1, REWRITE_RECORDS_MIN)
    world.logged.changelog_position = 7
    changelog = ChangelogRange(CHANGELOG, 0, 7, "id", kept_ms, 1)
    world.logged.note_changelog_start(changelog, is_accepted=is_accepted)
    assert world.commit() == 7


def test_a_rolled_back_transaction_has_written_nothing_again() -> None:
    world = World()
    world.logged.window_expiry = WindowExpiry(0, -1, REWRITE_RECORDS_MIN)
    world.commit("k")
    world.logged.changelog_position = 2 * REWRITE_RECORDS_MIN
    world.store.put("k", "v", 6)
    world.stores.serialize_changes()
    world.stores.roll_back_changes()
    assert not world.store.is_rewriting
    assert world.commit() == 2 * REWRITE_RECORDS_MIN


def test_without_room_for_the_entry_nothing_is_written_again() -> None:
    world = World()
    world.stores.names_expired = False
    world.logged.changelog_position = 2 * REWRITE_RECORDS_MIN
    assert world.commit("k") is None
    assert world.logged.changelog_position == 2 * REWRITE_RECORDS_MIN + 1
    assert world.stores.pop_expired_records([INPUT]) == []


@pytest.mark.parametrize(
    "spec",
    [
        replace(SPEC, source_topic="rates"),
        replace(SPEC, topic_settings={"cleanup.policy": "compact"}),
    ],
    ids=["a table's own topic", "compacted as it is declared"],
)
def test_what_the_store_can_not_delete_it_does_not_write_again(spec: StoreSpec) -> None:
    world = World(spec)
    assert world.commit("k") is None
    assert world.logged.changelog_position == 1


class Standby:
    """Holds a standby of one store that writes its changelog again, as the rules see it."""

    def __init__(self, *entries: tuple[str, str | None]) -> None:
        self.world = Restoring()
        self.world.kafka.topic_settings[STANDBY_LOG.topic] = {"cleanup.policy": "delete"}
        self.world.kafka.load(STANDBY_LOG, *entries)
        self.logged = self.world.store()
        self.logged.expiry = find_changelog_expiry(SPEC)

    def commit(self, position: int, expired_offset: int | None, time_ms: int) -> None:
        """Commit the input at this stream time, when the changelog stood at this position."""
        name, entries = STANDBY_LOG.topic, {}
        if expired_offset is not None:
            entries = to_metadata_entries(name, WindowExpiry(expired_offset))
        metadata = encode_metadata({name: position}, time_ms, entries=entries)
        self.world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(7, metadata)


def test_a_standby_that_is_behind_the_beginning_is_filled_again() -> None:
    standby = Standby(("a", "1"), ("b", "2"))
    world = standby.world
    standby.commit(2, 0, 5)
    task = world.follow(standby.logged)
    assert held(standby.logged) == {"a": "1", "b": "2"}
    world.restorer.stop_following([task.name])
    world.kafka.load(STANDBY_LOG, ("a", None), ("b", "3"), ("b", "3"))
    world.kafka.logs[STANDBY_LOG].start_offset = 4  # `a` was deleted, and has expired
    standby.commit(5, 4, 5)
    world.follow(standby.logged)
    assert held(standby.logged) == {"b": "3"}


@pytest.mark.parametrize("expired_offset", [None, 0])
def test_a_standby_is_not_filled_from_a_changelog_that_may_lack_versions(
    expired_offset: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    standby = Standby(("a", "1"), ("b", "2"))
    standby.world.clock.advance_wall_clock(2 * 86_400_000)
    standby.commit(2, expired_offset, 5)
    standby.world.follow(standby.logged)
    assert ("compacted by the wall clock" in caplog.text) is (expired_offset is None)
    assert held(standby.logged) == ({} if expired_offset is None else {"a": "1", "b": "2"})
