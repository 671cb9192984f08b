"""Test that tasks change between active and standby in place, and replay only what they lack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from state.directory import StateDirectory
from state.errors import DirectoryLocked, StateError
from streams import Store, StreamsError, serdes
from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, TaskMigrated
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.thread_state import ThreadState
from streams.topology.build import Topology
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import (
    CHANGELOG,
    World,
    assign_roles,
    build_counting_topology,
    build_mapping_topology,
)

COUNTED = Partition(CHANGELOG, 0)


def create_pair(path: Path, topology: Topology | None = None) -> tuple[World, World]:
    """Return two workers of one group on different machines: the first processes, both follow."""
    kafka = Kafka({"in": 1, "out": 1, CHANGELOG: 1})
    first, second = (
        World(topology or build_counting_topology(), path / name, kafka=kafka, thread_id=name)
        for name in ("a-first", "a-second")
    )
    first.member.assign(assign_roles([0]))
    second.member.assign(assign_roles(standby=[0]))
    return first, second


def turn_both(first: World, second: World) -> None:
    for _ in range(10):
        first.turn(1)
        second.turn(1)


def standby_of(world: World) -> Task:
    (task,) = world.loop.standby_tasks
    return task


def is_locked(world: World, task: str = "0_0") -> bool:
    """Return whether somebody holds a task's directory."""
    try:
        world.directory.lock_task(task).release()
    except DirectoryLocked:
        return True
    return False


def counted(task: Task) -> dict[str, int]:
    """Return what the store of a task has on disk."""
    disk = task.stores.logged["c"].disk
    assert disk is not None
    return {key.decode(): int.from_bytes(value[8:], "big") for key, value in disk.range(None, None)}


def test_a_standby_follows_and_is_promoted_without_replaying_what_it_has(tmp_path: Path) -> None:
    """Test the drill of a worker that dies, and of another that has a standby of its task."""
    first, second = create_pair(tmp_path)
    first.load("1", "2", "3")
    turn_both(first, second)
    standby = standby_of(second)
    assert (standby.state, counted(standby)) == (TaskState.STANDBY, {"k": 3})
    assert second.states[-1] is ThreadState.RUNNING
    assert second.loop.counters.standby_records == 1, "three counts of one key were one commit"
    first.load("4")
    first.turn()  # and dies, before the standby has seen this
    second.load("5", "6")
    second.rebalance(assign_roles([0]))
    second.turn()
    assert second.read_counts() == {"k": [3, 4, 6]}
    assert second.loop.tasks["0_0"] is standby, "nothing was closed and opened again"
    assert second.loop.counters.restored_records == 1, "the one commit that it had not seen"
    assert second.loop.standby_tasks == []
    assert second.producers[-1].produced, "it processes with a producer of its own"


def test_what_a_standby_read_just_before_its_promotion_is_counted(tmp_path: Path) -> None:
    """Test what the restorer's thread reads between the last turn and the new assignment."""
    first, second = create_pair(tmp_path)
    turn_both(first, second)
    first.load("1")
    first.turn()
    second.restorer.continue_following()
    assert counted(standby_of(second)) == {"k": 1}
    second.rebalance(assign_roles([0]))
    second.turn()
    counters = second.loop.counters
    assert (counters.standby_records, counters.restored_records) == (1, 0)


def test_a_promoted_task_that_is_lost_before_its_restore_is_closed_when_the_restorer_let_it_go(
    tmp_path: Path,
) -> None:
    first, second = create_pair(tmp_path)
    first.load("1")
    turn_both(first, second)
    standby = standby_of(second)
    second.script.fail("producer.init", TaskMigrated("another has its name"))
    second.rebalance(assign_roles([0]))
    second.turn(1)
    assert (standby.state, second.loop.tasks) == (TaskState.CLOSED, {})
    assert not second.follower.is_following
    turn_both(first, second)
    assert second.states[-1] is ThreadState.RUNNING, "it has begun anew"


