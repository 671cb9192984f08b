"""Test that tasks open their stores and start at stable offsets, or by policy without any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from state.directory import StateDirectory
from state.errors import StateError
from state.store_checkpoint import StoreCheckpoint
from state.write_behind import WriteBehindDisk
from streams import App, Store, serdes, windows
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TopologyRefused
from streams.membership.connection import ConnectionLost
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.settings.offset_reset import InitialPolicies, parse_reset_policy
from streams.testing.cluster import InMemoryTransaction
from streams.topology.build import Topology
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    FakeMember,
    Script,
    create_follower,
)
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import build_counting_topology

INPUT = Partition("in", 0)
REPARTITION = Partition("a-c-repartition", 0)
CHANGELOG = Partition("a-c-changelog", 0)
COMMITTED = OffsetAndMetadata(0, encode_metadata({"c": 3}))


def repartitioned() -> Topology:
    """Build a topology whose sub-topology 0 gives `in` a new key, and whose 1 counts by it."""
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
    return app.topology()


class Opening:
    """Holds a task creator that runs on fakes."""

    def __init__(self, topology: Topology, state: Path, reset: str = "earliest") -> None:
        self.script = Script()
        self.clock = Clock()
        self.kafka = Kafka({"in": 1, "out": 1, CHANGELOG.topic: 1, REPARTITION.topic: 1})
        self.member = FakeMember(self.kafka, self.script)
        self.directory = StateDirectory(state, "a")
        admin = FakeAdmin(self.kafka, self.script)
        self.opener = TaskCreator(
            topology,
            self.directory,
            OffsetResetter(
                admin,
                self.clock,
                initial_policies=InitialPolicies(parse_reset_policy(reset, stop_word="none")),
                offset_out_of_range="fail",
                internal_topics=topology.repartition_topics,
            ),
            self.clock,
            committed_offsets=self.member.fetch_committed_offsets,
        )
        reader = StoreChangelogReader[Task](
            "restore-0",
            FakeConsumer(self.kafka, self.script, self.clock, "restore"),
            admin,
            self.clock,
            is_transactional=True,
            timeout_ms=60_000,
        )
        follower = create_follower(self.kafka, self.script, self.clock)
        self.restorer = Restorer(reader, follower, self.clock)

    def create(self, name: str = "0_0", partition: Partition = INPUT) -> Task:
        task = self.opener.create_task(name, [partition])
        assert task is not None
        return task

    def replayed(self) -> int:
        """Restore the task's stores, close it, and return the number of restored records."""
        before = self.restorer.reader.restored_records
        self.restorer.add_tasks(self.opener.start_restoring_from_committed([self.create()]))
        while not (ready := self.restorer.wait_and_pop_restored_tasks()):
            pass
        ready[0].close()
        return self.restorer.reader.restored_records - before

    def position(self, name: str = "0_0", partition: Partition = INPUT) -> int:
        """Return the offset at which the task begins, after closing it again."""
        (task,) = self.opener.start_restoring_from_committed([self.create(name, partition)])
        task.close()
        return task.positions[partition]


