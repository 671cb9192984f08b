"""Opening tasks: stable offsets, where to start without any, and stores as their kind demands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from state.directory import StateDirectory
from streams import App, Store, serdes
from streams.config import StreamsConfig
from streams.errors import OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.positions import Committed, Partition
from streams.runtime.opening import Opener
from streams.runtime.task import Task
from streams.topology.build import Topology
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    FakeMember,
    Script,
)
from tests.unit.streams.runtime.kafka import Kafka, Transaction
from tests.unit.streams.runtime.world import counting

INPUT = Partition("in", 0)
REPARTITION = Partition("a-c-repartition", 0)
CHANGELOG = Partition("a-c-changelog", 0)


def repartitioned() -> Topology:
    """Sub-topology 0 gives the records of `in` a new key, 1 counts them."""
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
    return app.topology()


class Opening:
    """An opener on fakes. `waits` are the seconds that it waited for open transactions."""

    def __init__(self, topology: Topology, state: Path, reset: str = "earliest") -> None:
        self.script = Script()
        self.kafka = Kafka({"in": 1, "out": 1, CHANGELOG.topic: 1, REPARTITION.topic: 1})
        self.member = FakeMember(self.kafka, self.script)
        self.waits: list[float] = []
        self.while_waiting: Callable[[], None] = lambda: None
        self.interrupted = False
        self.directory = StateDirectory(state, "a")
        self._opener = Opener(
            topology,
            StreamsConfig(auto_offset_reset=reset),
            self.directory,
            FakeAdmin(self.kafka, self.script),
            FakeConsumer(self.kafka, self.script, Clock(), "restore"),
            committed_offsets=self.member.committed_offsets,
            wait=self._wait,
        )
        self._tasks: list[Task] = []

    def located(self, name: str = "0_0", partition: Partition = INPUT) -> Task | None:
        """The task with its offsets read back; None where it is not to be had now."""
        task = self._opener.create(name, [partition])
        if task is None:
            return None
        self._tasks.append(task)
        return task if self._opener.locate([task], lambda: self.interrupted) else None

    def replayed(self) -> int | None:
        """Catches the stores of the task up, and closes it again."""
        task = self.located()
        assert task is not None
        replayed = self._opener.catch_up([task], lambda: self.interrupted)
        task.close()
        return replayed

    def position(self, name: str = "0_0", partition: Partition = INPUT) -> int:
        """Where the task begins; it is closed again."""
        task = self.located(name, partition)
        assert task is not None
        task.close()
        return task.positions[partition]

    def close_tasks(self) -> None:
        for task in self._tasks:
            task.close()

    def task_of(self, topic: str, partition: int) -> str:
        return self._opener.task_of(topic, partition)

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        assert len(self.waits) < 100, "it waits without end"
        self.while_waiting()


def test_a_task_begins_at_the_committed_offset(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    world.kafka.offsets[INPUT] = Committed(7, "")
    assert world.position() == 7
    assert world.waits == []


@pytest.mark.parametrize(("committed", "position"), [(True, 9), (False, 7)])
def test_offsets_of_an_open_transaction_are_waited_for(
    tmp_path: Path, committed: bool, position: int
) -> None:
    world = Opening(counting(), tmp_path)
    world.kafka.offsets[INPUT] = Committed(7, "")
    transaction = Transaction(offsets={INPUT: Committed(9, "")})
    world.kafka.open_transactions[99] = transaction

    def end_it() -> None:
        if len(world.waits) == 3:
            del world.kafka.open_transactions[99]
            world.kafka.end(transaction, committed=committed)

    world.while_waiting = end_it
    assert world.position() == position
    assert len(world.waits) == 3


def test_an_interruption_ends_the_wait_and_the_directory_stays_ours(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    world.kafka.open_transactions[99] = Transaction(offsets={INPUT: Committed(9, "")})

    def interrupt() -> None:
        world.interrupted = True

    world.while_waiting = interrupt
    assert world.located() is None
    world.close_tasks()
    world.directory.lock_task("0_0").release()


def test_offsets_that_can_not_be_read_leave_the_outcome_unknown(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    world.script.fail("member.committed_offsets", ConnectionLost("gone"))
    with pytest.raises(OutcomeUnknown, match="gone"):
        world.located()


def test_a_task_that_can_not_be_created_leaves_its_directory_free(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    world.kafka.topic_ids.clear()
    with pytest.raises(KeyError):
        world.located()
    world.directory.lock_task("0_0").release()


@pytest.mark.parametrize(("reset", "position"), [("earliest", 1), ("latest", 3)])
def test_an_input_without_a_committed_offset_begins_where_the_setting_says(
    tmp_path: Path, reset: str, position: int
) -> None:
    world = Opening(counting(), tmp_path, reset)
    world.kafka.load(INPUT, ("a", "1"), ("a", "2"), ("a", "3"))
    world.kafka.starts[INPUT] = 1
    assert world.position() == position


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_repartition_topic_is_never_skipped(tmp_path: Path, reset: str) -> None:
    world = Opening(repartitioned(), tmp_path, reset)
    world.kafka.load(REPARTITION, ("a", "1"), ("a", "2"))
    assert world.position("1_0", REPARTITION) == 0


def test_offsets_are_read_before_the_changelogs_ends(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    world.replayed()
    names = ["member.committed_offsets", "admin.latest"]
    # The first `latest` is for inputs that begin at their end: here there are none.
    assert world.script.only(*names)[0] == names[0]
    assert world.script.only(*names)[-1] == names[1]


def load_changelog(world: Opening) -> None:
    world.kafka.load(CHANGELOG, ("a", "00000001"), ("a", "00000002"), ("b", "00000003"))


@pytest.mark.parametrize(
    ("store", "again"), [(Store.persistent("c"), 0), (Store.in_memory("c"), 3)]
)
def test_a_store_in_memory_is_replayed_each_time_and_one_on_disk_once(
    tmp_path: Path, store: Store, again: int
) -> None:
    world = Opening(counting(store), tmp_path)
    load_changelog(world)
    assert [world.replayed(), world.replayed()] == [3, again]


def test_a_locked_directory_is_left_alone_until_it_is_free(tmp_path: Path) -> None:
    world = Opening(counting(), tmp_path)
    lock = world.directory.lock_task("0_0")
    assert world.located() is None
    lock.release()
    assert world.position() == 0


def test_a_source_topic_that_the_topology_does_not_have_means_another_leader(
    tmp_path: Path,
) -> None:
    world = Opening(repartitioned(), tmp_path)
    assert world.task_of("in", 3) == "0_3"
    assert world.task_of(REPARTITION.topic, 0) == "1_0"
    with pytest.raises(TaskMigrated, match="'other'"):
        world.task_of("other", 0)
