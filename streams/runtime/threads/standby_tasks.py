"""Create, follow, promote and close the standby and warm-up tasks of one thread.

A standby task keeps the state of a task that another member processes; a warm-up task gets it, to
become active here once it has caught up (KIP-441). Both do the same. Their stores belong to the
restorer; recoveries of the thread, which take back what was not committed, don't touch them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.tasks.task_state import TaskState

_CREATE_RETRY_S = 1.0
"""The seconds between two attempts to lock directories of standbys that another process has."""


class StandbyTasks:
    """Holds the standby and warm-up tasks of one thread.

    Kafka Streams' counterparts are StandbyTaskCreator and the standby part of TaskManager.
    """

    def __init__(
        self,
        thread_name: str,
        host: Host,
        restorer: Restorer[Task],
        task_creator: TaskCreator,
        task_offsets: TaskOffsets,
    ) -> None:
        self._thread_name = thread_name
        self._host = host
        self._restorer = restorer
        self._task_creator = task_creator
        self._task_offsets = task_offsets
        self.by_name: dict[str, Task] = {}
        self._assigned: Mapping[str, set[Partition]] = {}
        self._create_at_s = 0.0

    def adopt_assigned_tasks(self, assigned: Mapping[str, set[Partition]]) -> None:
        """Take over which tasks to follow, with the partitions that they would read if active.

        Those that are followed and not assigned any more are closed. A task without a logged store
        has nothing to follow, and is left out.
        """
        has_logged_stores = self._task_creator.has_logged_stores
        self._assigned = {n: mine for n, mine in assigned.items() if has_logged_stores(n)}
        self._create_at_s = 0.0
        self._close_tasks(
            [n for n, t in self.by_name.items() if self._assigned.get(n) != set(t.partitions)]
        )

    def is_assigned(self, task: Task) -> bool:
        """Return whether a standby task is still assigned with the same partitions."""
        return self._assigned.get(task.name) == set(task.partitions)

    def promote_tasks(self, active: Mapping[str, set[Partition]]) -> dict[str, Task]:
        """Stop following the tasks that become active with the same partitions, and return them.

        Their directories and stores stay open: what is left to restore is what came since.
        """
        promoted = [n for n, t in self.by_name.items() if active.get(n) == set(t.partitions)]
        if followed := self._stop_following_standbys(promoted):
            self._restorer.promote_tasks(followed)
        return {name: self.by_name.pop(name) for name in promoted}

    def add_task(self, task: Task) -> None:
        """Add a task that was active here until now, with nothing to commit.

        It is closed if it can't be rolled back, and created anew at a later turn.
        """
        with ExitStack() as steps:
            steps.callback(self._close_task, task)
            if task.state is not TaskState.CREATED:
                task.roll_back()
            self.by_name[task.name] = task
            steps.pop_all()

    def follow_assigned_tasks(self, *, may_create: bool) -> None:
        """Create an assigned task that is missing, and hand those that are new to the restorer.

        One in a turn, and only if `may_create`: while its stores are opened the active tasks stand
        still. A directory that another process of the same state directory has locked is waited
        for.
        Raises: what went wrong while changelogs were followed.
        """
        missing = self._assigned.keys() - self.by_name.keys()
        if may_create and missing and self._host.monotonic_s() >= self._create_at_s:
            self._create_first_unlocked_task(sorted(missing))
        if not self.by_name:
            return
        fresh = [task for task in self.by_name.values() if task.state is TaskState.CREATED]
        for task in fresh:
            task.start_following()
        self._restorer.follow_tasks(fresh)
        self._restorer.continue_following()

    def _create_first_unlocked_task(self, names: Iterable[str]) -> None:
        """Create the first task whose directory is free, or wait before the next attempt."""
        for name in names:
            task = self._task_creator.create_task(name, sorted(self._assigned[name]))
            if task is not None:
                self.by_name[name] = task
                self._task_offsets.remove_from_dormant(task)
                return
        self._create_at_s = self._host.monotonic_s() + _CREATE_RETRY_S

    def close_tasks_without_commit(self) -> None:
        """Close every task, and wait for no other."""
        self._assigned = {}
        self._close_tasks(list(self.by_name))

    def _close_tasks(self, names: Collection[str]) -> None:
        """Close the named tasks; their positions are durable.

        Each is closed whatever the others raise, also if the restorer's thread has ended: then
        nobody uses the stores.
        """
        followed = self._stop_following_standbys(names)
        with ExitStack() as steps:
            for name in names:
                steps.callback(self._close_task, self.by_name.pop(name))
            if followed:
                self._restorer.stop_following(followed)

    def _close_task(self, task: Task) -> None:
        """Close a task, also where its offset can't be read: else its directory stays locked."""
        with ExitStack() as steps:
            steps.callback(task.close)
            self._task_creator.lifetimes.note_closed()
            self._task_offsets.remember_as_dormant_before_closing(task, self._thread_name)

    def _stop_following_standbys(self, names: Iterable[str]) -> list[str]:
        """Change the named standby tasks to CREATED; return those whose stores the restorer has."""
        followed = [n for n in names if self.by_name[n].state is TaskState.STANDBY]
        for name in followed:
            self.by_name[name].stop_following()
        return followed
