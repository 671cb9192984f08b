"""Test that a restore reads exactly the missing records and returns each task once it is ready.

A task may also be taken back before that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from state.errors import StoreCorrupted
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError
from streams.errors import OutcomeUnknown
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.testing.cluster import InMemoryTransaction
from tests.unit.streams.runtime.restored import (
    CHANGELOG,
    OTHER,
    BulkDisk,
    Restoring,
    checkpoint,
    held,
)


def test_a_new_store_is_built_from_the_whole_changelog() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("a", "3"), ("b", None))
    logged = world.store()
    assert world.restore(logged) == 4
    assert held(logged) == {"a": "3"}
    assert logged.changelog_position == 4
    assert checkpoint(logged) == (4, world.kafka.topic_ids[CHANGELOG.topic])


def test_only_what_the_checkpoint_has_not_seen_is_read() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store({"a": "1", "b": "2"}, position=2)
    assert world.restore(logged) == 1
    assert [message.offset() for message in world.consumer.taken] == [2]
    assert held(logged) == {"a": "1", "b": "2", "c": "3"}


def test_a_store_that_is_at_the_end_reads_nothing() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    assert world.restore(world.store({"a": "1"}, position=1)) == 0
    assert world.script.filter_calls("restore.add_partitions", "restore.poll_records") == []


def test_a_task_without_stores_is_ready_at_once_and_asks_nothing() -> None:
    world = Restoring()
    world.restorer.add_tasks([world.task()])
    assert [task.name for task in world.restorer.wait_and_pop_restored_tasks()] == ["0_0"]
    assert world.script.calls == []


def test_markers_and_aborted_records_at_the_end_hang_nothing() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    aborted = InMemoryTransaction()
    world.kafka.append_record(CHANGELOG, b"a", b"wrong", 0, transaction=aborted)
    world.kafka.end_transaction(aborted, committed=False)
    logged = world.store({"a": "1"}, position=1)
    assert world.restore(logged) == 0
    assert (logged.changelog_position, held(logged)) == (3, {"a": "1"})
    # It does not read them a second time.
    assert checkpoint(logged)[0] == 3


@pytest.mark.parametrize("committed", [True, False])
def test_an_open_transaction_is_waited_for_and_its_end_decides(
    committed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    transaction = InMemoryTransaction()
    world.kafka.append_record(CHANGELOG, b"a", b"2", 0, transaction=transaction)
    logged = world.store()
    task = world.task(logged)
    world.restorer.add_tasks([task])
    world.turns(3)
    assert logged.changelog_position == 1, "what is before the open transaction is there"
    world.clock.advance_monotonic_clock(6)
    world.turns(1)
    assert f"waiting for an open transaction to end, or for the broker, on {CHANGELOG}" in (
        caplog.text
    )
    world.kafka.end_transaction(transaction, committed=committed)
    assert world.until_ready() == [task]
    assert world.restorer.reader.restored_records == (2 if committed else 1)
    assert held(logged) == {"a": "2" if committed else "1"}


def test_a_restore_that_stands_still_for_too_long_is_given_up_and_says_where() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.kafka.append_record(CHANGELOG, b"a", b"2", 0, transaction=InMemoryTransaction())
    world.restorer.add_tasks([world.task(world.store())])
    with pytest.raises(StreamsError, match=r"stood still for \d+ s: a-c-changelog\[0\] at 1 of 2"):
        world.until_ready(lambda: world.clock.advance_monotonic_clock(1))
    assert world.clock.elapsed_s > 1_060


def test_a_task_taken_back_keeps_what_it_has_and_goes_on_from_there() -> None:
    world = Restoring(batch=2)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store()
    task = world.task(logged)
    world.restorer.add_tasks([task])
    world.turns(1)
    assert [each.task for each in world.restorer.reader.progress] == ["0_0"]
    assert world.restorer.withdraw_tasks(["0_0", "elsewhere"]) == [task]
    assert world.restorer.reader.progress == ()
    assert held(logged) == {"a": "1", "b": "2"}
    assert checkpoint(logged)[0] == 2
    assert world.consumer.assigned == set()
    world.turns(5)
    world.consumer.taken.clear()
    assert world.restore(logged) == 1
    assert [message.offset() for message in world.consumer.taken] == [2]


def test_what_a_task_has_got_is_durable_when_it_is_taken_back_and_when_it_is_ready() -> None:
    world = Restoring(batch=1)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    disk = BulkDisk()
    logged = world.store(disk=disk)
    world.restorer.add_tasks([world.task(logged)])
    world.turns(1)
    assert disk.durable is None
    world.restorer.withdraw_tasks(["0_0"])
    assert disk.durable is not None
    assert disk.durable.position == 1
    world.restore(logged)
    assert disk.durable.position == 2


def test_a_task_taken_back_before_anything_was_asked_or_when_it_is_ready_is_given_once() -> None:
    world = Restoring()
    first, second = world.task(world.store()), world.task(name="0_1")
    world.restorer.add_tasks([first, second])
    assert world.restorer.withdraw_tasks(["0_0", "0_1"]) == [first, second]
    assert world.restorer.withdraw_tasks(["0_0", "0_1"]) == []
    world.turns(3)


def test_the_consumer_has_nothing_assigned_after_a_restore() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.restore(world.store())
    assert world.consumer.assigned == set()


def test_several_stores_are_caught_up_at_once_each_to_its_own_end() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("a", "2"))
    world.kafka.load(OTHER, ("x", "9"))
    first, second = world.store(), world.store(changelog=OTHER)
    assert world.restore(first, second) == 3
    assert (held(first), held(second)) == ({"a": "2"}, {"x": "9"})
    assert (first.changelog_position, second.changelog_position) == (2, 1)
    assert world.script.calls.count("restore.add_partitions") == 1


def test_a_task_with_little_to_replay_does_not_wait_for_a_big_one() -> None:
    world = Restoring(batch=2)
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(100)])
    world.kafka.load(OTHER, ("x", "9"))
    small = world.task(world.store({}, 0, OTHER), name="0_1")
    big = world.task(world.store({}, 98))
    world.kafka.load(CHANGELOG, ("a", "more"))
    world.restorer.add_tasks([small, big])
    assert world.until_ready() != [small, big]
    assert "restore.remove_partitions" in world.script.calls
    assert len(world.until_ready()) == 1


def test_a_task_begun_while_another_is_on_its_way_joins_it() -> None:
    world = Restoring(batch=1)
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(5)])
    world.kafka.load(OTHER, ("x", "9"))
    world.restorer.add_tasks([world.task(world.store())])
    world.turns(2)
    world.restorer.add_tasks([world.task(world.store(changelog=OTHER), name="0_1")])
    names = [task.name for _ in range(2) for task in world.until_ready()]
    assert sorted(names) == ["0_0", "0_1"]


def test_a_store_that_is_open_catches_up_from_where_it_is_after_a_rollback() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store()
    world.restore(logged)
    logged.changelog_position = 77  # This position counts records that were rolled back.
    world.kafka.load(CHANGELOG, ("a", "2"))
    assert world.restore(logged) == 1
    assert (held(logged), logged.changelog_position) == ({"a": "2"}, 2)


def test_offsets_are_asked_again_while_the_broker_is_away() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("no answer"))
    world.script.fail("admin.fetch_topic_ids", OutcomeUnknown("no answer"))
    world.restorer.add_tasks([task := world.task(logged := world.store())])
    assert world.until_ready(lambda: world.clock.advance_monotonic_clock(0.1)) == [task]
    assert held(logged) == {"a": "1"}


def test_a_broker_that_stays_away_is_given_up_on() -> None:
    world = Restoring()
    for attempt in range(1, 500):
        world.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("no answer"), at=attempt)
    world.restorer.add_tasks([world.task(world.store())])
    with pytest.raises(StreamsError, match="no answer for 60 s"):
        world.until_ready(lambda: world.clock.advance_monotonic_clock(0.5))


@pytest.mark.parametrize(("failures", "warnings"), [(1, 0), (12, 0), (25, 1)])
def test_changelogs_that_are_asked_for_again_are_a_warning_once_that_lasts(
    failures: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = Restoring()
    for attempt in range(1, failures + 1):
        error = OutcomeUnknown("FENCED_LEADER_EPOCH")
        world.script.fail("admin.fetch_latest_offsets", error, at=attempt)
    world.restorer.add_tasks([world.task(world.store())])
    world.until_ready(lambda: world.clock.advance_monotonic_clock(0.5))
    told = [each.levelname for each in caplog.records if "asks again" in each.message]
    assert told == ["INFO"] + ["WARNING"] * warnings


def test_the_time_without_an_answer_counts_anew_after_an_answer() -> None:
    world = Restoring()
    for store in (world.store(), world.store(changelog=OTHER)):
        world.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("no answer"))
        task = world.task(store)
        world.restorer.add_tasks([task])
        assert world.until_ready(lambda: world.clock.advance_monotonic_clock(61)) == [task]


def test_a_store_that_may_have_missed_writes_is_rebuilt_alone_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("cut", "0"), ("cut", "0"), ("a", "1"))
    world.kafka.load(OTHER, ("x", "8"), ("x", "9"))
    world.kafka.logs[CHANGELOG].start_offset = 2
    lying = world.store({"a": "stale", "cut": "stale"}, position=1)
    true = world.store({"x": "8"}, position=1, changelog=OTHER)
    assert world.restore(lying, true) == 2
    assert (held(lying), held(true)) == ({"a": "1"}, {"x": "9"})
    assert "store 'a-c-changelog' of task 0_0 is rebuilt from its changelog: it is at 1" in (
        caplog.text
    )
    assert caplog.text.count("rebuilt") == 1


class DamagedDisk(MemoryDisk):
    """Stands in for a disk that refuses to load until it was cleared this many times."""

    def __init__(self, clears: int) -> None:
        super().__init__()
        self.clears_left = clears

    def load_changes(
        self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: StoreCheckpoint
    ) -> None:
        if self.clears_left:
            raise StoreCorrupted("c", "/state", "bad block")
        super().load_changes(changes, checkpoint)

    def clear_all_data(self) -> None:
        self.clears_left -= 1
        super().clear_all_data()


def test_a_damaged_store_is_rebuilt_alone_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    world.kafka.load(OTHER, ("x", "8"), ("x", "9"))
    damaged = world.store({"a": "?"}, position=1, disk=DamagedDisk(1))
    sound = world.store({"x": "8"}, position=1, changelog=OTHER)
    world.restore(damaged, sound)
    assert (held(damaged), held(sound)) == ({"a": "1", "b": "2"}, {"x": "9"})
    assert [m.offset() for m in world.consumer.taken if m.topic() == OTHER.topic] == [1]
    assert caplog.text.count("is rebuilt from its changelog: store 'c' in /state is damaged") == 1


def test_a_disk_that_damages_its_stores_again_and_again_is_not_filled_for_ever() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.restorer.add_tasks([world.task(world.store(disk=DamagedDisk(100)))])
    with pytest.raises(StoreCorrupted, match="bad block"):
        world.until_ready()


def test_a_changelog_that_lost_what_the_offsets_rest_on_is_refused_and_nothing_is_emptied() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store({"a": "1", "b": "2"}, position=2)
    world.restorer.add_tasks([world.task(logged, required=2)])
    with pytest.raises(StreamsError, match=r"ends at 1, and .* when it stood at 2"):
        world.until_ready()
    assert held(logged) == {"a": "1", "b": "2"}
    assert checkpoint(logged)[0] == 2


def test_a_changelog_that_is_cut_under_a_restore_means_a_new_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring(batch=1)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store()
    world.restorer.add_tasks([world.task(logged)])
    world.turns(1)
    world.kafka.logs[CHANGELOG].start_offset = 2
    world.until_ready()
    assert held(logged) == {"c": "3"}
    assert f"it is at 1 and {CHANGELOG} has 2 to 3" in caplog.text


def age_of(logged: LoggedStore) -> int:
    found = logged.store.read_checkpoint()
    assert found is not None
    return found.written_ms


def test_a_store_on_its_way_is_as_old_as_when_it_set_out_and_new_when_it_arrives() -> None:
    """Test that a store keeps its old time during a restore, and gets the start's time at its end.

    Tombstones that it has not read yet may be as old as that.
    """
    world = Restoring(batch=1)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store({"a": "1"}, position=1, written_ms=900_000)
    world.restorer.add_tasks([task := world.task(logged)])
    asked_ms = int(world.clock() * 1_000)
    world.turns(1)
    assert age_of(logged) == 900_000
    world.clock.advance_monotonic_clock(100)
    assert world.until_ready() == [task]
    assert age_of(logged) == asked_ms


def test_a_store_that_took_longer_than_deletions_are_kept_is_rebuilt_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring(batch=1)
    world.kafka.topic_settings[CHANGELOG.topic] = {"delete.retention.ms": "10000"}
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store({"a": "1", "gone": "0"}, position=1, written_ms=999_000)
    world.restorer.add_tasks([task := world.task(logged)])
    world.turns(1)
    world.clock.advance_monotonic_clock(11)
    assert world.until_ready(lambda: world.clock.advance_monotonic_clock(11)) == [task]
    assert held(logged) == {"a": "1", "b": "2", "c": "3"}
    assert caplog.text.count("is rebuilt") == 1
    assert "some may have been missed" in caplog.text


def test_a_store_whose_time_nobody_noted_catches_up_and_has_one_from_then_on() -> None:
    world = Restoring()
    world.clock.elapsed_s = 1e9
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("c", "3"))
    logged = world.store({"a": "1"}, position=1, written_ms=0)
    assert world.restore(logged) == 2
    assert age_of(logged) == 1_000_000_000_000


def test_progress_is_a_snapshot_and_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = Restoring(batch=2)
    world.kafka.load(CHANGELOG, *[("a", str(n)) for n in range(6)])
    world.restorer.add_tasks([world.task(world.store({}, position=1))])
    world.turns(1)
    world.clock.advance_monotonic_clock(10)
    world.turns(1)
    (progress,) = world.restorer.reader.progress
    assert (progress.task, progress.store) == ("0_0", "a-c-changelog")
    assert (progress.restored_records, progress.records_left) == (4, 1)
    assert progress.offsets_per_s == pytest.approx(0.4)
    assert progress.remaining_s == pytest.approx(2.5)
    assert "4 records replayed, at most 1 left, 0 a second, 2 s to go" in caplog.text
    world.until_ready()
    assert world.listener.events == [
        ("start", "a-c-changelog", 1, 6),
        ("batch", "a-c-changelog", 3, 2),
        ("batch", "a-c-changelog", 5, 2),
        ("batch", "a-c-changelog", 6, 1),
        ("end", "a-c-changelog", 5),
    ]
    assert world.restorer.reader.progress == ()


def test_a_listener_that_fails_is_logged_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    del world.listener.events
    assert world.restore(world.store()) == 1
    assert "the restore listener's on_restore_start" in caplog.text


def test_beside_the_stream_thread_a_task_is_waited_for_and_taken_back() -> None:
    world = Restoring(batch=1, beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    world.kafka.append_record(OTHER, b"x", b"9", 0, transaction=InMemoryTransaction())
    quick = world.task(world.store())
    stuck = world.task(world.store(changelog=OTHER), name="0_1")
    world.restorer.add_tasks([quick, stuck])
    assert world.restorer.wait_and_pop_restored_tasks(wait_s=10) == [quick]
    assert world.restorer.withdraw_tasks(["0_1"]) == [stuck]
    world.restorer.close()
    assert not any(thread.name == "restore-0" for thread in threading.enumerate())


def test_what_goes_wrong_beside_is_raised_where_tasks_are_asked_for() -> None:
    world = Restoring(beside=True)
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.script.fail("restore.poll_records", StreamsError("no"))
    world.restorer.add_tasks([task := world.task(world.store())])
    with pytest.raises(StreamsError, match="no"):
        world.restorer.wait_and_pop_restored_tasks(wait_s=10)
    assert world.restorer.withdraw_tasks(["0_0"]) == [task]
    world.restorer.close()
