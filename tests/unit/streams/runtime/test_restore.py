"""Restore: what is missing and no more, by position; and stores that could lie start over."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from state.key_value import KeyValueStore
from state.memory import MemoryDisk
from state.store import Checkpoint
from streams import StreamsError, serdes
from streams.positions import Partition
from streams.runtime.restore import restore
from streams.runtime.stores import open_store
from streams.runtime.task import LoggedStore
from streams.topology.nodes import StoreSpec
from tests.unit.streams.runtime.fakes import Clock, FakeAdmin, FakeConsumer, Script
from tests.unit.streams.runtime.kafka import Entry, Kafka, Transaction

CHANGELOG = Partition("a-c-changelog", 0)
OTHER = Partition("a-d-changelog", 0)


class Restoring:
    """A changelog in memory, and stores that are behind it."""

    def __init__(self) -> None:
        self.script = Script()
        self.kafka = Kafka({"a-c-changelog": 1, "a-d-changelog": 1})
        self.consumer = FakeConsumer(self.kafka, self.script, Clock(), "restore")
        self.admin = FakeAdmin(self.kafka, self.script)

    def store(
        self,
        held: dict[str, str] | None = None,
        position: int = 0,
        changelog: Partition = CHANGELOG,
    ) -> LoggedStore:
        """A store that holds this, as of `position`; None: one that was never written."""
        disk = MemoryDisk()
        topic_id = self.kafka.topic_ids[changelog.topic]
        if held is not None:
            changes = {k.encode(): struct.pack(">q", 0) + v.encode() for k, v in held.items()}
            disk.write(changes, Checkpoint(position, topic_id))
        store = open_store(
            StoreSpec(name=changelog.topic, key=serdes.string, value=serdes.string), disk
        )
        return LoggedStore(store, changelog, topic_id, position=0)

    def restore(
        self,
        *stores: LoggedStore,
        required: dict[Partition, int] | None = None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> int | None:
        looks = 0

        def patient() -> bool:
            nonlocal looks
            looks += 1
            assert looks < 1_000, "the restore hangs"
            return interrupted()

        return restore(
            stores, self.consumer, self.admin, required=required or {}, interrupted=patient
        )


def held(logged: LoggedStore) -> dict[str, str]:
    assert isinstance(logged.store, KeyValueStore)
    return dict(logged.store.all())


def test_a_new_store_is_built_from_the_whole_changelog() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"), ("a", "3"), ("b", None))
    logged = world.store()
    assert world.restore(logged) == 4
    assert held(logged) == {"a": "3"}
    assert logged.position == 4
    assert logged.store.checkpoint() == Checkpoint(4, logged.topic_id)


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
    assert world.script.only("restore.add", "restore.take") == []


def test_markers_and_aborted_records_at_the_end_hang_nothing() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    aborted = Transaction()
    world.kafka.append(CHANGELOG, Entry(b"a", b"wrong", 0, aborted))
    world.kafka.end(aborted, committed=False)
    logged = world.store({"a": "1"}, position=1)
    assert world.restore(logged) == 0
    assert (logged.position, held(logged)) == (3, {"a": "1"})
    # It does not read them a second time.
    assert logged.store.checkpoint() == Checkpoint(3, logged.topic_id)


@pytest.mark.parametrize("committed", [True, False])
def test_an_open_transaction_is_waited_for_and_its_end_decides(committed: bool) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    transaction = Transaction()
    world.kafka.append(CHANGELOG, Entry(b"a", b"2", 0, transaction))
    logged = world.store()

    def end_it_at_last() -> bool:
        takes = world.script.calls.count("restore.take")
        if takes == 5:
            assert logged.position == 1, "what is before the open transaction is there"
            world.kafka.end(transaction, committed=committed)
        return False

    assert world.restore(logged, interrupted=end_it_at_last) == (2 if committed else 1)
    assert held(logged) == {"a": "2" if committed else "1"}


def test_an_interrupted_restore_keeps_what_it_has_and_goes_on_from_there() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("b", "2"))
    transaction = Transaction()
    world.kafka.append(CHANGELOG, Entry(b"c", b"3", 0, transaction))
    logged = world.store()
    assert world.restore(logged, interrupted=lambda: bool(world.consumer.taken)) is None
    assert held(logged) == {"a": "1", "b": "2"}
    assert logged.store.checkpoint() == Checkpoint(2, logged.topic_id)
    world.kafka.end(transaction, committed=True)
    world.consumer.taken.clear()
    assert world.restore(logged) == 1
    assert [message.offset() for message in world.consumer.taken] == [2]


def test_the_consumer_has_nothing_assigned_after_a_restore_however_it_ends() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    world.restore(world.store(), interrupted=lambda: True)
    assert world.consumer.assigned == set()
    world.script.fail("restore.take", StreamsError("no"))
    with pytest.raises(StreamsError):
        world.restore(world.store())
    assert world.consumer.assigned == set()


def test_several_stores_are_caught_up_at_once_each_to_its_own_end() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"), ("a", "2"))
    world.kafka.load(OTHER, ("x", "9"))
    first, second = world.store(), world.store(changelog=OTHER)
    assert world.restore(first, second) == 3
    assert (held(first), held(second)) == ({"a": "2"}, {"x": "9"})
    assert (first.position, second.position) == (2, 1)
    assert world.script.calls.count("restore.add") == 1


def test_a_store_of_a_changelog_that_was_made_again_is_rebuilt_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Restoring()
    logged = world.store({"a": "stale", "gone": "stale"}, position=1)
    world.kafka.create(CHANGELOG.topic, 1)
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged.topic_id = world.kafka.topic_ids[CHANGELOG.topic]
    assert world.restore(logged) == 1
    assert held(logged) == {"a": "1"}
    assert f"{CHANGELOG} was deleted and made again" in caplog.text


@pytest.mark.parametrize("position", [1, 9], ids=["before the start", "after the end"])
def test_a_store_outside_its_changelog_is_rebuilt_and_the_log_says_why(
    position: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("cut", "0"), ("cut", "0"), ("a", "1"))
    world.kafka.starts[CHANGELOG] = 2
    logged = world.store({"a": "stale", "cut": "stale"}, position=position)
    assert world.restore(logged) == 1
    assert held(logged) == {"a": "1"}
    assert f"it is at {position} and {CHANGELOG} has 2 to 3" in caplog.text


def test_a_changelog_that_lost_what_the_offsets_rest_on_is_refused_and_nothing_is_emptied() -> None:
    world = Restoring()
    world.kafka.load(CHANGELOG, ("a", "1"))
    logged = world.store({"a": "1", "b": "2"}, position=2)
    with pytest.raises(StreamsError, match=r"ends at 1, and .* when it stood at 2"):
        world.restore(logged, required={CHANGELOG: 2})
    assert held(logged) == {"a": "1", "b": "2"}
    assert logged.store.checkpoint() == Checkpoint(2, logged.topic_id)


def test_a_changelog_made_again_is_refused_where_offsets_rest_on_the_old_one() -> None:
    world = Restoring()
    logged = world.store({"a": "1"}, position=1)
    world.kafka.create(CHANGELOG.topic, 1)
    world.kafka.load(CHANGELOG, ("b", "2"), ("b", "3"))
    logged.topic_id = world.kafka.topic_ids[CHANGELOG.topic]
    with pytest.raises(StreamsError, match="deleted, made again or cut"):
        world.restore(logged, required={CHANGELOG: 1})
    assert held(logged) == {"a": "1"}
