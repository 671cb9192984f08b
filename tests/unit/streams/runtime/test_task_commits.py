"""Test that a task whose transaction coordinator is away at its commit holds up itself alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.producer_creation import RequireWanted
from streams.runtime.threads.thread_state import ThreadState
from tests.unit.streams.runtime.fakes import FakeProducer
from tests.unit.streams.runtime.world import World, build_mapping_topology

STALL_S = 30.0
"""How long a commit waits for a coordinator that does not answer."""


class CoordinatedProducer(FakeProducer):
    """Stands in for a producer whose coordinator may let it begin, and not commit."""

    world: SilentWorld

    def commit_transaction(self) -> None:
        if self.name in self.world.silent:
            self.world.clock.advance_monotonic_clock(STALL_S)
            raise OutcomeUnknown("commit_transaction: timed out")
        super().commit_transaction()


class SilentWorld(World):
    """Represents a stream thread of two tasks, each with a producer of its own."""

    silent: frozenset[str] = frozenset()
    """The names of producers whose commits are not answered."""

    def _new_producer(self, name: str, require_wanted: RequireWanted = None) -> FakeProducer:
        producer = CoordinatedProducer(self.kafka, self.script, name=name)
        producer.world = self
        self.producers.append(producer)
        return producer

    def silence(self, *tasks: str) -> None:
        self.silent = frozenset(f"a-task:{task}" for task in tasks)

    def created_for(self, task: str) -> int:
        """Return how many producers a task has had."""
        return sum(producer.name == f"a-task:{task}" for producer in self.producers)


@pytest.fixture
def world(tmp_path: Path) -> SilentWorld:
    world = SilentWorld(
        build_mapping_topology(str.upper),
        tmp_path,
        partitions=2,
        guarantee="exactly_once",
        commit_every_ms=100,
        task_timeout_ms=300_000,
    )
    world.turn()
    return world


def turn_until_failures(world: SilentWorld, count: int) -> None:
    """Take turns until so many commits have failed."""
    for _ in range(10_000):
        if world.loop.counters.outcomes_unknown == count:
            return
        world.turn(1)
    raise AssertionError(f"{world.loop.counters.outcomes_unknown} commits have failed")


def fail_once_together(world: SilentWorld) -> None:
    """Let a commit of both tasks fail because of task 0_0."""
    world.silence("0_0")
    world.load("x", partition=0)
    world.load("y", partition=1)
    turn_until_failures(world, 1)


def test_what_was_committed_together_with_a_task_that_fails_starts_over_once(
    world: SilentWorld,
) -> None:
    fail_once_together(world)
    assert {task.state for task in world.loop.tasks.values()} == {TaskState.CREATED}
    while world.created_for("0_0") == 1:
        world.turn(1)
    assert world.consumed(1), "the others start first, and are committed"
    assert not world.consumed(0)
    assert world.created_for("0_1") == 2


def test_a_task_that_has_failed_is_committed_alone_after_the_others(world: SilentWorld) -> None:
    fail_once_together(world)
    while world.created_for("0_0") == 1:
        world.turn(1)
    world.load("z", partition=1)
    turn_until_failures(world, 2)
    assert world.consumed(1)
    assert world.created_for("0_1") == 2, "it starts over once"
    states = {name: task.state for name, task in world.loop.tasks.items()}
    assert states == {"0_0": TaskState.CREATED, "0_1": TaskState.RUNNING}
    assert world.states[-1] is ThreadState.REBALANCING
    (wait,) = world.loop.producer_waits
    assert wait.task == "0_0"
    assert "commit_transaction: timed out" in wait.failure


def test_a_task_that_fails_again_waits_as_long_as_it_has_been_failing(world: SilentWorld) -> None:
    fail_once_together(world)
    turn_until_failures(world, 2)
    assert world.created_for("0_0") == 2
    began_s = world.clock.monotonic_s()
    while world.created_for("0_0") == 2:
        world.turn(1)
    assert STALL_S <= world.clock.monotonic_s() - began_s < STALL_S + 2.0


def test_a_task_whose_coordinator_is_back_is_committed_with_the_others(world: SilentWorld) -> None:
    fail_once_together(world)
    turn_until_failures(world, 2)
    world.silence()
    world.run_until(lambda: world.consumed(0))
    assert world.states[-1] is ThreadState.RUNNING
    assert sorted(value or b"" for _, value in world.kafka.committed("out")) == [b"X", b"Y"]


def test_after_its_commit_a_task_that_fails_has_all_of_its_time_again(world: SilentWorld) -> None:
    fail_once_together(world)
    world.silence()
    while not world.consumed(0):
        world.turn(1)
    world.clock.advance_monotonic_clock(400.0)
    world.silence("0_0")
    world.load("z", partition=0)
    turn_until_failures(world, 3)


def test_a_task_that_never_commits_ends_the_thread_with_its_name(world: SilentWorld) -> None:
    fail_once_together(world)
    began_s = world.clock.monotonic_s()
    with pytest.raises(
        StreamsError,
        match=r"no commit for 300000 ms \(task_timeout_ms\): task 0_0: commit_transaction",
    ):
        turn_until_failures(world, 100)
    assert 300 < world.clock.monotonic_s() - began_s < 300 + 60 + 2 * STALL_S
    assert world.consumed(1), "the other task went on until then"


def test_a_task_that_alone_has_something_to_commit_starts_over_alone(world: SilentWorld) -> None:
    world.silence("0_0")
    world.load("x", partition=0)
    turn_until_failures(world, 1)
    states = {name: task.state for name, task in world.loop.tasks.items()}
    assert states == {"0_0": TaskState.CREATED, "0_1": TaskState.RUNNING}
    assert world.created_for("0_1") == 1


def test_a_thread_with_one_producer_starts_all_tasks_over(tmp_path: Path) -> None:
    world = World(build_mapping_topology(str.upper), tmp_path, partitions=2)
    world.turn()
    world.load("x", partition=0)
    world.script.fail("producer.commit_transaction", OutcomeUnknown("timed out"))
    world.turn(1)
    assert {task.state for task in world.loop.tasks.values()} == {TaskState.CREATED}
