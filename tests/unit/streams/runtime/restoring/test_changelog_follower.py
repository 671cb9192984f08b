"""Test that stores of standby tasks follow their changelogs, and that a restore goes on from there.

What a promotion replays is counted: only what came since the standby's position.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from state.errors import StoreCorrupted
from state.memory import MemoryDisk
from state.store import ChangelogEntry
from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.offset_metadata import FirstStart, encode_metadata
from streams.testing.cluster import InMemoryTransaction
from tests.processes import wait_until
from tests.unit.streams.runtime.fakes import FakeAdmin
from tests.unit.streams.runtime.restored import (
    CHANGELOG,
    INPUT,
    OTHER,
    BulkDisk,
    Restoring,
    checkpoint,
    held,
)

DAY_S = 86_400
RANGES = "admin.fetch_latest_offsets"


def test_a_store_follows_its_changelog_and_a_promotion_replays_only_what_came_since() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    logged = world.store()
    task = world.follow(logged)
    assert held(logged) == {"a": "1", "b": "2"}
    world.kafka.load(CHANGELOG, ("a", None), ("c", "3"))
    assert world.follow_to_end() == 2
    assert held(logged) == {"b": "2", "c": "3"}
    assert world.restorer.reader.restored_records == 0, "a standby's records are no restore's"
    world.kafka.load(CHANGELOG, ("d", "4"))
    assert world.promote(task) == 1
    assert [message.offset() for message in world.consumer.taken] == [4]
    assert held(logged) == {"b": "2", "c": "3", "d": "4"}
    assert (world.standby_consumer.assigned, world.follower.is_following) == (set(), False)


def test_a_standby_begins_at_the_position_that_it_has() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    world.follow(world.store({"a": "1", "b": "2"}, position=2))
    assert [message.offset() for message in world.standby_consumer.taken] == [2]


def test_a_standby_that_is_promoted_at_the_end_replays_nothing() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    assert world.promote(world.follow(world.store())) == 0


def test_what_an_open_transaction_wrote_is_followed_when_it_is_committed() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    aborted, committed = InMemoryTransaction(), InMemoryTransaction()
    world.kafka.append_record(CHANGELOG, b"a", b"wrong", 0, transaction=aborted)
    logged = world.store()
    world.follow(logged)
    assert (held(logged), logged.changelog_position) == ({"a": "1"}, 1)
    assert world.lags() == {CHANGELOG.topic: 1}
    world.kafka.end_transaction(aborted, committed=False)
    world.kafka.append_record(CHANGELOG, b"b", b"2", 0, transaction=committed)
    world.kafka.end_transaction(committed, committed=True)
    world.follow_to_end(after_s=10)
    assert held(logged) == {"a": "1", "b": "2"}
    # Its position is behind the marker: there is nothing left.
    assert world.lags() == {CHANGELOG.topic: 0}


def test_restores_of_active_tasks_come_first() -> None:
    world = Restoring(batch=1)
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(5)])
    world.kafka.load(OTHER, ("x", "9"))
    standby, active = world.task(world.store(), name="0_1"), world.task(world.store(None, 0, OTHER))
    waits = InMemoryTransaction()
    world.kafka.append_record(OTHER, b"x", b"10", 0, transaction=waits)
    world.restorer.follow_tasks([standby])
    world.restorer.add_tasks([active])
    world.turns(10)
    assert world.follower.followed_records == 0
    world.kafka.end_transaction(waits, committed=True)
    assert world.until_ready() == [active]
    assert world.follow_to_end() == 5


def test_the_lag_is_that_to_the_end_of_a_fetch_every_ten_seconds() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    world.kafka.append_record(CHANGELOG, b"c", b"3", 0, transaction=InMemoryTransaction())
    world.follow(world.store(), world.store(changelog=OTHER))
    assert world.lags() == {CHANGELOG.topic: 1, OTHER.topic: 0}
    asked = world.script.calls.count(RANGES)
    for _ in range(99):
        world.clock.advance_monotonic_clock(0.1)
        world.restorer.continue_following()
    world.clock.advance_monotonic_clock(0.2)
    world.restorer.continue_following()
    assert world.script.calls.count(RANGES) == asked + 1, "both changelogs are asked for together"


def test_positions_are_made_durable_at_intervals_and_when_the_task_is_taken_back() -> None:
    world = Restoring()
    disk = BulkDisk()
    task = world.follow(world.store(disk=disk))
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.follow_to_end()
    assert disk.durable is None
    world.follow_to_end(after_s=10)
    assert disk.durable is not None
    assert disk.durable.position == 1
    world.kafka.load(CHANGELOG, ("b", "2"))
    world.follow_to_end()
    assert disk.durable.position == 1
    world.restorer.stop_following([task.name])
    assert disk.durable.position == 2


def test_batches_are_bounded() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(2_500)])
    world.follow(world.store())
    loaded = [event[4] for event in world.listener.events if event[0] == "loaded"]
    assert loaded == [1_000, 1_000, 500]


def test_the_listener_hears_of_standbys() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    first = world.follow(world.store({"a": "1"}, position=1))
    second = world.follow(world.store(changelog=OTHER), name="0_1")
    world.restorer.promote_tasks([first.name])
    world.restorer.stop_following([second.name])
    world.restorer.continue_following()
    assert world.listener.events == [
        ("follow", "a-c-changelog", 1),
        ("loaded", "a-c-changelog", "0_0", 2, 1, 2),
        ("follow", "a-d-changelog", 0),
        ("promoted", "a-c-changelog", 2, 2),
        ("migrated", "a-d-changelog", 0, 0),
    ]
    assert world.follower.progress == ()


def test_a_store_whose_changelog_was_made_again_is_rebuilt_from_the_new_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    logged = world.store()
    task = world.follow(logged)
    world.kafka.delete(CHANGELOG.topic)
    world.kafka.create_topic(CHANGELOG.topic, 1)
    # Its range has the old position, so that only its id tells.
    world.kafka.load(CHANGELOG, ("c", "3"), ("d", "4"), ("e", "5"))
    world.follow_to_end(after_s=10)
    assert held(logged) == {"c": "3", "d": "4", "e": "5"}
    assert "was deleted and made again" in caplog.text
    assert checkpoint(logged) == (3, world.kafka.topic_ids[CHANGELOG.topic])
    assert world.promote(task) == 0


def commit_position(world: Restoring, position: int) -> None:
    """Commit the input of task 0_0, when the changelog stood at this position."""
    metadata = encode_metadata({CHANGELOG.topic: position})
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(7, metadata)


def test_a_store_is_kept_whose_changelog_has_lost_what_was_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Test that a standby, perhaps the one copy, is cleared only when a restore would be."""
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    logged = world.store()
    world.follow(logged)
    commit_position(world, 2)
    world.kafka.delete(CHANGELOG.topic)
    world.kafka.create_topic(CHANGELOG.topic, 1)
    world.kafka.load(CHANGELOG, ("c", "3"), ("d", "4"), ("e", "5"))
    for _ in range(5):
        world.follow_to_end(after_s=10)
    assert held(logged) == {"a": "1", "b": "2"}
    assert world.lags() == {CHANGELOG.topic: None}
    problem = "changelog a-c-changelog[0] was deleted and made again: it is not the one"
    assert caplog.text.count(problem) == 1
    commit_position(world, 3)
    world.follow_to_end(after_s=10)
    assert caplog.text.count(problem) == 1, "it is not told again because offsets have moved on"
    assert "is rebuilt" not in caplog.text
    del world.kafka.committed_offsets[INPUT]  # the application was reset
    world.follow_to_end(after_s=1)
    assert held(logged) == {"c": "3", "d": "4", "e": "5"}


