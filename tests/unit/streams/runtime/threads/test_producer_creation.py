"""Test that the producers of tasks are created singly, each with its own error and deadline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streams.errors import AuthorizationError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.producer_creation import ProducerCreations, RequireWanted
from streams.runtime.threads.thread_state import ThreadState
from tests.unit.streams.runtime.fakes import Clock, FakeProducer, Script
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import (
    World,
    assign_partitions,
    build_counting_topology,
    build_mapping_topology,
)

AWAY = OutcomeUnknown("Coordinator load in progress")
TIMEOUT_MS = 60_000


class HeldThread:
    """Represents a thread that does nothing until the test runs it."""

    def __init__(self, name: str, target: Callable[[], None]) -> None:
        self.name = name
        self.joined_for_s: list[float | None] = []
        self._target = target
        self._is_over = False

    def run(self) -> None:
        self._target()
        self._is_over = True

    def join(self, timeout: float | None = None) -> None:
        self.joined_for_s.append(timeout)

    def is_alive(self) -> bool:
        return not self._is_over


class HeldThreads(Clock):
    """Represents a host whose threads run when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[HeldThread] = []

    def spawn_thread(  # type: ignore[override]  # a simulated host's threads have ended
        self, name: str, target: Callable[[], None]
    ) -> HeldThread:
        self.threads.append(HeldThread(name, target))
        return self.threads[-1]


class Creations:
    """Holds the creations of a thread's producers, and what their threads do."""

    def __init__(self) -> None:
        self.host = HeldThreads()
        self.script = Script()
        self.kafka = Kafka()
        self.made: list[FakeProducer] = []
        self.checked: list[str] = []
        self.known = True
        self.while_created: Callable[[], None] = lambda: None
        self.once_created: Callable[[], None] = lambda: None
        self.creations = ProducerCreations(
            self._create, self._check_membership, self.host, timeout_ms=TIMEOUT_MS
        )

    def take(self, task: str = "0_0") -> FakeProducer | None:
        """Take a turn: return the task's producer if it is there."""
        taken = self.creations.take_created_or_begin_creation(task, f"a-task:{task}")
        assert taken is None or isinstance(taken, FakeProducer)
        return taken

    def run_next(self) -> None:
        """Run the oldest thread that was spawned and not run yet."""
        next(thread for thread in self.host.threads if thread.is_alive()).run()

    def _create(self, name: str, require_wanted: RequireWanted = None) -> FakeProducer:
        self.while_created()
        if require_wanted is not None:
            require_wanted()
        self.made.append(FakeProducer(self.kafka, self.script, name=name))
        self.once_created()
        return self.made[-1]

    def _check_membership(self, task: str) -> None:
        self.checked.append(task)
        if not self.known:
            raise TaskMigrated(f"task {task} moved")


def test_a_producer_is_created_beside_the_thread_and_taken_at_a_later_turn() -> None:
    thread = Creations()
    assert thread.take() is None
    assert thread.take() is None, "it waits for the attempt that is under way"
    thread.run_next()
    assert thread.take() is thread.made[0]
    assert [each.name for each in thread.host.threads] == ["producer-0_0"]
    assert not thread.creations.is_waiting


def test_a_task_does_not_wait_for_the_producer_of_another() -> None:
    thread = Creations()
    assert thread.take("0_0") is thread.take("0_1") is None
    thread.host.threads[1].run()
    assert thread.take("0_0") is None
    assert thread.take("0_1") is thread.made[0]
    assert [wait.task for wait in thread.creations.waits] == ["0_0"]


def test_an_attempt_that_has_failed_is_made_again_after_a_moment() -> None:
    thread = Creations()
    thread.script.fail("producer.init", AWAY)
    thread.take()
    thread.run_next()
    assert thread.take() is thread.take() is None
    assert [wait.failure for wait in thread.creations.waits] == [str(AWAY)]
    assert len(thread.host.threads) == 1
    thread.host.advance_monotonic_clock(0.2)
    thread.take()
    thread.run_next()
    assert thread.take() is thread.made[0]


def test_the_group_is_asked_for_the_membership_before_each_attempt() -> None:
    thread = Creations()
    thread.script.fail("producer.init", AWAY)
    thread.take()
    thread.run_next()
    thread.take()
    thread.host.advance_monotonic_clock(0.2)
    thread.known = False
    with pytest.raises(TaskMigrated, match="task 0_0 moved"):
        thread.take()
    assert thread.checked == ["0_0", "0_0"]
    assert len(thread.host.threads) == 1, "a zombie creates no producer"


