"""Keep one thread's membership of its group, and hand the tasks over in a rebalance.

signal                                what happens
REBALANCE, or inputs have other       commit, then join again: tasks that were revoked are
partitions and this member leads      closed, the others go on
LOST, while tasks are assigned        TaskMigrated: the recovery closes all without a commit
NOTHING                               nothing
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams.errors import ApplicationShutdown, OutcomeUnknown, TaskMigrated
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.task import TaskState
from streams.runtime.thread_dependencies import ThreadDependencies
from streams.runtime.thread_state import ThreadState
from streams.runtime.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)


class ThreadRebalance:
    """Joins one thread to its group whenever it has to, and gives the assignment to its tasks.

    `commit_tasks` is called before a rebalance. Kafka Streams' counterpart is
    StreamsRebalanceListener.
    """

    def __init__(
        self,
        dependencies: ThreadDependencies,
        tasks: ThreadTasks,
        commit_tasks: Callable[[], None],
    ) -> None:
        self._dependencies = dependencies
        self._tasks = tasks
        self._commit_tasks = commit_tasks
        self._previous_tasks: tuple[str, ...] = ()
        """The tasks that were assigned last, kept while the membership is lost."""
        self._input_check_at_s = 0.0

    def maintain_membership(self) -> None:
        """Read the membership's signal, commit before a rebalance, and join the group if need be.

        Raises: TaskMigrated where the coordinator does not know this member any more.
        """
        match self._dependencies.member.read_signal():
            case MembershipSignal.LOST if self._tasks.assignment is not None:
                raise TaskMigrated("the coordinator does not know this member any more")
            case MembershipSignal.REBALANCE:
                self._commit_tasks()
                self._tasks.assignment = None
            case _ if self._check_inputs_changed():
                log.info(
                    "%s: inputs have other partitions: tasks are assigned anew",
                    self._dependencies.name,
                )
                self._commit_tasks()
                self._tasks.assignment = None
        if self._tasks.assignment is None:
            self._rejoin_group()

    def _check_inputs_changed(self) -> bool:
        """Return whether input partitions have changed; only the group's leader checks."""
        parts = self._dependencies
        if self._tasks.assignment is None or not parts.member.is_leader:
            return False
        if parts.host.monotonic_s() < self._input_check_at_s:
            return False
        self._schedule_input_check()
        try:
            return parts.are_inputs_changed()
        except OutcomeUnknown as error:
            log.info("%s: inputs are looked at another time: %s", parts.name, error)
            return False

    def _schedule_input_check(self) -> None:
        """Set the time of the next check of the inputs to one interval from now."""
        interval_s = self._dependencies.input_check_interval_ms / 1000
        self._input_check_at_s = self._dependencies.host.monotonic_s() + interval_s

    def _rejoin_group(self) -> None:
        """Join the group again and take over its assignment.

        Nothing is processed or committed until the group has answered. Tasks that were revoked are
        closed, the others go on. Raises ApplicationShutdown if a member asks all of them to end.
        """
        parts, tasks = self._dependencies, self._tasks
        parts.on_state_change(ThreadState.REBALANCING)
        parts.counters.rebalances += 1
        for task in tasks.in_state(TaskState.RUNNING):
            task.suspend_processing()
        generation_before = parts.member.current_membership.generation
        former = () if tasks.by_name else self._previous_tasks
        assigned = parts.member.join_group(SubscriptionInfo(tuple(tasks.by_name), former=former))
        if assigned is None:
            return
        if assigned.shutdown:
            raise ApplicationShutdown(assigned.shutdown)
        adopted = parts.adopt_assignment(assigned)
        self._previous_tasks = adopted.tasks
        tasks.take_assignment(adopted)
        if parts.member.current_membership.generation > generation_before + 1:
            # In a generation that this member missed another one may have run its tasks: their
            # positions are from before that, so they are read back.
            tasks.roll_back_tasks()
        for task in tasks.in_state(TaskState.SUSPENDED):
            task.resume_processing()
        self._schedule_input_check()
        tasks.report_if_settled()
