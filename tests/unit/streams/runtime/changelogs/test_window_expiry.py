"""Test up to which offset the records of windowed changelogs have expired, and are deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from state.window import WindowStore
from streams import serdes
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.changelogs.changelog import ChangelogExpiry
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.changelogs.window_expiry import (
    ExpiredRecords,
    WindowExpiry,
    to_metadata_entries,
)
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task_stores import TaskStores
from streams.runtime.threads.changelog_purge import ChangelogPurger, PurgeTiming
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG = Partition("a-w-changelog", 0)
INPUT = Partition("in", 0)
DAY_MS = 86_400_000


def test_what_lies_below_a_mark_expires_when_the_store_has_deleted_the_marks_time() -> None:
    expiry = WindowExpiry()
    expiry.advance(1_000, 0, 10)
    expiry.advance(1_900, 1_000, 20)
    assert (expiry.expired_offset, expiry.mark_time_ms, expiry.mark_offset) == (None, 1_000, 10)
    expiry.advance(2_500, 1_001, 30)
    assert (expiry.expired_offset, expiry.mark_time_ms, expiry.mark_offset) == (10, 2_500, 30)
    expiry.advance(5_000, 2_600, 30)
    assert (expiry.expired_offset, expiry.mark_time_ms) == (30, -1)


def test_an_expired_offset_never_goes_back() -> None:
    expiry = WindowExpiry(50, 10, 40)
    expiry.advance(100, 11, 60)
    assert expiry.expired_offset == 50


@pytest.mark.parametrize(
    ("expired_offset", "start_offset", "expected"),
    [(0, 0, True), (0, 1, False), (9, 9, True), (9, 10, False), (None, 10, True)],
)
def test_a_changelog_may_begin_up_to_the_expired_offset_that_was_committed(
    expired_offset: int | None, start_offset: int, expected: bool
) -> None:
    now_ms = 100 * DAY_MS
    expiry = ChangelogExpiry(is_windowed=True, stream_time_ms=now_ms, expired_offset=expired_offset)
    assert expiry.may_begin_at(start_offset, now_ms) is expected


def windowed() -> TaskStores:
    """Return a task's stores: one of windows that are kept for 100 ms, in segments of 50 ms."""
    spec = StoreSpec(
        name="w",
        key=serdes.string,
        value=serdes.string,
        kind=StoreKind.WINDOW,
        retention_ms=100,
        window_size_ms=10,
        segment_ms=50,
    )
    store = open_store(spec, MemoryDisk(), clock=lambda: 0)
    expiry = ChangelogExpiry(is_windowed=True)
    return TaskStores("0_0", {"w": LoggedStore(store, CHANGELOG, "id", 0, expiry=expiry)})


def write(stores: TaskStores, start_ms: int, position: int) -> dict[str, int]:
    """Write a window, and commit with the store at a position; return the metadata's entries."""
    logged = stores.logged["w"]
    assert isinstance(logged.store, WindowStore)
    logged.store.put("k", "v", start_ms, 0)
    logged.store.drain_writes()
    logged.changelog_position = position
    entries = stores.advance_expiry()
    logged.store.commit(StoreCheckpoint(position, "id", 1))
    return entries


def test_records_expire_no_earlier_than_the_store_deletes_their_windows() -> None:
    stores = windowed()
    write(stores, 40, 2)
    write(stores, 139, 4)
    write(stores, 148, 5)
    write(stores, 149, 6)
    assert stores.pop_expired_records([INPUT]) == []
    entries = write(stores, 152, 8)
    assert entries == {"expired offset of w": 2, "mark time of w": 152, "mark offset of w": 8}
    assert stores.pop_expired_records([INPUT]) == [ExpiredRecords(CHANGELOG, 2, "w", (INPUT,))]
    assert stores.pop_expired_records([INPUT]) == []


