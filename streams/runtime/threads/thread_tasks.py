"""Create, start, roll back and close the tasks that the group assigns to one thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.membership.protocol import AssignmentInfo
from streams.runtime.clients.interfaces import ConsumerClient
from streams.runtime.restoring.restorer import Restorer
from streams.runtime.tasks.partition_group import RecordOrderSettings
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.tasks.task_offsets import TaskOffsets
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.standby_tasks import StandbyTasks
from streams.runtime.threads.task_executor import TaskExecutor
from streams.runtime.threads.thread_state import ThreadState

log = logging.getLogger(__name__)

_NO_ASSIGNMENT = AssignmentInfo((), ())
_MAYBE_IN_RESTORER = {TaskState.CREATED, TaskState.RESTORING}


class ThreadTasks:
    """Holds the tasks of one thread, and brings them to what the group has assigned.

    `on_state_change` is called with RUNNING. `restored_wait_s` is how long to wait for a restored
    task while none runs. Kafka Streams' counterpart is TaskManager.
    """

    def __init__(
        self,
        thread_name: str,
        host: Host,
        consumer: ConsumerClient,
        producers: TaskProducers,
        restorer: Restorer[Task],
        task_creator: TaskCreator,
        task_offsets: TaskOffsets,
        executor: TaskExecutor,
        standby: StandbyTasks,
        *,
        order_settings: RecordOrderSettings,
        commit_interval_ms: int,
        on_state_change: Callable[[ThreadState], None],
        restored_wait_s: float,
    ) -> None:
        self._thread_name = thread_name
        self._host = host
        self._consumer = consumer
        self._producers = producers
        self._restorer = restorer
        self._task_creator = task_creator
        self._task_offsets = task_offsets
        self.executor = executor
        self.standby = standby
        self._order_settings = order_settings
        self._commit_interval_ms = commit_interval_ms
        self._on_state_change = on_state_change
        self._restored_wait_s = restored_wait_s
        self.by_name: dict[str, Task] = {}
        """The active tasks."""
        self.assignment: AssignmentInfo | None = None
        """What the group has assigned; None while that is not known."""
        self.assigned_at_s = 0.0
        """The monotonic time at which the assignment was taken over."""
        self.commit_deadline_s = 0.0
        """The monotonic time at which the next commit is due."""
        self.settled_at_s = 0.0
        """The monotonic time since when all assigned tasks run."""
        self.is_group_unready = False
        """Whether the group has no tasks for any member, as topics are missing."""
        self._has_unlogged_starts = False

    @property
    def is_transactional(self) -> bool:
        """Return whether the tasks are committed in transactions."""
        return self._producers.is_transactional

    def list_tasks_in_state(self, state: TaskState) -> list[Task]:
        """Return the tasks that are in a state."""
        return [task for task in self.by_name.values() if task.state is state]

    def are_all_running(self) -> bool:
        """Return whether all assigned tasks run."""
        assigned = self.assignment
        return assigned is not None and len(assigned.tasks) == len(
            self.list_tasks_in_state(TaskState.RUNNING)
        )

    def report_if_settled(self) -> None:
        """Report RUNNING, and note the time, if all assigned tasks run and the group has tasks.

        They are logged where one has started: once, though those with state start after the others.
        """
        if self.are_all_running() and not self.is_group_unready:
            if self._has_unlogged_starts:
                self._has_unlogged_starts = False
                names = ", ".join(sorted(self.by_name))
                log.info("%s runs tasks %s", self._thread_name, names)
            self.settled_at_s = self._host.monotonic_s()
            self._on_state_change(ThreadState.RUNNING)

    def sum_offsets(self) -> dict[str, int]:
        """Return how far the state of each task in the state directory is, for the leader."""
        tasks = (*self.by_name.values(), *self.standby.by_name.values())
        return self._task_offsets.sum_offsets(tasks, self._thread_name)

    def schedule_commit(self) -> None:
        """Set the deadline of the next commit to one commit interval from now."""
        interval_s = self._commit_interval_ms / 1000
        self.commit_deadline_s = self._host.monotonic_s() + interval_s

    def adopt_assignment(self, assigned: AssignmentInfo) -> None:
        """Take an assignment over: promote, demote, and close tasks that it does not have.

        A task that has other partitions than before is another task, and is created anew. One that
        becomes a standby, or active, keeps its directory and its stores open.
        """
        self.assignment, self.assigned_at_s = assigned, self._host.monotonic_s()
        self.by_name |= self.standby.promote_tasks(self._partitions_by_task(assigned))
        self.standby.adopt_assigned_tasks(self._find_partitions_to_follow(assigned))
        leaving = self.find_leaving_tasks(assigned)
        if leaving:
            names = ", ".join(sorted(task.name for task in leaving))
            log.info("%s gives up tasks %s", self._thread_name, names)
        demoted = [task for task in leaving if self.standby.is_assigned(task)]
        self._remove_tasks([task.name for task in demoted], self.standby.add_task)
        self.close_tasks([task.name for task in leaving if task not in demoted])

    def find_leaving_tasks(self, assigned: AssignmentInfo) -> list[Task]:
        """Return the tasks that an assignment does not have, or has with other partitions."""
        partitions_by_task = self._partitions_by_task(assigned)
        return [
            task
            for name, task in self.by_name.items()
            if partitions_by_task.get(name) != set(task.partitions)
        ]

    def start_assigned_tasks(self) -> None:
        """Bring each assigned task towards RUNNING; what can't be done yet is retried next turn."""
        creator, producers, restorer = self._task_creator, self._producers, self._restorer
        for name, partitions in self._find_uncreated_tasks().items():
            if (created := creator.create_task(name, partitions)) is not None:
                self.by_name[name] = created
                self._task_offsets.remove_from_dormant(created)
        # A task's producer fences its predecessor before offsets are read.
        waiting = self.list_tasks_in_state(TaskState.CREATED)
        waiting = [task for task in waiting if producers.try_prepare_producer(task.name)]
        restorer.add_tasks(creator.start_restoring_from_committed(waiting))
        # While no task runs there is nothing else to do than to wait for one that can.
        wait_s = 0.0 if self.executor else self._restored_wait_s
        if (
            wait_s
            and producers.creations.is_waiting
            and not self.list_tasks_in_state(TaskState.RESTORING)
        ):
            producers.creations.wait_for_creation_attempt(wait_s)
            wait_s = 0.0
        ready = restorer.wait_and_pop_restored_tasks(wait_s)
        if ready and not self.executor:
            self.schedule_commit()
        for task in ready:
            producer = producers.get_producer(task.name)
            task.start_processing(
                producer,
                self._consumer,
                self._order_settings,
                self._host,
                producers.refused_writes,
            )
        if ready:
            self.executor.add_tasks(ready)
            self._has_unlogged_starts = True
        self.report_if_settled()

    def close_tasks(self, names: list[str]) -> None:
        """Close the named tasks and release their producers, without a commit."""
        self._remove_tasks(names, self._close_task)

    def close_tasks_without_commit(self) -> None:
        """Close every task and release its producer, without a commit."""
        self.close_tasks(list(self.by_name))

    def abort_uncommitted_work(self, *, has_missed_generation: bool = False) -> None:
        """Abort the transactions, keep the producers, and roll every task back.

        For a thread whose producers work, and are nobody else's; if it `has_missed_generation`,
        those that may be are discarded.
        """
        self._producers.abort_transactions(has_missed_generation=has_missed_generation)
        self.roll_back_tasks()

    def discard_uncommitted_work(self) -> None:
        """Discard the producers with their transactions, and roll every task back."""
        # Producers are discarded first: one that is closed in order would end its transaction.
        self._producers.discard_producers()
        self.roll_back_tasks()

    def restart_task(self, name: str, delay_s: float, reason: str) -> None:
        """Discard a task's uncommitted work and its own producer, and roll the task back.

        It starts again after a delay of seconds, and the other tasks go on.
        """
        if (task := self.by_name.get(name)) is not None:
            self._producers.replace_producer(name, delay_s, reason)
            self.executor.remove_tasks([task])
            if task.state is not TaskState.CREATED:
                task.roll_back()

    def roll_back_tasks(self) -> None:
        """Roll every task back to what is committed; all of them stay open."""
        self._withdraw_from_restorer(self.by_name)
        self.executor.remove_tasks(list(self.by_name.values()))
        for task in self.by_name.values():
            if task.state is not TaskState.CREATED:
                task.roll_back()

    def _remove_tasks(self, names: list[str], end: Callable[[Task], None]) -> None:
        """Take the named tasks out of processing, end each, and release their producers.

        Each step is done whatever the others raise: else directories stay locked. If the restorer's
        thread has ended, which the withdrawal raises, nobody uses the stores that it had.
        """
        with ExitStack() as steps:  # in reverse order
            removed = [self.by_name[name] for name in names]
            for task in removed:
                steps.callback(self._producers.release_producer, task.name)
                steps.callback(end, task)
                steps.callback(self.by_name.pop, task.name)
            steps.callback(self.executor.remove_tasks, removed)
            self._withdraw_from_restorer(names)

    def _close_task(self, task: Task) -> None:
        """Close a task, also where its offset can't be read: else its directory stays locked."""
        with ExitStack() as steps:
            steps.callback(task.close)
            self._task_creator.lifetimes.note_closed()
            self._task_offsets.remember_as_dormant_before_closing(task, self._thread_name)

    def _find_uncreated_tasks(self) -> dict[str, list[Partition]]:
        """Return the tasks that are assigned and not created yet, with their partitions."""
        assigned = self._partitions_by_task(self.assignment or _NO_ASSIGNMENT)
        return {name: sorted(mine) for name, mine in assigned.items() if name not in self.by_name}

    def _partitions_by_task(self, assigned: AssignmentInfo) -> dict[str, set[Partition]]:
        """Return the assigned tasks with the partitions that each of them reads."""
        return self._group_by_task(assigned.tasks, assigned.partitions)

    def _find_partitions_to_follow(self, assigned: AssignmentInfo) -> dict[str, set[Partition]]:
        """Return the tasks to follow with the partitions that each would read if it were active."""
        followed = {*assigned.standby, *assigned.warmup}.difference(assigned.tasks)
        return self._group_by_task(followed, assigned.following)

    def _group_by_task(
        self, names: Iterable[str], partitions: Iterable[tuple[str, int]]
    ) -> dict[str, set[Partition]]:
        """Return for each named task the partitions, of those given, that it reads."""
        by_task: dict[str, set[Partition]] = {name: set() for name in names}
        for topic, number in partitions:
            name = self._task_creator.task_name_of_partition(topic, number)
            if name in by_task:
                by_task[name].add(Partition(topic, number))
        return by_task

    def _withdraw_from_restorer(self, names: Iterable[str]) -> None:
        """Take tasks back from the restorer; their stores keep the records restored so far."""
        # The restorer may have to stop following one that was promoted a moment ago: CREATED.
        held = [n for n in names if self.by_name[n].state in _MAYBE_IN_RESTORER]
        if held:
            self._restorer.withdraw_tasks(held)