def test_a_store_is_kept_while_it_is_not_known_what_was_committed() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store({"z": "0"}, position=5)
    transaction = InMemoryTransaction(offsets={INPUT: OffsetAndMetadata(1, "")})
    world.kafka.open_transactions["active"] = transaction
    world.follow(logged)
    assert held(logged) == {"z": "0"}
    world.kafka.end_transaction(transaction, committed=True)
    world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1"}


def test_a_position_out_of_range_rebuilds_the_store() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    world.kafka.append_record(
        CHANGELOG, b"d", b"4", 0, transaction=(waits := InMemoryTransaction())
    )
    logged = world.store({"a": "1"}, position=1)
    world.follow(logged)
    world.kafka.end_transaction(waits, committed=True)
    world.kafka.load(CHANGELOG, ("e", "5"))
    world.kafka.logs[CHANGELOG].start_offset = 5
    world.follow_to_end(after_s=1)
    assert held(logged) == {"e": "5"}


def test_a_changelog_that_is_gone_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store()
    world.follow(logged)
    world.script.fail("standby.poll_records", StreamsError("no such topic"))
    for attempt in (1, 2):
        world.script.fail(RANGES, OutcomeUnknown("no such topic"), at=attempt)
    world.kafka.load(CHANGELOG, ("b", "2"))
    assert world.follow_to_end() == 0
    assert world.lags() == {CHANGELOG.topic: None}
    assert "standby tasks wait: no such topic" in caplog.text
    for _ in range(3):
        world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1", "b": "2"}
    assert world.script.list_unmade_failures() == []