def test_a_task_begins_at_the_committed_offset(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(7, "")
    assert world.position() == 7


@pytest.mark.parametrize(("committed", "position"), [(True, 9), (False, 7)])
def test_offsets_of_an_open_transaction_are_waited_for(
    tmp_path: Path, committed: bool, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world = Opening(build_counting_topology(), tmp_path)
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(7, "")
    transaction = InMemoryTransaction(offsets={INPUT: OffsetAndMetadata(9, "")})
    world.kafka.open_transactions["another"] = transaction
    task = world.create()
    for _ in range(3):
        assert world.opener.start_restoring_from_committed([task]) == []
        world.clock.advance_monotonic_clock(1.5)
    assert "waiting for an open transaction to end on in[0]" in caplog.text
    world.kafka.end_transaction(transaction, committed=committed)
    assert world.opener.start_restoring_from_committed([task]) == [task]
    assert task.positions == {INPUT: position}
    task.close()


def test_a_task_whose_offsets_are_stable_does_not_wait_for_another(tmp_path: Path) -> None:
    world = Opening(repartitioned(), tmp_path)
    world.kafka.open_transactions["another"] = InMemoryTransaction(
        offsets={INPUT: OffsetAndMetadata(9, "")}
    )
    first, second = world.create(), world.create("1_0", REPARTITION)
    assert world.opener.start_restoring_from_committed([first, second]) == [second]
    first.close()
    second.close()


def test_the_coordinator_is_not_asked_without_a_pause(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    world.kafka.open_transactions["another"] = InMemoryTransaction(
        offsets={INPUT: OffsetAndMetadata(9, "")}
    )
    task = world.create()
    for _ in range(5):
        assert world.opener.start_restoring_from_committed([task]) == []
    assert world.script.calls.count("member.fetch_committed_offsets") == 1
    task.close()


def test_offsets_that_can_not_be_read_leave_the_outcome_unknown(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    world.script.fail("member.fetch_committed_offsets", ConnectionLost("gone"))
    task = world.create()
    with pytest.raises(OutcomeUnknown, match="gone"):
        world.opener.start_restoring_from_committed([task])
    task.close()


def test_a_task_that_can_not_be_created_leaves_its_directory_free(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    path = world.directory.build_store_path("0_0", "c")
    path.parent.mkdir()
    path.touch()
    with pytest.raises(StateError):
        world.create()
    world.directory.lock_task("0_0").release()


@pytest.mark.parametrize(
    ("reset", "position"),
    [("earliest", 1), ("latest", 3), ("by_duration:999998", 2), ("by_duration:PT1S", 3)],
)
def test_an_input_without_a_committed_offset_begins_where_the_setting_says(
    tmp_path: Path, reset: str, position: int
) -> None:
    world = Opening(build_counting_topology(), tmp_path, reset)
    world.kafka.load(INPUT, ("a", "1"), ("a", "2"), ("a", "3"))
    world.kafka.logs[INPUT].start_offset = 1
    assert world.position() == position


def test_an_input_without_a_committed_offset_is_refused_where_the_setting_says_so(
    tmp_path: Path,
) -> None:
    world = Opening(build_counting_topology(), tmp_path, "none")
    task = world.create()
    with pytest.raises(StreamsError, match=r"nothing is committed for in\[0\], and auto_offset"):
        world.opener.start_restoring_from_committed([task])
    task.close()
    world.kafka.committed_offsets[INPUT] = OffsetAndMetadata(0, "")
    assert world.position() == 0


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_a_repartition_topic_is_never_skipped(tmp_path: Path, reset: str) -> None:
    world = Opening(repartitioned(), tmp_path, reset)
    world.kafka.load(REPARTITION, ("a", "1"), ("a", "2"))
    assert world.position("1_0", REPARTITION) == 0


def test_offsets_are_read_before_the_changelogs_ends(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    world.replayed()
    names = ["member.fetch_committed_offsets", "admin.fetch_latest_offsets"]
    # The first latest offsets are for inputs that begin at their end: here there are none.
    assert world.script.filter_calls(*names)[0] == names[0]
    assert world.script.filter_calls(*names)[-1] == names[1]


def load_changelog(world: Opening) -> None:
    world.kafka.load(CHANGELOG, ("a", "00000001"), ("a", "00000002"), ("b", "00000003"))


@pytest.mark.parametrize(
    ("store", "again"), [(Store.persistent("c"), 0), (Store.in_memory("c"), 3)]
)
def test_a_store_in_memory_is_replayed_each_time_and_one_on_disk_once(
    tmp_path: Path, store: Store, again: int
) -> None:
    world = Opening(build_counting_topology(store), tmp_path)
    load_changelog(world)
    world.kafka.committed_offsets[INPUT] = COMMITTED
    assert [world.replayed(), world.replayed()] == [3, again]


def test_a_damaged_store_is_rebuilt_when_it_is_opened_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    load_changelog(world)
    world.kafka.committed_offsets[INPUT] = COMMITTED
    assert world.replayed() == 3
    (world.directory.build_store_path("0_0", "c") / "CURRENT").write_text("nothing\n")
    assert world.replayed() == 3
    assert "is damaged" in caplog.text
    assert "store 'c' of task 0_0 is rebuilt from its changelog: store 'c' in" in caplog.text
    assert world.replayed() == 0


def test_a_locked_directory_is_left_alone_until_it_is_free(tmp_path: Path) -> None:
    world = Opening(build_counting_topology(), tmp_path)
    lock = world.directory.lock_task("0_0")
    assert world.opener.create_task("0_0", [INPUT]) is None
    lock.release()
    assert world.position() == 0


def test_a_source_topic_that_the_topology_does_not_have_is_refused(tmp_path: Path) -> None:
    world = Opening(repartitioned(), tmp_path)
    assert world.opener.task_name_of_partition("in", 3) == "0_3"
    assert world.opener.task_name_of_partition(REPARTITION.topic, 0) == "1_0"
    with pytest.raises(TopologyRefused, match="'other'"):
        world.opener.task_name_of_partition("other", 0)


def counted(*topics: str) -> Topology:
    """Build a topology that counts each topic in a store of its own, in this order."""
    app = App("a")
    for topic in topics:
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        stream.group_by_key().count(store=f"of-{topic}")
    return app.topology()


def test_a_task_whose_sub_topology_has_another_number_opens_its_own_directory(
    tmp_path: Path,
) -> None:
    """Test that a renumbered sub-topology's task finds its directory by what the sub-topology is.

    This holds beside a task of the other version too, which has the directory of the number.
    """
    other = Partition("other", 0)
    old = Opening(counted("in", "other"), tmp_path)
    first, second = old.create("0_0", INPUT), old.create("1_0", other)
    store = second.stores.logged["of-other"].store
    store.put("k", 7, 1)  # type: ignore[attr-defined]
    store.drain_writes()
    store.commit(StoreCheckpoint(1, "topic id", 1))
    second.close()
    new = Opening(counted("other", "in"), tmp_path)
    assert new.opener.create_task("1_0", [INPUT]) is None  # the other version has it
    task = new.create("0_0", other)
    assert (task.name, task.directory) == ("0_0", "1_0")
    assert task.stores.logged["of-other"].store.get("k") == 7  # type: ignore[attr-defined]
    task.close()
    first.close()
    task = new.create("1_0", INPUT)
    assert task.directory == "0_0"
    task.close()


def test_changes_wait_where_a_changelog_of_its_own_restores_a_store_with_hot_keys(
    tmp_path: Path,
) -> None:
    app = App("a", topology_optimization="reuse.ktable.source.topics")
    text: Any = {"key": serdes.string, "value": serdes.string}
    stream = app.stream("in", **text)
    groups = stream.group_by_key()
    groups.count(store="counts")
    groups.count(store=Store.persistent("unlogged", logged=False))
    groups.windowed_by(windows.tumbling(10)).count(store="windows")
    groups.windowed_by(windows.session(10)).count(store="sessions")
    stream.join(app.table("rows", **text, store="rows"), lambda left, right: left + right)
    topology = app.topology()
    opening = Opening(topology, tmp_path)
    specs = {spec.name: spec for spec in topology.subtopologies[0].stores}
    opened = {name: opening.opener._open_store("0_0", spec) for name, spec in specs.items()}
    waiting = {name for name, (_, disk) in opened.items() if isinstance(disk, WriteBehindDisk)}
    assert waiting == {"counts", "windows", "sessions"}
    assert set(opened) == {"counts", "unlogged", "windows", "sessions", "rows"}
    for store, _ in opened.values():
        store.close()
