"""Tell the group's leader how far the state of tasks is in this worker's state directory (KIP-441).

A task's offset is the sum of its stores' positions in their changelogs. The leader compares it with
the ends of the changelogs: the less a directory lacks, the better it is for the task.

    task                               its offset
    active and up to date              RUNNING_OFFSET
    restored, or followed as standby   the sum of positions now
    dormant: its state is here, and    the sum of its stores' checkpoints when it was closed or, for
    no thread has it                   state that an earlier process left, when the worker started

One thread of a worker tells of all dormant tasks, since what every member says is in one record of
the group; any other thread only of those that it has closed itself. Each tells of its own tasks.

A dormant task whose directory is gone has none, and tasks without a changelog have none. Source:
TaskManager.taskOffsetSums.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from state.directory import StateDirectory
from state.errors import DirectoryLocked, StateError
from state.memory import MemoryDisk
from state.rocksdb import MemoryBudget, read_stored_checkpoint
from streams.common.host import Host
from streams.graph.nodes import StoreSpec
from streams.membership.protocol import RUNNING_OFFSET
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_directories import assign_directory_numbers
from streams.runtime.tasks.task_state import TaskState
from streams.topology.build import Topology

log = logging.getLogger(__name__)

_SEARCH_TIME_S = 2.0
"""The most seconds that a starting worker reads the stores which an earlier process left."""


class DormantTask(NamedTuple):
    """Represents a task whose state lies in a directory and that no thread has open."""

    directory: str
    offset: int


class TaskOffsets:
    """Knows how far the state of each task in the state directory is, for all threads of a worker.

    `dormant` are the tasks that an earlier process has left, by name.
    """

    def __init__(
        self,
        directory: StateDirectory | None = None,
        dormant: Mapping[str, DormantTask] | None = None,
    ) -> None:
        self._directory = directory
        self._dormant = dict(dormant or {})
        self._closed_by: dict[str, str] = {}
        """Which thread has closed a dormant task."""
        self._reporter: str | None = None
        """The thread that tells of all dormant tasks: the first that joins, until it ends."""

    def release_reporting_role(self, thread: str) -> None:
        """Let the next thread that joins report the dormant tasks, since this thread ends."""
        if self._reporter == thread:
            self._reporter = None

    def remove_from_dormant(self, task: Task) -> None:
        """Remove a task from the dormant ones, since a thread has opened and reports it."""
        self._dormant.pop(task.name, None)

    def remember_as_dormant_before_closing(self, task: Task, thread: str) -> None:
        """Record the positions of a task's stores before a thread closes it."""
        on_disk = [s for s in task.stores.logged.values() if not isinstance(s.disk, MemoryDisk)]
        if on_disk:
            try:
                offset = sum(logged.read_checkpoint_position() for logged in on_disk)
            except StateError as error:
                log.info("task %s: its offset is not known: %s", task.name, error)
                return
            self._closed_by[task.name] = thread
            self._dormant[task.name] = DormantTask(task.directory, offset)

    def sum_offsets(self, tasks: Iterable[Task], thread: str) -> dict[str, int]:
        """Return the offset of each of a thread's tasks, and of dormant tasks if it tells of them.

        `thread` is about to join its group.
        """
        directory = self._directory
        if self._reporter is None:
            self._reporter = thread
        is_reporter = self._reporter == thread
        offsets = {
            name: dormant.offset
            for name, dormant in self._dormant.copy().items()
            if (is_reporter or self._closed_by.get(name) == thread)
            and directory is not None
            and directory.list_store_names(dormant.directory)
        }
        offsets |= {task.name: _sum_positions(task) for task in tasks if task.stores.logged}
        return offsets


def _sum_positions(task: Task) -> int:
    """Return the offset of a task that a thread has open."""
    if task.state is TaskState.RUNNING:
        return RUNNING_OFFSET
    return sum(logged.changelog_position for logged in task.stores.logged.values())


def find_dormant_tasks(
    topology: Topology, directory: StateDirectory, host: Host, memory: MemoryBudget | None = None
) -> dict[str, DormantTask]:
    """Return the tasks whose state is in the directory and that nobody has open, by name.

    What is locked or damaged is left out, and what could not be read within two seconds. Raises
    StateError where the numbers of directories can't be read.
    """
    tasks = directory.list_tasks()
    if not tasks:
        return {}
    numbers = assign_directory_numbers(topology, directory)
    subtopologies = {numbers[sub.number]: sub for sub in topology.subtopologies}
    found: dict[str, DormantTask] = {}
    deadline_s = host.monotonic_s() + _SEARCH_TIME_S
    for task in tasks:
        number, _, partition = task.partition("_")
        subtopology = subtopologies.get(int(number))
        if subtopology is None:
            continue
        there = directory.list_store_names(task)
        specs = [s for s in subtopology.stores if s.logged and s.persistent and s.name in there]
        if not specs:
            continue
        if host.monotonic_s() > deadline_s:
            log.info("the state of tasks from %s on is not looked at: there is much of it", task)
            break
        offset = _try_read_offset(directory, task, specs, memory)
        if offset is not None:
            found[f"{subtopology.number}_{partition}"] = DormantTask(task, offset)
    return found


def _try_read_offset(
    directory: StateDirectory, task: str, specs: Iterable[StoreSpec], memory: MemoryBudget | None
) -> int | None:
    """Return the offset of a task from its stores on disk; None if it is locked or damaged."""
    try:
        lock = directory.lock_task(task)
    except DirectoryLocked:
        return None
    try:
        checkpoints = [
            read_stored_checkpoint(
                directory.build_store_path(task, spec.name), budget=memory, tune=spec.rocksdb
            )
            for spec in specs
        ]
    except StateError as error:
        log.info("directory %s: its offset is not known: %s", task, error)
        return None
    finally:
        lock.release()
    return sum(0 if each is None else each.position for each in checkpoints)