def test_all_tasks_are_closed_where_the_restorers_thread_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test one that runs, one that was a standby and becomes active, and one that follows.

    A thread that replaces this one in the process would else wait for their directories for ever.
    """
    world = World(build_counting_topology(), tmp_path, partitions=3)
    world.member.assign(assign_roles([0], standby=[1, 2]))
    world.turn()
    tasks = [*world.loop.tasks.values(), *world.loop.standby_tasks]
    assert [task.state.name for task in tasks] == ["RUNNING", "STANDBY", "STANDBY"]
    world.rebalance(assign_roles([0, 1], standby=[2]))

    def fail(*_: object) -> None:
        raise StreamsError("the thread that restores stores has ended")

    for call in ("wait_and_pop_restored_tasks", "withdraw_tasks", "stop_following"):
        monkeypatch.setattr(world.restorer, call, fail)
    with pytest.raises(StreamsError, match="has ended"):
        world.turn()
    with pytest.raises(StreamsError, match="has ended"):
        world.loop.close()
    assert [task.state for task in tasks] == [TaskState.CLOSED] * 3
    assert not any(is_locked(world, task.name) for task in tasks)
    assert all(producer.discarded for producer in world.producers)


def test_a_demoted_task_that_cannot_be_rolled_back_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.member.assign(assign_roles([0]))
    world.turn()
    task = world.loop.tasks["0_0"]

    def fail() -> None:
        raise StateError("no space left on device")

    monkeypatch.setattr(task.stores, "roll_back_changes", fail)
    world.rebalance(assign_roles(standby=[0]))
    with pytest.raises(StreamsError, match="no space"):
        world.turn()
    assert (world.loop.tasks, world.loop.standby_tasks) == ({}, [])
    assert task.state is TaskState.CLOSED
    assert not is_locked(world)


def test_a_demoted_task_stays_open_follows_and_comes_back(tmp_path: Path) -> None:
    first, second = create_pair(tmp_path)
    first.load("1")
    turn_both(first, second)
    task = first.loop.tasks["0_0"]
    first.load("2")  # which it does not process any more
    first.rebalance(assign_roles(standby=[0]))
    first.turn()
    assert first.loop.tasks == {}
    assert (standby_of(first), task.state) == (task, TaskState.STANDBY)
    assert first.consumer.assigned == set()
    assert is_locked(first)
    second.rebalance(assign_roles([0]))
    second.load("3", "4")
    turn_both(first, second)
    assert counted(task) == {"k": 4}
    assert first.loop.counters.restored_records == 0
    second.rebalance(assign_roles(standby=[0]))
    second.turn()
    first.rebalance(assign_roles([0]))
    first.load("5")
    turn_both(first, second)
    assert first.loop.tasks["0_0"] is task
    assert first.loop.counters.restored_records == 0, "it had followed to the end"
    assert second.loop.counters.restored_records == 0
    assert first.read_counts() == {"k": [1, 4, 5]}


def test_a_task_that_is_demoted_in_the_middle_of_its_restore_goes_on_as_a_standby(
    tmp_path: Path,
) -> None:
    first, second = create_pair(tmp_path)
    first.load("1")
    first.turn()
    producer = first.producers[-1]
    producer.begin_transaction()
    producer.produce(CHANGELOG, b"x", b"open", 0)
    producer.flush()
    second.rebalance(assign_roles([0]))
    second.turn()
    task = second.loop.tasks["0_0"]
    assert task.state is TaskState.RESTORING
    second.rebalance(assign_roles(standby=[0]))
    second.turn()
    assert standby_of(second) is task
    assert counted(task) == {"k": 1}


def test_a_warm_up_task_is_followed_like_a_standby(tmp_path: Path) -> None:
    first, second = create_pair(tmp_path)
    second.member.assign(assign_roles(warmup=[0]))
    first.load("1")
    turn_both(first, second)
    assert counted(standby_of(second)) == {"k": 1}


def test_a_standby_that_is_no_longer_assigned_is_closed(tmp_path: Path) -> None:
    first, second = create_pair(tmp_path)
    turn_both(first, second)
    standby = standby_of(second)
    assert is_locked(second)
    second.rebalance(assign_roles())
    second.turn()
    assert (standby.state, second.loop.standby_tasks) == (TaskState.CLOSED, [])
    assert not is_locked(second)


def test_the_end_of_a_thread_closes_its_standbys(tmp_path: Path) -> None:
    _, second = create_pair(tmp_path)
    second.run_until(lambda: bool(second.loop.standby_tasks))
    assert not is_locked(second)


def test_a_standby_is_not_a_task_that_the_member_owns(tmp_path: Path) -> None:
    _, second = create_pair(tmp_path)
    second.turn()
    second.rebalance(assign_roles(standby=[0]))
    second.turn()
    assert second.member.subscribed == [(), ()]


def test_a_locked_directory_is_waited_for_and_holds_up_no_active_task(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.member.assign(assign_roles([1], standby=[0]))
    lock = StateDirectory(tmp_path, "a").lock_task("0_0")
    world.load("1", partition=1)
    world.turn()
    assert world.states[-1] is ThreadState.RUNNING
    assert world.consumed(1)
    assert world.loop.standby_tasks == []
    lock.release()
    world.clock.advance_monotonic_clock(1)
    world.turn(1)
    assert standby_of(world).state is TaskState.STANDBY


def test_an_active_and_a_standby_task_run_beside_each_other(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.member.assign(assign_roles([0], standby=[1]))
    world.kafka.load(Partition(CHANGELOG, 1), ("x", "12345678"))
    world.load("1", "2")
    world.turn()
    assert world.read_counts() == {"k": [2]}
    assert [each.state for each in (*world.loop.tasks.values(), *world.loop.standby_tasks)] == [
        TaskState.RUNNING,
        TaskState.STANDBY,
    ]
    assert world.loop.counters.standby_records == 1
    (progress,) = world.loop.standby_progress
    assert (progress.task, progress.store, progress.lag) == ("0_1", "c", 0)


def test_a_task_without_a_logged_store_is_no_standby(tmp_path: Path) -> None:
    _, second = create_pair(tmp_path, build_mapping_topology(str.upper))
    second.turn()
    assert second.loop.standby_tasks == []
    assert second.states[-1] is ThreadState.RUNNING


def test_a_store_in_memory_follows_too(tmp_path: Path) -> None:
    topology = build_counting_topology(Store.in_memory("c", key=serdes.string, value=serdes.int64))
    first, second = create_pair(tmp_path, topology)
    first.load("1", "2")
    turn_both(first, second)
    assert counted(standby_of(second)) == {"k": 2}
    second.rebalance(assign_roles([0]))
    second.turn()
    assert second.loop.counters.restored_records == 0


def test_a_standby_with_other_partitions_is_created_anew(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.member.assign(assign_roles(standby=[0]))
    world.turn()
    before = standby_of(world)
    world.rebalance(AssignmentInfo((), (), standby=("0_0",), following=()))
    world.turn()
    assert before.state is TaskState.CLOSED
    assert standby_of(world).partitions == []


def test_a_recovery_leaves_standbys_alone(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.member.assign(assign_roles([0], standby=[1]))
    world.turn()
    standby, active = standby_of(world), world.loop.tasks["0_0"]
    world.member.signalled = MembershipSignal.LOST
    world.turn(1)
    assert (active.state, standby.state) == (TaskState.CLOSED, TaskState.STANDBY)
    world.member.signalled = MembershipSignal.NOTHING
    world.turn()
    assert standby_of(world) is standby


def test_what_goes_wrong_with_a_standby_ends_the_thread(tmp_path: Path) -> None:
    _, second = create_pair(tmp_path)
    second.turn()
    second.script.fail("standby.poll_records", AuthorizationError("Read", "topic", CHANGELOG))
    with pytest.raises(StreamsError, match=CHANGELOG):
        second.turn()


def test_a_killed_workers_standby_goes_on_from_where_it_was(tmp_path: Path) -> None:
    first, second = create_pair(tmp_path)
    for value in ("1", "2", "3"):
        first.load(value)
        turn_both(first, second)
    assert second.loop.counters.standby_records == 3
    # What kill -9 leaves are the files as they are now.
    shutil.copytree(tmp_path / "a-second", tmp_path / "a-killed")
    again = World(
        build_counting_topology(), tmp_path / "a-killed", kafka=first.kafka, thread_id="a-second"
    )
    again.member.assign(assign_roles(standby=[0]))
    first.load("4")
    turn_both(first, again)
    assert again.loop.counters.standby_records == 1
    assert counted(standby_of(again)) == {"k": 4}


def test_one_standby_is_opened_in_a_turn_so_that_active_tasks_go_on(tmp_path: Path) -> None:
    kafka = Kafka({"in": 4, "out": 4, CHANGELOG: 4})
    world = World(build_counting_topology(), tmp_path, kafka=kafka)
    world.member.assign(assign_roles([0], standby=[1, 2, 3]))
    opened = []
    for _ in range(6):
        world.turn(1)
        opened.append(len(world.loop.standby_tasks))
    assert max(later - before for before, later in zip([0, *opened], opened, strict=False)) == 1
    assert opened[-1] == 3


def test_a_standby_behind_one_whose_directory_is_locked_is_opened(tmp_path: Path) -> None:
    kafka = Kafka({"in": 3, "out": 3, CHANGELOG: 3})
    world = World(build_counting_topology(), tmp_path, kafka=kafka)
    lock = world.directory.lock_task("0_1")
    world.member.assign(assign_roles([0], standby=[1, 2]))
    for _ in range(4):
        world.turn(1)
    assert [task.name for task in world.loop.standby_tasks] == ["0_2"]
    lock.release()


def test_a_standby_is_opened_when_all_active_tasks_run(tmp_path: Path) -> None:
    kafka = Kafka({"in": 2, "out": 2, CHANGELOG: 2})
    world = World(build_counting_topology(), tmp_path, kafka=kafka)
    lock = world.directory.lock_task("0_0")
    world.member.assign(assign_roles([0], standby=[1]))
    for _ in range(4):
        world.turn(1)
    assert world.loop.standby_tasks == []
    lock.release()
    for _ in range(4):
        world.turn(1)
    assert len(world.loop.standby_tasks) == 1
