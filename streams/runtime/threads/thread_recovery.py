"""Recover one thread from an error: discard what it did since its last commit, and go on.

    raised           discarded                     what happens to the tasks
    OutcomeUnknown   producers                     rolled back (the new producer fences the old)
    TaskOutcome-     the task's own producer       it is rolled back, the others go on. Where others
    Unknown                                        were being committed: as OutcomeUnknown
    TaskCorrupted    producers                     rolled back; the stores that it names are rebuilt
    ValueRefused     producers                     rolled back; the one named serialises early
    WriteRefused     producers                     rolled back; records are written one by one. So
                                                   they are after three OutcomeUnknown in a row
    WriteNotAllowed  as WriteRefused               the same, unless a topic of the topology is the
                                                   one: then as AuthorizationError
    GenerationOver   transactions                  rolled back, while the member joins, without a
                                                   wait; otherwise as TaskMigrated
    PositionRefused  nothing, or all           as TaskMigrated if another member has committed the
                                               task since; else as any StreamsError
    TaskMigrated     producers, membership         closed without a commit: another may have them
    AuthorizationError and any other
    StreamsError     everything                    closed; the thread ends, the error is reported

While no broker answers (`BrokerOutage`) nothing is polled or tried: the thread waits, and what is
uncommitted is given up after `request_timeout_ms`, as if a call had waited for so long. However
long the outage is, the thread goes on after it: `task_timeout_ms` is for tasks that fail while
brokers answer.

A task that is rolled back stays open: the committed offsets are read back, stable; its stores are
restored from where they are; the consumer goes on from the offsets.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection
from weakref import WeakKeyDictionary

from state.errors import StateError
from streams.common.host import Event, Host
from streams.errors import (
    BrokerUnavailable,
    CoordinatorMoved,
    GenerationOver,
    InputDeleted,
    OutcomeUnknown,
    PositionRefused,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    TaskOutcomeUnknown,
    ValueRefused,
    WriteRefused,
)
from streams.membership.broker_outage import BrokerOutage, create_overdue_check
from streams.membership.group_member import GroupMember
from streams.runtime.clients.errors import TopicRefused, WriteNotAllowed
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_creator import TaskCreator
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.producers import TaskProducers
from streams.runtime.threads.recovery_log import RecoveryLog
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.thread_tasks import ThreadTasks

log = logging.getLogger(__name__)

_BACK_OFF_S = 0.2
_OUTAGE_TURN_S = 0.2
"""How long a turn of the loop is while no broker answers."""
_UNKNOWN_MAX = 3
"""After so many unknown outcomes in a row records are written one by one, to name the one at
fault."""
_TASK_WAIT_MIN_S, _TASK_WAIT_MAX_S = 1.0, 60.0
_RIGHTS_CHECK_INTERVAL_S = 60.0
"""How often at most the rights are looked at for failures that tell of no missing right."""
_FAILURES_APART_S = 120.0
"""After so long a failure is taken for the first of others: what may not be written fails again at
the next commit, and brokers that have just moved would hold up the look and the recovery."""
_IDLE_RECOVERY_S = 5.0
"""How long tasks have to run with nothing to commit before the last failure is cleared."""


class ThreadRecovery:
    """Recovers one thread from errors that allow it, and ends it if it never commits again.

    `outage` knows whether any broker answers, None where one always does. `check_rights` raises
    AuthorizationError if a right to a topic is missing, and OutcomeUnknown if no broker answers
    soon; `check_internal_topics` raises StreamsError if an internal topic that the tasks need is
    gone, or has other partitions. `on_state_change` is called with REBALANCING. A thread ends where
    tasks fail to commit for `task_timeout_ms` while brokers answer, or where an input was deleted,
    unless it `may_lose_inputs`, which match a pattern.

    Kafka Streams' counterparts are StreamThread.runLoop, which catches the errors, and TaskManager
    (`handleCorruption`, `handleLostAll`).
    """

    def __init__(
        self,
        thread_name: str,
        host: Host,
        stop: Event,
        member: GroupMember,
        tasks: ThreadTasks,
        task_creator: TaskCreator,
        producers: TaskProducers,
        counters: ThreadCounters,
        *,
        outage: BrokerOutage | None,
        check_rights: Callable[[], None],
        check_internal_topics: Callable[[], None],
        on_state_change: Callable[[ThreadState], None],
        task_timeout_ms: int,
        may_lose_inputs: bool,
    ) -> None:
        self._thread_name = thread_name
        self._host = host
        self._stop = stop
        self._member = member
        self._tasks = tasks
        self._task_creator = task_creator
        self._producers = producers
        self._counters = counters
        self._outage = outage
        self._look_at_rights = check_rights
        self._look_at_internal_topics = check_internal_topics
        self._on_state_change = on_state_change
        self._task_timeout_ms = task_timeout_ms
        self._may_lose_inputs = may_lose_inputs
        self.failing_since_s: float | None = None
        """The monotonic time of the first failure since the last commit; None if there was none."""
        self.last_failure = ""
        """The reason of the last recovery since the last commit; empty if there was none."""
        self._recovery_log = RecoveryLog(thread_name, host.monotonic_s)
        self._is_overdue = create_overdue_check(host) if outage is None else outage.is_overdue
        self._unexplained_at_s = -math.inf
        self._rights_check_at_s = 0.0
        self._unknown_count = 0
        """The number of unknown outcomes since the last commit."""
        self._failing_since_s: WeakKeyDictionary[Task, float] = WeakKeyDictionary()
        """The tasks whose own transaction has failed since their last commit, and since when."""

    def run_steps_or_probe_broker(self, do_next_steps: Callable[[], None]) -> None:
        """Run the next steps, or wait for a moment while no broker answers; recover from errors.

        Raises StreamsError for errors that allow no recovery.
        """
        outage = self._outage
        is_away = outage is not None and outage.is_on
        self.run_with_recovery(self._probe_broker_or_discard_work if is_away else do_next_steps)

    def _probe_broker_or_discard_work(self) -> None:
        """Wait a moment and ask for the end of an outage; after long, discard uncommitted work."""
        outage = self._outage
        assert outage is not None
        is_given_up = outage.measure_duration_s() >= outage.give_up_after_s
        if is_given_up and any(task.commit_needed for task in self._tasks.by_name.values()):
            # A transaction would end by its own time-out, and fence its producer.
            raise OutcomeUnknown("what is not committed is given up")
        self._stop.wait(_OUTAGE_TURN_S)
        if not self._stop.is_set():
            outage.probe_if_due()

    def is_broker_away(self, error: Exception) -> bool:
        """Return whether an error is that no broker answers, which is asked of them."""
        outage = self._outage
        return (
            outage is not None
            and isinstance(error, OutcomeUnknown)
            and not self._stop.is_set()
            and not outage.try_reach_any_broker()
        )

    def run_with_recovery(self, action: Callable[[], None]) -> None:
        """Run `action` and recover from errors that allow it; raise StreamsError for others."""
        try:
            try:
                action()
            except WriteNotAllowed as refusal:
                # None of the topology's own topics, so one that a function has chosen.
                self._check_rights()
                self._restart_after(WriteRefused(str(refusal)))
            except TopicRefused:
                self._check_rights()
                raise
            except InputDeleted as error:
                if not self._may_lose_inputs:
                    raise
                self._restart_after(OutcomeUnknown(str(error)))
            except TaskOutcomeUnknown as error:
                self._recover_from_failure_of_one_task(error)
            except PositionRefused as refusal:
                self._recover_if_overtaken(refusal)
            except GenerationOver as error:
                if self._member.is_joining:
                    self._keep_tasks_until_assigned(error)
                else:
                    self._restart_after(error)
            except (
                TaskMigrated,
                TaskCorrupted,
                OutcomeUnknown,
                ValueRefused,
                WriteRefused,
            ) as error:
                self._restart_after(error)
        except (StateError, OSError) as error:
            raise StreamsError(f"state: {error}") from error

    def group_for_commit(self, tasks: list[Task]) -> list[list[Task]]:
        """Return the groups in which tasks are committed, one after the other.

        Those whose own transaction has failed since their last commit come last, and each alone: so
        they hold up nobody whose transaction is open.
        """
        if not self._failing_since_s:
            return [tasks]
        failing = [task for task in tasks if task in self._failing_since_s]
        return [
            [task for task in tasks if task not in self._failing_since_s],
            *([task] for task in failing),
        ]

    def note_commit(self, committed: Collection[Task]) -> None:
        """Clear the last failure of the thread, and of the tasks, which were committed."""
        self.clear_failure()
        for task in committed:
            self._failing_since_s.pop(task, None)

    def clear_failure(self) -> None:
        """Clear the last failure: the thread works."""
        self.failing_since_s = None
        self.last_failure = ""
        self._recovery_log.end_incident()
        self._unknown_count = 0

    def clear_failure_if_idle(self) -> None:
        """Clear the last failure if all tasks have run for some seconds with nothing to commit."""
        now_s = self._host.monotonic_s()
        if self._tasks.are_all_running() and now_s - self._tasks.settled_at_s >= _IDLE_RECOVERY_S:
            self.clear_failure()

    def _check_rights(self) -> None:
        """Raise AuthorizationError if a right to a topic is missing, as far as can be known now."""
        try:
            self._look_at_rights()
        except OutcomeUnknown as error:
            log.info("%s: rights are not known: %s", self._thread_name, error)

    def _check_rights_if_due(self) -> None:
        """Check the rights after a failure, but not after the first for a while, and rarely.

        librdkafka often tells only that a record was not delivered, and not why. That other tasks
        commit in between says nothing of the one that may not write. A broker that is away makes
        many failures, and each look may delay the recovery.
        """
        now_s = self._host.monotonic_s()
        is_again = now_s - self._unexplained_at_s < _FAILURES_APART_S
        self._unexplained_at_s = now_s
        if is_again and now_s >= self._rights_check_at_s:
            self._rights_check_at_s = now_s + _RIGHTS_CHECK_INTERVAL_S
            self._check_rights()

    def _check_internal_topics(self) -> None:
        """Raise StreamsError if an internal topic that the tasks need was deleted.

        A thread without tasks may run a version whose topics are not created yet.
        """
        if self._tasks.by_name:
            self._look_at_internal_topics()

    def _keep_tasks_until_assigned(self, error: GenerationOver) -> None:
        """Roll the tasks back and keep them until the running join has assigned them.

        The group began the next generation while the tasks were committed in the one before.
        """
        log.info("%s repeats what it did since its last commit: %s", self._thread_name, error)
        self._counters.count_recovery(error)
        self._member.mark_generation_over()
        self._tasks.abort_uncommitted_work()
        self._on_state_change(ThreadState.REBALANCING)
        self._tasks.report_if_settled()

    def _recover_from_failure_of_one_task(self, error: TaskOutcomeUnknown) -> None:
        """Recover from the failure of a transaction that is one task's alone.

        The task is committed alone from now on, and alone starts over then. The thread stood still
        until it failed. So it waits before it starts, that others are committed meanwhile: as long
        as it has been failing, between a second and a minute.
        Raises: StreamsError if it has not committed for `task_timeout_ms`, and what
        `_restart_after` raises.
        """
        tasks = self._tasks
        task, now_s, failing_s = tasks.by_name.get(error.task), self._host.monotonic_s(), 0.0
        if task is not None:  # else it was closed in the rebalance for which it was committed
            failing_s = now_s - self._failing_since_s.setdefault(task, now_s)
        if self.is_broker_away(error):
            self._failing_since_s.clear()  # what fails is no single task
            self._restart_after(error)
            return
        if not error.is_alone:
            self._restart_after(error)
        else:
            self._recovery_log.log_recovery("one task", str(error), error)
            self._counters.count_recovery(error)
            self._check_rights_if_due()
            self._check_internal_topics()
            if self._is_overdue(now_s - failing_s, self._task_timeout_ms / 1000):
                self._check_rights()
                raise BrokerUnavailable(
                    f"no commit for {self._task_timeout_ms} ms (task_timeout_ms): {error}"
                ) from error
            self._on_state_change(ThreadState.REBALANCING)
        wait_s = min(max(failing_s, _TASK_WAIT_MIN_S), _TASK_WAIT_MAX_S)
        tasks.restart_task(error.task, wait_s, str(error))
        tasks.report_if_settled()

    def _recover_if_overtaken(self, refusal: PositionRefused) -> None:
        """Start over if another member has committed a task since; raise the refusal if none has.

        A member that was cut off for longer than its session does not know yet that its tasks are
        another's. What that one commits is more than the offsets account for that this one has.
        """
        active = [
            *self._tasks.list_tasks_in_state(TaskState.RESTORING),
            *self._tasks.list_tasks_in_state(TaskState.RUNNING),
        ]
        try:
            overtaken = self._task_creator.find_overtaken_tasks(active)
        except OutcomeUnknown as error:
            self._restart_after(error)
            return
        if not overtaken:
            raise refusal
        names = ", ".join(sorted(task.name for task in overtaken))
        self._restart_after(TaskMigrated(f"another member has committed {names}: {refusal}"))

    def _search_refused_write(self, error: Exception) -> None:
        """Write records one by one from now on if a broker may have refused one, to find which.

        Raises: StreamsError if a broker refuses something that is no record of a step.
        """
        refused_writes = self._producers.refused_writes
        if isinstance(error, WriteRefused):
            if refused_writes.is_searching and not error.is_found:
                raise StreamsError(f"{error}; no step has written it") from error
            refused_writes.start_search(by_refusal=True)
        elif isinstance(error, OutcomeUnknown):
            self._unknown_count += 1
            if self._unknown_count >= _UNKNOWN_MAX and not refused_writes.is_searching:
                refused_writes.start_search(by_refusal=False)

    def _restart_after(self, error: Exception) -> None:
        """Discard producers and uncommitted work, so that the loop goes on from the last commit.

        Raises: StreamsError if nothing has been committed for `task_timeout_ms`, or an internal
        topic is gone; AuthorizationError if a right is missing, as found at such an end or by
        `_check_rights_if_due`.
        """
        tasks = self._tasks
        is_away = self.is_broker_away(error)
        reason = str(error)
        if is_away and self._outage is not None:
            reason = f"{self._outage.describe_cause()} ({error})"
        self._recovery_log.log_recovery("", reason, error)
        self._counters.count_recovery(error)
        self.last_failure = reason
        now_s = self._host.monotonic_s()
        if self.failing_since_s is None:
            self.failing_since_s = now_s
        is_explained = is_away or isinstance(error, CoordinatorMoved)
        if isinstance(error, OutcomeUnknown) and not is_explained:
            self._check_rights_if_due()
            self._check_internal_topics()
        if not is_away:
            self._search_refused_write(error)
        if not is_away and self._is_overdue(self.failing_since_s, self._task_timeout_ms / 1000):
            self._check_rights()
            raise BrokerUnavailable(
                f"no commit for {self._task_timeout_ms} ms (task_timeout_ms): {error}"
            ) from error
        if isinstance(error, TaskMigrated):
            self._producers.discard_producers()
            tasks.close_tasks_without_commit()
            tasks.assignment = None
        else:
            tasks.discard_uncommitted_work()
        if isinstance(error, TaskCorrupted) and error.task in tasks.by_name:
            tasks.by_name[error.task].mark_stores_for_rebuild(error.stores, error.reason)
        if isinstance(error, ValueRefused) and error.task in tasks.by_name:
            tasks.by_name[error.task].early_serialization.start_serializing_early(error.limits)
        self._on_state_change(ThreadState.REBALANCING)
        if not (isinstance(error, WriteRefused) and error.is_found):
            self._stop.wait(_BACK_OFF_S)
        # Without tasks nothing is left to start that would report RUNNING again.
        tasks.report_if_settled()