def test_expiry_goes_on_after_a_restart_as_it_was_committed() -> None:
    entries = to_metadata_entries("w", WindowExpiry(7, 11, 13))
    stores = windowed()
    committed = {INPUT: OffsetAndMetadata(3, encode_metadata({"w": 20}, 50, entries=entries))}
    stores.note_committed_expiry(committed)
    logged = stores.logged["w"]
    assert logged.window_expiry == WindowExpiry(7, 11, 13)
    assert (logged.expiry.expired_offset, logged.expiry.stream_time_ms) == (7, 50)
    stores.note_committed_expiry({INPUT: OffsetAndMetadata(3, encode_metadata({"w": 20}, 50))})
    assert logged.window_expiry.expired_offset is None


class Purging:
    """Holds a purger with an interval of a second, and a changelog that begins at 0."""

    def __init__(self, cut_retention_ms: int = 0) -> None:
        self.kafka = Kafka({"in": 1, CHANGELOG.topic: 1})
        self.script = Script()
        self.admin = FakeAdmin(self.kafka, self.script)
        self.host = Clock()
        self.cuts: dict[str, dict[Partition, OffsetAndMetadata]] = {}
        self.is_allowed = True
        self.purger = ChangelogPurger(
            *("a", self.admin, self._fetch_cut, self._check_listed),
            PurgeTiming(1_000, cut_retention_ms),
            self.host,
        )

    def expire(self, *offsets: int, after_s: float = 1.0) -> int:
        """Note expired offsets `after_s` later; return where the changelog begins after that."""
        self.host.elapsed_s += after_s
        self.purger.purge_if_due([ExpiredRecords(CHANGELOG, o, "w", (INPUT,)) for o in offsets])
        return self.kafka.logs[CHANGELOG].start_offset

    def cut(self, group: str, *expired: int) -> None:
        self.admin.group_ids.append(group)
        self.cuts[group] = {}
        for offset in expired:
            entries = to_metadata_entries("w", WindowExpiry(offset))
            text = encode_metadata({}, entries=entries)
            self.cuts[group][INPUT] = OffsetAndMetadata(3, text)

    def _fetch_cut(self, group: str, asked: Collection[Partition]) -> CommittedOffsets:
        assert set(asked) == {INPUT}
        return CommittedOffsets(self.cuts[group], [])

    def _check_listed(self, groups: Sequence[str]) -> None:
        assert groups == ("a-cut", "a-cut-")
        if not self.is_allowed:
            raise AuthorizationError("Describe", "group", "a-cut")


def test_expired_records_are_deleted_in_intervals() -> None:
    world = Purging()
    assert world.expire(5) == 5
    assert world.expire(7, after_s=0.5) == 5
    assert world.expire(after_s=0.5) == 7


def test_a_kept_cut_keeps_what_had_not_expired_at_its_moment() -> None:
    world = Purging()
    world.cut("a-cut-x", 4)
    world.cut("b-cut", 1)
    assert world.expire(9) == 4
    world.cut("a-cut-y")
    assert world.expire(12) == 4


def test_what_cuts_may_still_be_taken_of_is_deleted_later() -> None:
    world = Purging(cut_retention_ms=10_000)
    assert world.expire(5) == 0
    assert world.expire(after_s=9.9) == 0
    assert world.expire(after_s=1.1) == 5


@pytest.mark.parametrize("is_listing_refused", [True, False])
def test_without_the_right_one_warning_is_logged_and_nothing_fails(
    caplog: pytest.LogCaptureFixture, is_listing_refused: bool
) -> None:
    world = Purging()
    world.is_allowed = not is_listing_refused
    if not is_listing_refused:
        error = AuthorizationError("Delete", "topic", CHANGELOG.topic)
        world.script.fail("admin.delete_records", error)
    assert world.expire(5) == world.expire(6) == 0
    assert caplog.text.count("expired records stay in changelogs, which grow") == 1


def test_a_broker_that_does_not_answer_is_asked_with_the_next_records() -> None:
    world = Purging()
    world.script.fail("admin.delete_records", OutcomeUnknown("no answer"))
    assert world.expire(5) == 0
    assert world.expire(6) == 6
