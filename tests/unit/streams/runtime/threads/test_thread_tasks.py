"""Test what a thread logs while the tasks that it is assigned start one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.common.topic_partitions import Partition
from streams.membership.protocol import AssignmentInfo
from streams.runtime.counters import ThreadCounters
from streams.runtime.restoring.restorer_timings import RestorerTimings
from streams.runtime.tasks.task_lifetimes import TaskLifetimes
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.loop_collaborators import create_thread_tasks
from streams.runtime.threads.thread_state import ThreadState


class StartingTask:
    """Stands in for a task that runs once it is restored."""

    def __init__(self, name: str, partitions: list[Partition]) -> None:
        self.name, self.partitions, self.state = name, partitions, TaskState.CREATED
        self.positions: dict[Partition, int] = {}
        self.keyed_topics: frozenset[str] = frozenset()

    def start_processing(self, *dependencies: Any) -> None:
        self.state = TaskState.RUNNING


class Restoring:
    """Stands in for a restorer that gives back the tasks that the test names."""

    def __init__(self) -> None:
        self.restored: list[str] = []
        self.reader = SimpleNamespace(restored_records=0)
        self.timings = RestorerTimings(lambda: 0.0)
        self._tasks: dict[str, StartingTask] = {}

    def add_tasks(self, tasks: list[StartingTask]) -> None:
        self._tasks |= {task.name: task for task in tasks}

    def wait_and_pop_restored_tasks(self, wait_s: float) -> list[StartingTask]:
        names, self.restored = self.restored, []
        return [self._tasks.pop(name) for name in names]


class Creating:
    """Stands in for a task creator."""

    measures_details = False

    def __init__(self) -> None:
        self.lifetimes = TaskLifetimes(lambda: 0.0)

    def create_task(self, name: str, partitions: list[Partition]) -> StartingTask:
        return StartingTask(name, partitions)

    def task_name_of_partition(self, topic: str, number: int) -> str:
        return f"{topic}_{number}"

    def start_restoring_from_committed(self, tasks: list[StartingTask]) -> list[StartingTask]:
        for task in tasks:
            task.state = TaskState.RESTORING
        return tasks

    def has_logged_stores(self, name: str) -> bool:
        return True


class PreparedProducers:
    """Stands in for the producers of a thread, which are all there."""

    is_transactional = True
    creations = SimpleNamespace(is_waiting=False)
    refused_writes = None

    def try_prepare_producer(self, task_name: str) -> bool:
        return True

    def get_producer(self, task_name: str) -> None:
        return None


def test_tasks_that_start_one_after_the_other_are_logged_once_when_all_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    restorer = Restoring()
    states: list[ThreadState] = []
    dependencies: Any = SimpleNamespace(
        name="thread 0",
        group="a",
        admin=SimpleNamespace(fetch_partition_counts=dict),
        consumer=None,
        producers=PreparedProducers(),
        host=SimpleNamespace(monotonic_s=lambda: 1.0, now_ms=lambda: 0),
        counters=ThreadCounters(),
        restorer=restorer,
        task_creator=Creating(),
        task_offsets=SimpleNamespace(remove_from_dormant=lambda task: None),
        order_settings=None,
        commit_interval_ms=100,
        on_state_change=states.append,
    )
    tasks = create_thread_tasks(dependencies, restored_wait_s=0.0)
    tasks.adopt_assignment(AssignmentInfo(("0_0", "1_0"), (("0", 0), ("1", 0))))
    restorer.restored = ["0_0"]
    tasks.start_assigned_tasks()
    assert caplog.messages == []
    restorer.restored = ["1_0"]
    tasks.start_assigned_tasks()
    tasks.start_assigned_tasks()
    assert caplog.messages == ["thread 0 runs tasks 0_0, 1_0"]
    assert states[0] is ThreadState.RUNNING