def test_a_changelog_that_is_missing_keeps_no_other_from_being_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Test the stores of one task and of others, before the changelog is created and after."""
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.delete(OTHER.topic)
    logged = world.store()
    world.follow(logged, world.store(changelog=OTHER))
    world.kafka.load(CHANGELOG, ("b", "2"))
    assert world.follow_to_end(after_s=1) == 1
    assert held(logged) == {"a": "1", "b": "2"}
    assert world.lags() == {CHANGELOG.topic: 0, OTHER.topic: None}
    assert caplog.text.count("standby tasks wait: changelog 'a-d-changelog' does not exist") == 1
    world.kafka.create_topic(OTHER.topic, 1)
    world.kafka.load(OTHER, ("x", "9"))
    assert world.follow_to_end(after_s=1) == 1


def test_a_changelog_that_is_deleted_stops_its_own_store_alone() -> None:
    world = Restoring()
    logged = world.store()
    world.follow(logged, world.store(changelog=OTHER))
    world.kafka.delete(OTHER.topic)
    world.script.fail("standby.poll_records", StreamsError("no such topic"))
    world.kafka.load(CHANGELOG, ("a", "1"))
    for _ in range(3):
        world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1"}
    assert world.lags() == {CHANGELOG.topic: 0, OTHER.topic: None}


def test_a_missing_right_is_raised() -> None:
    world = Restoring()
    world.follow(world.store())
    world.script.fail("standby.poll_records", AuthorizationError("Read", "topic", "a-c-changelog"))
    with pytest.raises(AuthorizationError):
        world.restorer.continue_following()


def test_a_broker_that_stays_away_ends_nothing() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    for attempt in range(1, 400):
        world.script.fail(RANGES, OutcomeUnknown("no answer"), at=attempt)
    logged = world.store()
    world.restorer.follow_tasks([world.task(logged)])
    for _ in range(399):
        world.clock.advance_monotonic_clock(1)
        world.restorer.continue_following()
    assert held(logged) == {}
    world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1"}


class Damaged:
    """Makes the next writes of a store find damage."""

    def __init__(self, logged: LoggedStore, count: int) -> None:
        self.left = count
        self._replay = logged.store.replay_changelog
        logged.store.replay_changelog = self.replay  # type: ignore[method-assign]
        self._damage = StoreCorrupted("c", Path(), "block checksum mismatch")

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint) -> None:
        if self.left:
            self.left -= 1
            raise self._damage
        self._replay(entries, checkpoint)


def test_a_corrupt_store_is_rebuilt_alone(caplog: pytest.LogCaptureFixture) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    world.kafka.load(OTHER, ("x", "8"))
    logged, other = world.store({"a": "1"}, position=1), world.store(changelog=OTHER)
    Damaged(logged, 1)
    task = world.follow(logged, other)
    world.follow_to_end(after_s=1)
    assert (held(logged), held(other)) == ({"a": "1", "b": "2"}, {"x": "8"})
    assert caplog.text.count("of standby task 0_0 is rebuilt from its changelog") == 1
    assert world.promote(task) == 0


def test_a_store_that_is_corrupt_again_and_again_ends_the_thread() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store()
    Damaged(logged, 4)
    world.restorer.follow_tasks([world.task(logged)])
    for _ in range(3):
        world.clock.advance_monotonic_clock(1)
        world.restorer.continue_following()
    world.clock.advance_monotonic_clock(1)
    with pytest.raises(StoreCorrupted):
        world.restorer.continue_following()


def test_a_standby_that_follows_for_long_is_not_taken_for_outdated() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store()
    task = world.follow(logged)
    for day in range(3):
        world.clock.advance_monotonic_clock(DAY_S)
        world.follow_to_end()  # the end is fetched
        world.kafka.load(CHANGELOG, ("a", str(day)))
        assert world.follow_to_end() == 1
    assert world.promote(task) == 0


@pytest.mark.parametrize("restarts", [False, True])
def test_a_standby_of_an_idle_changelog_is_not_taken_for_outdated(restarts: bool) -> None:
    """Test that the checkpoint tells of the last time that the store was seen to be at the end."""
    world = Restoring()
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(5)])
    logged = world.store()
    task = world.follow(logged)
    for _ in range(30 * 60):
        world.clock.advance_monotonic_clock(60)
        world.restorer.continue_following()
    world.kafka.load(CHANGELOG, ("b", "1"), ("c", "2"))
    if restarts:
        world.restorer.stop_following([task.name])
        logged.changelog_position = 0
        world.follow(logged)
        assert [m.offset() for m in world.standby_consumer.taken] == [*range(7)]
    assert world.promote(task) == (0 if restarts else 2)


def test_a_checkpoint_is_written_again_only_when_it_gets_old() -> None:
    world = Restoring()
    disk = BulkDisk()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store(disk=disk)
    begun_ms = world.clock.now_ms()
    world.follow(logged)
    written = []
    for _ in range(24):
        world.follow_to_end(after_s=3_600)
        written.append(checkpoint_time_ms(logged) - begun_ms)
    assert [ms // 3_600_000 for ms in written] == [n // 6 * 6 for n in range(1, 25)]
    world.follow_to_end(after_s=10)
    assert disk.durable == logged.store.read_checkpoint(), "it is made durable as any other"


def test_a_standby_that_was_behind_for_longer_than_deletions_are_kept_is_rebuilt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    # The deletion of one key was compacted away before the store could see it.
    logged = world.store({"a": "1", "gone": "0"}, position=1)
    world.follow(logged)
    for attempt in range(1, 3):
        world.script.fail(RANGES, OutcomeUnknown("no answer"), at=attempt)
    world.clock.advance_monotonic_clock(DAY_S)
    world.kafka.load(CHANGELOG, ("b", "2"))
    world.follow_to_end()
    for _ in range(4):
        world.follow_to_end(after_s=1)
    assert "it was behind for longer than a-c-changelog[0] keeps deletions" in caplog.text
    assert held(logged) == {"a": "1", "b": "2"}


def test_a_standby_whose_changelog_keeps_deletions_shortly_is_not_rebuilt_again_and_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges are fetched well within that time; every ten seconds would be too late."""
    settings = {"cleanup.policy": "compact", "delete.retention.ms": "5000"}
    monkeypatch.setattr(
        FakeAdmin, "fetch_topic_settings", lambda _, topics: dict.fromkeys(topics, settings)
    )
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "0"))
    world.follow(world.store())
    for count in range(40):
        world.clock.advance_monotonic_clock(1)
        world.kafka.load(CHANGELOG, ("a", str(count)))
        world.restorer.continue_following()
    assert "is rebuilt" not in caplog.text