def fail_until_it_raises(thread: Creations, task: str) -> StreamsError:
    """Let the attempts for a task fail until an error ends the thread, and return the error."""
    for _ in range(1_000):
        thread.script.fail("producer.init", AWAY)
        try:
            thread.take(task)
        except StreamsError as error:
            return error
        thread.host.threads[-1].run()
        try:
            thread.take(task)
        except StreamsError as error:
            return error
        thread.host.advance_monotonic_clock(1.0)
    raise AssertionError("it went on without end")


def test_a_task_whose_attempts_fail_for_task_timeout_ms_ends_the_thread_with_its_name() -> None:
    thread = Creations()
    began_s = thread.host.monotonic_s()
    error = fail_until_it_raises(thread, "0_1")
    assert str(error) == (
        "task 0_1 has got no producer for 60000 ms (task_timeout_ms): Coordinator load in progress"
    )
    assert 60 < thread.host.monotonic_s() - began_s < 63
    assert not thread.creations.is_waiting


def test_each_task_has_a_deadline_of_its_own() -> None:
    thread = Creations()
    thread.script.fail("producer.init", AWAY)
    thread.take("0_0")
    thread.run_next()
    thread.take("0_0")
    thread.host.advance_monotonic_clock(TIMEOUT_MS / 1_000 + 1)
    thread.script.fail("producer.init", AWAY)
    assert thread.take("0_1") is None
    thread.host.threads[-1].run()
    assert thread.take("0_1") is None, "its own time has just begun"


def test_an_error_that_no_attempt_would_cure_is_raised_at_once() -> None:
    thread = Creations()
    refusal = AuthorizationError("Write", "transactional-id", "a-task:0_0")
    thread.script.fail("producer.init", refusal)
    thread.take()
    thread.run_next()
    with pytest.raises(AuthorizationError, match="a-task:0_0"):
        thread.take()


def test_a_fenced_attempt_is_raised_for_another_member_has_the_task() -> None:
    thread = Creations()
    thread.script.fail("producer.init", TaskMigrated("fenced"))
    thread.take()
    thread.run_next()
    with pytest.raises(TaskMigrated, match="fenced"):
        thread.take()


def test_a_thread_that_ends_without_an_error_is_an_error() -> None:
    thread = Creations()

    def exit_thread() -> None:
        raise SystemExit

    thread.while_created = exit_thread
    thread.take()
    with pytest.raises(SystemExit):
        thread.run_next()
    with pytest.raises(StreamsError, match="has ended"):
        thread.take()


def test_no_call_is_begun_for_a_task_that_was_revoked_before_its_thread_ran() -> None:
    thread = Creations()
    thread.take()
    thread.creations.cancel_creation("0_0")
    thread.run_next()
    assert thread.script.calls == []


def test_a_creation_ends_when_its_task_is_revoked_in_the_middle() -> None:
    thread = Creations()
    thread.take()
    thread.while_created = lambda: thread.creations.cancel_creation("0_0")
    thread.run_next()
    assert thread.made == []


def test_a_producer_that_comes_after_its_task_was_revoked_is_discarded() -> None:
    thread = Creations()
    thread.take()
    thread.once_created = lambda: thread.creations.cancel_creation("0_0")
    thread.run_next()
    assert [producer.discarded for producer in thread.made] == [True]


def test_a_producer_that_nobody_has_taken_is_discarded_when_its_task_is_revoked() -> None:
    thread = Creations()
    thread.take()
    thread.run_next()
    thread.creations.cancel_creation("0_0")
    assert thread.made[0].discarded
    assert thread.script.filter_calls("producer.try_abort_and_close") == [], (
        "nothing of it is sent any more"
    )


def test_a_task_that_comes_back_waits_for_the_end_of_the_attempt_that_was_cancelled() -> None:
    thread = Creations()
    thread.take()
    thread.creations.cancel_creation("0_0")
    assert thread.take() is None
    assert len(thread.host.threads) == 1, "else the former one might fence the new producer"
    thread.run_next()
    thread.take()
    thread.run_next()
    assert thread.take() is thread.made[0]


