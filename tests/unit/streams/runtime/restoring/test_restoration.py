"""Test that a thread that waits for restored tasks is woken by a task and by a failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streams.errors import StreamsError
from streams.runtime.restoring.restoration import RestoredTasks
from streams.runtime.tasks.task_stores import TaskStores
from streams.testing.simulated_host import SimulatedEvent
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.restored import Waiting


class EventAmidThreads(SimulatedEvent):
    """Represents an event that another thread may set after a wait for it has begun."""

    def __init__(self, host: Clock, act_meanwhile: Callable[[], None]) -> None:
        super().__init__(host)
        self._act_meanwhile = act_meanwhile

    def wait(self, timeout: float | None = None) -> bool:
        self._act_meanwhile()
        return super().wait(timeout)


class ClockAmidThreads(Clock):
    """Represents a host on which another thread acts during each wait."""

    def __init__(self) -> None:
        super().__init__()
        self.act_meanwhile: Callable[[], None] = lambda: None

    def create_event(self) -> SimulatedEvent:
        return EventAmidThreads(self, lambda: self.act_meanwhile())


TASK = Waiting("0_0", TaskStores("0_0", {}))


def test_a_task_that_is_restored_during_a_wait_ends_it() -> None:
    host = ClockAmidThreads()
    restored = RestoredTasks[Waiting](host)
    host.act_meanwhile = lambda: restored.add_task(TASK)
    began_at_s = host.monotonic_s()
    restored.wait_for_task(10)
    assert host.monotonic_s() == began_at_s
    assert restored.pop_tasks_or_raise_failure() == [TASK]


def test_a_failure_during_a_wait_ends_it_and_is_raised_once() -> None:
    host = ClockAmidThreads()
    restored = RestoredTasks[Waiting](host)
    host.act_meanwhile = lambda: restored.add_failure(StreamsError("no"))
    began_at_s = host.monotonic_s()
    restored.wait_for_task(10)
    assert host.monotonic_s() == began_at_s
    with pytest.raises(StreamsError, match="no"):
        restored.pop_tasks_or_raise_failure()
    assert restored.pop_tasks_or_raise_failure() == []


def test_tasks_are_taken_before_a_failure_is_raised() -> None:
    restored = RestoredTasks[Waiting](Clock())
    restored.add_task(TASK)
    restored.add_failure(StreamsError("no"))
    assert restored.pop_tasks_or_raise_failure() == [TASK]
    assert restored.has_failed
    with pytest.raises(StreamsError, match="no"):
        restored.pop_tasks_or_raise_failure()


def test_a_wait_in_which_nothing_happens_takes_its_time() -> None:
    host = Clock()
    restored = RestoredTasks[Waiting](host)
    restored.add_task(TASK)
    assert restored.pop_tasks_or_raise_failure() == [TASK]
    began_at_s = host.monotonic_s()
    restored.wait_for_task(10)
    assert host.monotonic_s() == began_at_s + 10