def source_store(world: Restoring) -> LoggedStore:
    """Return an empty store of a table that follows its own topic."""
    return replace(world.store(), is_source_topic=True)


def test_a_tables_own_topic_is_followed_up_to_the_committed_offset() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), (None, "no key"), ("b", "2"), ("c", "3"))
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(3, "")
    logged = source_store(world)
    task = world.follow(logged)
    assert (held(logged), logged.changelog_position) == ({"a": "1", "b": "2"}, 3)
    assert world.lags() == {CHANGELOG.topic: 0}
    assert world.standby_consumer.assigned == set(), "nothing beyond it is fetched"
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(4, "")
    world.follow_to_end(after_s=10)
    assert (held(logged), logged.changelog_position) == ({"a": "1", "b": "2", "c": "3"}, 4)
    logged.committed_source_offset = 4
    assert world.promote(task) == 0


@pytest.mark.parametrize(("named_id", "expected"), [(None, {"b": "2"}), (7, {"a": "1", "b": "2"})])
def test_what_a_first_start_has_skipped_of_a_tables_topic_is_not_followed(
    named_id: int | None, expected: dict[str, str]
) -> None:
    """With another id it was another topic's first start."""
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    ids = {} if named_id is None else {CHANGELOG.topic: named_id}
    metadata = encode_metadata({}, topic_ids=ids, first_start=FirstStart(5, 1, offset=1))
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(2, metadata)
    logged = source_store(world)
    world.follow(logged)
    assert (held(logged), logged.changelog_position) == (expected, 2)


def test_a_record_that_the_serdes_of_a_table_refuse_is_not_followed() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("a", "no row"), ("b", "2"))
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(3, "")
    logged = replace(
        world.store(),
        is_source_topic=True,
        encode_row=lambda each: None if each.value() == b"no row" else (each.key(), each.value()),
    )
    world.follow(logged)
    assert (held(logged), logged.changelog_position) == ({"a": "1", "b": "2"}, 3)