def test_the_end_waits_for_cancelled_attempts_two_seconds_in_all() -> None:
    thread = Creations()
    thread.take("0_0")
    thread.take("0_1")
    thread.creations.cancel_all_creations()
    thread.creations.wait_until_cancelled()
    assert [each.joined_for_s for each in thread.host.threads] == [[2.0], [2.0]]
    assert not thread.creations.is_waiting


class WorldWithCoordinators(World):
    """Represents a stream thread with a producer for each task, whose coordinators may be away."""

    away: frozenset[str] = frozenset()
    """The names of producers whose coordinator does not let them begin."""
    at_creation: Callable[[str], None] = staticmethod(lambda name: None)

    def _new_producer(self, name: str, require_wanted: RequireWanted = None) -> FakeProducer:
        self.at_creation(name)
        if name in self.away:
            raise AWAY
        return super()._new_producer(name)


def two_tasks(state: Path, *away: int, task_timeout_ms: int = TIMEOUT_MS) -> WorldWithCoordinators:
    world = WorldWithCoordinators(
        build_mapping_topology(str.upper),
        state,
        partitions=2,
        guarantee="exactly_once",
        task_timeout_ms=task_timeout_ms,
    )
    world.away = frozenset(f"a-task:0_{number}" for number in away)
    return world


def test_tasks_process_and_commit_while_the_coordinator_of_one_is_away(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 0)
    world.load("x", partition=0)
    world.load("y", partition=1)
    world.turn(20)
    assert world.consumed(1)
    assert not world.consumed(0)
    states = {name: task.state for name, task in world.loop.tasks.items()}
    assert states == {"0_0": TaskState.CREATED, "0_1": TaskState.RUNNING}
    assert world.states[-1] is ThreadState.REBALANCING
    assert [wait.task for wait in world.loop.producer_waits] == ["0_0"]
    assert world.loop.counters.recoveries == 0


def test_the_task_starts_when_its_coordinator_is_back(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 0)
    world.load("x", partition=0)
    world.load("y", partition=1)
    world.turn(20)
    world.away = frozenset()
    world.load("z", partition=1)
    world.run_until(lambda: world.consumed(0) and world.consumed(1))
    assert sorted(value or b"" for _, value in world.kafka.committed("out")) == [b"X", b"Y", b"Z"]
    assert world.states[-1] is ThreadState.RUNNING
    assert world.loop.producer_waits == ()


def test_the_thread_ends_when_the_coordinator_of_one_task_stays_away(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 1, task_timeout_ms=2_000)
    world.load("x", partition=0)
    with pytest.raises(StreamsError, match=r"task 0_1 has got no producer for 2000 ms"):
        world.run_until(lambda: False)
    assert world.consumed(0), "the other task went on until then"


def test_a_task_that_waits_for_its_producer_is_revoked_without_a_producer(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 1)
    world.turn()
    world.rebalance(assign_partitions(0))
    world.turn()
    assert world.loop.producer_waits == ()
    assert world.states[-1] is ThreadState.RUNNING
    world.away = frozenset()
    world.turn()
    assert [producer.name for producer in world.producers] == ["a-task:0_0"]


def test_a_recovery_of_other_tasks_leaves_the_deadline_of_one_that_waits(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 1)
    world.turn()
    (wait,) = world.loop.producer_waits
    world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"))
    world.load("x", partition=0)
    while not world.consumed(0):
        world.turn(1)
    assert world.loop.counters.outcomes_unknown == 1
    assert [each.since_s for each in world.loop.producer_waits] == [wait.since_s]


def test_a_stop_while_a_task_waits_commits_the_others_and_leaves_the_group(tmp_path: Path) -> None:
    world = two_tasks(tmp_path, 1)
    world.load("x", partition=0)
    world.run_until(lambda: world.loop.counters.records == 1)
    assert world.consumed(0)
    assert world.script.calls.count("member.leave_group") == 1
    assert world.loop.producer_waits == ()


def test_an_offset_is_read_only_after_the_producer_has_fenced_its_predecessor(
    tmp_path: Path,
) -> None:
    """Check that a predecessor's last commit, made while the producer was created, is seen."""
    world = WorldWithCoordinators(
        build_counting_topology(), tmp_path, guarantee="exactly_once", commit_every_ms=0
    )
    fetches: list[int] = []
    world.at_creation = lambda name: fetches.append(
        world.script.calls.count("member.fetch_committed_offsets")
    )
    world.load("x")
    world.run_until(world.consumed)
    assert fetches == [0]