def test_a_table_whose_offset_a_transaction_may_move_waits() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(1, "")
    transaction = InMemoryTransaction(offsets={CHANGELOG: OffsetAndMetadata(1, "")})
    world.kafka.open_transactions["active"] = transaction
    logged = source_store(world)
    world.follow(logged)
    assert (held(logged), world.lags()) == ({}, {CHANGELOG.topic: None})
    world.kafka.end_transaction(transaction, committed=True)
    world.follow_to_end(after_s=1)
    assert held(logged) == {"a": "1"}


def test_beside_the_stream_thread_a_standby_is_followed_and_taken_back() -> None:
    world = Restoring(beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.load(OTHER, ("x", "9"))
    standby = world.task(world.store(), name="0_1")
    world.restorer.follow_tasks([standby])
    active = world.task(world.store(changelog=OTHER))
    world.restorer.add_tasks([active])
    assert world.restorer.wait_and_pop_restored_tasks(wait_s=10) == [active]
    assert world.restorer.stop_following(["0_1", "elsewhere"]) == [standby]
    world.restorer.close()


def test_beside_the_stream_thread_a_promotion_waits_for_no_batch() -> None:
    """A batch that is loaded takes as long as the disk does; the other tasks go on meanwhile."""
    world = Restoring(beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"))
    is_loading, may_load = threading.Event(), threading.Event()

    class SlowDisk(MemoryDisk):
        def load_changes(self, changes: Any, checkpoint: StoreCheckpoint) -> None:
            is_loading.set()
            assert may_load.wait(10)
            super().load_changes(changes, checkpoint)

    standby = world.task(world.store(disk=SlowDisk()))
    world.restorer.follow_tasks([standby])
    assert is_loading.wait(10)
    world.restorer.promote_tasks([standby.name])
    world.restorer.add_tasks([standby])
    may_load.set()
    assert world.restorer.wait_and_pop_restored_tasks(wait_s=10) == [standby]
    assert world.restorer.reader.restored_records == 0, "the restore began when the batch was over"
    world.restorer.close()


def test_beside_the_stream_thread_a_promoted_standby_is_let_go_before_it_is_withdrawn() -> None:
    world = Restoring(beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"))
    disk = BulkDisk()
    standby = world.task(world.store(disk=disk))
    world.restorer.follow_tasks([standby])
    wait_until(lambda: world.follower.followed_records == 1, what="the standby to be followed")
    world.restorer.promote_tasks([standby.name])
    assert world.restorer.withdraw_tasks([standby.name]) == []
    assert world.follower.progress == ()
    assert disk.durable is not None
    world.restorer.close()


def test_what_goes_wrong_beside_is_raised_to_the_stream_thread() -> None:
    world = Restoring(beside=True)
    world.script.fail("standby.poll_records", AuthorizationError("Read", "topic", "t"))
    world.restorer.follow_tasks([world.task(world.store())])
    world.restorer.reader.restored.wait_for_task(10)
    with pytest.raises(AuthorizationError):
        world.restorer.continue_following()
    world.restorer.close()


def test_a_partition_is_read_by_its_number() -> None:
    world = Restoring()
    world.kafka.grow(CHANGELOG.topic, 2)
    second = Partition(CHANGELOG.topic, 1)
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.load(second, ("b", "2"))
    first_store, second_store = world.store(), world.store(changelog=second)
    world.restorer.follow_tasks([world.task(first_store), world.task(second_store, name="0_1")])
    world.follow_to_end()
    assert (held(first_store), held(second_store)) == ({"a": "1"}, {"b": "2"})


def checkpoint_time_ms(logged: LoggedStore) -> int:
    found = logged.store.read_checkpoint()
    assert found is not None
    return found.written_ms


def test_a_row_of_a_table_is_followed_under_the_key_that_its_serde_writes() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, (" a", "1"), ("a", "2"), ("b ", "3"))
    world.kafka.committed_offsets[CHANGELOG] = OffsetAndMetadata(3, "")
    logged = replace(
        world.store(),
        is_source_topic=True,
        encode_row=lambda record: (record.key().strip(), record.value()),
    )
    world.follow(logged)
    assert (held(logged), logged.changelog_position) == ({"a": "2", "b": "3"}, 3)
