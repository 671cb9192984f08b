"""Run the loop of one stream thread: membership, tasks, records, commits, and recovery.

Each turn does what is next, in this order: keep a membership; start the tasks that it assigns,
each with its producer; poll records and process them; commit when it is time. Recovery discards
some of these, and the next turns build them again.

    raised           discarded                     what happens to the tasks
    OutcomeUnknown   producers                     rolled back (the new producer fences the old)
    TaskCorrupted    producers                     rolled back; the stores that it names are rebuilt
    ValueRefused     producers                     rolled back; the one named serialises early
    TaskMigrated     producers, membership         closed without a commit: another may have them
    StreamsError     everything                    closed; the thread ends, the error is reported

A task that is rolled back stays open: the committed offsets are read back, stable; its stores are
restored from where they are; the consumer goes on from the offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack

from state.errors import StateError
from streams.common.topic_partitions import Partition
from streams.errors import (
    ApplicationShutdown,
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    ValueRefused,
)
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import MembershipSignal
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.runtime.clients import encode_group_metadata
from streams.runtime.commit import TaskCommitter
from streams.runtime.context import COMMIT_ORIGIN
from streams.runtime.failures import RECOVERY_ERRORS
from streams.runtime.progress import RestoreProgress
from streams.runtime.recovery import to_recovery_error
from streams.runtime.task import Task, TaskState
from streams.runtime.task_executor import TaskExecutor
from streams.runtime.thread_dependencies import ThreadDependencies
from streams.runtime.thread_state import ThreadState

log = logging.getLogger(__name__)

_POLL_WAIT_S = 0.05
_BACK_OFF_S = 0.2
_IDLE_RECOVERY_S = 5.0
"""How long tasks have to run with nothing to commit before the last failure is cleared."""
_NO_ASSIGNMENT = AssignmentInfo((), ())


class StreamLoop:
    """Runs the tasks that the group assigns to one thread, until a stop.

    Kafka Streams' counterpart is StreamThread (`runLoop`, `runOnce`).
    """

    def __init__(self, dependencies: ThreadDependencies) -> None:
        self._dependencies = dependencies
        self.counters = dependencies.counters
        self.tasks: dict[str, Task] = {}
        self._assignment: AssignmentInfo | None = None
        self._previous_tasks: tuple[str, ...] = ()
        """The tasks that were assigned last, kept while the membership is lost."""
        self._executor = TaskExecutor(
            dependencies.consumer, dependencies.producers, dependencies.host, self.counters
        )
        self._commit_deadline_s = 0.0
        self._input_check_at_s = 0.0
        self.failing_since_s: float | None = None
        self._settled_at_s = 0.0
        self._is_to_be_replaced = False
        self.turn_count = 0
        self.last_failure = ""
        """The reason of the last recovery since the last commit; empty if there was none."""
        self.committed_at_ms: int | None = None
        """Wall-clock time of the last commit."""
        self._committer = TaskCommitter(
            dependencies.consumer,
            dependencies.admin,
            dependencies.producers,
            ledger=dependencies.ledger,
            get_group_metadata=self._group_metadata,
            commit_as_member=dependencies.member.commit_offsets,
            on_commit=dependencies.on_commit,
            on_step=dependencies.on_commit_step,
            now_ms=dependencies.host.now_ms,
        )

    @property
    def record_origin(self) -> str:
        """Return the origin of the record that is being processed, empty if none is."""
        task = self._executor.current_task
        return "" if task is None else task.record_origin

    @property
    def restore_progress(self) -> tuple[RestoreProgress, ...]:
        """Return the progress of each store that is being restored."""
        return self._dependencies.restorer.progress

    @property
    def silent_since_s(self) -> float | None:
        """Return the monotonic time since when no coordinator answers; None if one answers."""
        return self._dependencies.member.silent_since_s

    def run_until_stopped(self) -> None:
        """Run until `stop` is set; then commit, leave the group and close. Raises StreamsError."""
        try:
            while not self._dependencies.stop.is_set():
                self.run_once()
            self.commit_now()
        except Exception as error:
            self._is_to_be_replaced = self._dependencies.decide_replacement(error)
            raise
        finally:
            self.close()

    def run_once(self) -> None:
        """Take one turn of the loop, and recover from what goes wrong. Raises StreamsError."""
        self._mark_progress()
        self._run_with_recovery(self._do_next_steps)

    def commit_now(self) -> None:
        """Commit all tasks now, and recover from what goes wrong. Raises StreamsError."""
        self._run_with_recovery(self._commit_tasks)

    def _mark_progress(self) -> None:
        """Count a turn of the loop, and tell the group membership that the thread is not stuck."""
        self.turn_count += 1
        self._dependencies.member.mark_progress()

    def _run_with_recovery(self, action: Callable[[], None]) -> None:
        """Run `action` and recover from errors that allow it; raise StreamsError for others."""
        try:
            try:
                action()
            except (TaskMigrated, TaskCorrupted, OutcomeUnknown, ValueRefused) as error:
                self._recover_from(error)
        except (StateError, OSError) as error:
            raise StreamsError(f"state: {error}") from error

    def _do_next_steps(self) -> None:
        """Keep the membership, start tasks, process polled records, and commit if it is time."""
        parts = self._dependencies
        self._maintain_membership()
        if self._assignment is None:
            return
        if not self._is_settled():
            self._start_tasks()
        if not self._executor:
            self._clear_failure_if_idle()
            if not self._tasks_in_state(TaskState.RESTORING):
                parts.stop.wait(_POLL_WAIT_S)
            return
        self._executor.poll_records(parts.poll_records_max, self._poll_wait_s())
        if strayed := parts.consumer.take_out_of_range_positions():
            self._reset_out_of_range(strayed)
        self._executor.process_slices(self._continue_after_slice)
        parts.producers.poll_delivery_reports()
        if parts.host.monotonic_s() >= self._commit_deadline_s:
            self._commit_tasks()

    def _poll_wait_s(self) -> float:
        """Return for how many seconds to wait for records: at most until the next commit is due."""
        if not any(task.commit_needed for task in self.tasks.values()):
            return _POLL_WAIT_S
        left_s = self._commit_deadline_s - self._dependencies.host.monotonic_s()
        return min(_POLL_WAIT_S, max(left_s, 0.0))

    def _continue_after_slice(self) -> bool:
        """Commit between two slices if it is time, and return whether to process the next slice."""
        self._mark_progress()
        if self._dependencies.host.monotonic_s() >= self._commit_deadline_s:
            self._commit_tasks()
        elif self._executor.commit_requested or self._is_uncommitted_memory_full():
            self.counters.early_commits += 1
            self._commit_tasks()
        return not self._is_interrupted()

    def _is_uncommitted_memory_full(self) -> bool:
        """Return whether uncommitted writes take more memory than the setting allows."""
        return 0 <= self._dependencies.uncommitted_bytes_max < self._executor.uncommitted_bytes

    def _reset_out_of_range(self, out_of_range: Mapping[Partition, int]) -> None:
        """Go on with partitions out of range at the offsets that the reset policy selects.

        Raises: TaskMigrated where the committed offset is beyond the position: another member has
        the task, and what this one was to read may have been deleted since; OutcomeUnknown where no
        coordinator answers.
        """
        try:
            committed = self._dependencies.member.fetch_committed_offsets(out_of_range)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error
        for partition, position in out_of_range.items():
            held = committed.offsets.get(partition)
            if partition in committed.pending or (held is not None and held.offset > position):
                raise TaskMigrated(f"{partition} has been read beyond {position} by another member")
        positions = self._dependencies.offset_resetter.find_reset_offsets(out_of_range)
        self._dependencies.consumer.remove_partitions(positions)
        self._dependencies.consumer.add_partitions(positions)
        for partition, position in positions.items():
            self._executor.task_of_partition(partition).positions[partition] = position
        self.counters.offsets_out_of_range = self._dependencies.offset_resetter.offsets_out_of_range
        self.counters.records_out_of_range = self._dependencies.offset_resetter.records_out_of_range

    def _commit_tasks(self) -> None:
        """Commit all tasks, schedule the next commit and count this one."""
        self._schedule_commit()
        try:
            committed = self._committer.commit_tasks(self.tasks.values())
        except RECOVERY_ERRORS:
            raise
        except Exception as error:
            raise to_recovery_error(error, COMMIT_ORIGIN) from error
        self._executor.reset_after_commit()
        if committed:
            self.counters.commits += 1
            self.committed_at_ms = self._dependencies.host.now_ms()
            self._clear_failure()
        else:
            self._clear_failure_if_idle()

    def _schedule_commit(self) -> None:
        """Set the deadline of the next commit to one commit interval from now."""
        self._commit_deadline_s = (
            self._dependencies.host.monotonic_s() + self._dependencies.commit_interval_ms / 1000
        )

    def _maintain_membership(self) -> None:
        """Read the membership's signal, commit before a rebalance, and join the group if need be.

        Raises: TaskMigrated where the coordinator does not know this member any more.
        """
        member = self._dependencies.member
        match member.read_signal():
            case MembershipSignal.LOST if self._assignment is not None:
                raise TaskMigrated("the coordinator does not know this member any more")
            case MembershipSignal.REBALANCE:
                self._commit_tasks()
                self._assignment = None
            case _ if self._check_inputs_changed():
                log.info(
                    "%s: inputs have other partitions: tasks are assigned anew",
                    self._dependencies.name,
                )
                self._commit_tasks()
                self._assignment = None
        if self._assignment is None:
            self._rejoin_group()

    def _check_inputs_changed(self) -> bool:
        """Return whether input partitions have changed; only the group's leader checks."""
        parts = self._dependencies
        now_s = parts.host.monotonic_s()
        if self._assignment is None or not parts.member.is_leader or now_s < self._input_check_at_s:
            return False
        self._input_check_at_s = now_s + parts.input_check_interval_ms / 1000
        try:
            return parts.are_inputs_changed()
        except OutcomeUnknown as error:
            log.info("%s: inputs are looked at another time: %s", parts.name, error)
            return False

    def _rejoin_group(self) -> None:
        """Join the group again and take over its assignment.

        Nothing is processed or committed until the group has answered. Tasks that were revoked are
        closed, the others go on. Raises ApplicationShutdown if a member asks all of them to end.
        """
        member = self._dependencies.member
        self._dependencies.on_state_change(ThreadState.REBALANCING)
        self.counters.rebalances += 1
        for task in self._tasks_in_state(TaskState.RUNNING):
            task.suspend_processing()
        generation_before = member.current_membership.generation
        former = () if self.tasks else self._previous_tasks
        assigned = member.join_group(SubscriptionInfo(tuple(self.tasks), former=former))
        if assigned is None:
            return
        if assigned.shutdown:
            raise ApplicationShutdown(assigned.shutdown)
        self._assignment = self._dependencies.adopt_assignment(assigned)
        self._previous_tasks = self._assignment.tasks
        partitions_by_task = self._partitions_by_task(self._assignment)
        # A task that has other partitions than before is another task, and is created anew.
        self._close_tasks(
            [
                name
                for name, task in self.tasks.items()
                if partitions_by_task.get(name) != set(task.partitions)
            ]
        )
        if member.current_membership.generation > generation_before + 1:
            # In a generation that this member missed another one may have run its tasks: their
            # positions are from before that, so they are read back.
            self._roll_back_tasks()
        for task in self._tasks_in_state(TaskState.SUSPENDED):
            task.resume_processing()
        self._input_check_at_s = (
            self._dependencies.host.monotonic_s()
            + self._dependencies.input_check_interval_ms / 1000
        )
        self._report_if_settled()

    def _start_tasks(self) -> None:
        """Bring each assigned task towards RUNNING; what can't be done yet is retried next turn."""
        opener, producers = self._dependencies.task_creator, self._dependencies.producers
        restorer = self._dependencies.restorer
        for name, partitions in self._assigned_but_not_created().items():
            if (created := opener.create_task(name, partitions)) is not None:
                self.tasks[name] = created
        waiting = self._tasks_in_state(TaskState.CREATED)
        for task in waiting:
            producers.get_producer(task.name)  # fences its predecessor, before offsets are read
        restorer.add_tasks(opener.start_restoring_from_committed(waiting))
        # While no task runs there is nothing else to do than to wait for the restorer.
        ready = restorer.take_restored_tasks(0.0 if self._executor else _POLL_WAIT_S)
        self.counters.restored_records = restorer.restored_records
        if ready and not self._executor:
            self._schedule_commit()
        parts = self._dependencies
        for task in ready:
            producer = producers.get_producer(task.name)
            task.start_processing(producer, parts.consumer, parts.order_settings, parts.host.now_ms)
        if ready:
            self._executor.add_tasks(ready)
            log.info("%s runs tasks %s", parts.name, ", ".join(sorted(self.tasks)))
        self._report_if_settled()

    def _assigned_but_not_created(self) -> dict[str, list[Partition]]:
        """Return the tasks that are assigned and not created yet, with their partitions."""
        assigned = self._partitions_by_task(self._assignment or _NO_ASSIGNMENT)
        return {name: sorted(mine) for name, mine in assigned.items() if name not in self.tasks}

    def _partitions_by_task(self, assigned: AssignmentInfo) -> dict[str, set[Partition]]:
        """Return the assigned tasks with the partitions that each of them reads."""
        by_task: dict[str, set[Partition]] = {name: set() for name in assigned.tasks}
        for topic, number in assigned.partitions:
            name = self._dependencies.task_creator.task_name_of_partition(topic, number)
            if name in by_task:
                by_task[name].add(Partition(topic, number))
        return by_task

    def _tasks_in_state(self, state: TaskState) -> list[Task]:
        return [task for task in self.tasks.values() if task.state is state]

    def _report_if_settled(self) -> None:
        """Report RUNNING, and note the time, if all assigned tasks run."""
        if self._is_settled():
            self._settled_at_s = self._dependencies.host.monotonic_s()
            self._dependencies.on_state_change(ThreadState.RUNNING)

    def _clear_failure_if_idle(self) -> None:
        """Clear the last failure if all tasks have run for some seconds with nothing to commit."""
        if (
            self._is_settled()
            and self._dependencies.host.monotonic_s() - self._settled_at_s >= _IDLE_RECOVERY_S
        ):
            self._clear_failure()

    def _clear_failure(self) -> None:
        """Clear the last failure: the thread has committed, or has been idle for a while."""
        self.failing_since_s = None
        self.last_failure = ""

    def _is_settled(self) -> bool:
        """Return whether all assigned tasks run."""
        assigned = self._assignment
        return assigned is not None and len(assigned.tasks) == len(
            self._tasks_in_state(TaskState.RUNNING)
        )

    def _is_interrupted(self) -> bool:
        """Return whether a stop or a rebalance is asked for."""
        return (
            self._dependencies.stop.is_set()
            or self._dependencies.member.read_signal() is not MembershipSignal.NOTHING
        )

    def _close_tasks(self, names: list[str]) -> None:
        """Close the named tasks and release their producers, without a commit."""
        self._withdraw_from_restorer(names)
        closed = [self.tasks.pop(name) for name in names]
        with ExitStack() as steps:
            for task in closed:
                steps.callback(self._dependencies.producers.release_producer, task.name)
                steps.callback(task.close)
            self._executor.remove_tasks(closed)

    def _withdraw_from_restorer(self, names: Iterable[str]) -> None:
        """Take tasks back from the restorer; their stores keep what has been restored."""
        restoring = [n for n in names if self.tasks[n].state is TaskState.RESTORING]
        if restoring:
            self._dependencies.restorer.withdraw_tasks(restoring)

    def _roll_back_tasks(self) -> None:
        """Roll every task back to what is committed; all of them stay open."""
        self._withdraw_from_restorer(self.tasks)
        self._executor.remove_tasks(list(self.tasks.values()))
        for task in self.tasks.values():
            if task.state is not TaskState.CREATED:
                task.roll_back()

    def _recover_from(self, error: Exception) -> None:
        """Discard producers and uncommitted work, so that the loop goes on from the last commit.

        Raises: StreamsError if nothing has been committed for `task_timeout_ms`.
        """
        log.warning("%s starts over from what is committed: %s", self._dependencies.name, error)
        self.counters.count_recovery(error)
        self.last_failure = str(error)
        now = self._dependencies.host.monotonic_s()
        if self.failing_since_s is None:
            self.failing_since_s = now
        if now - self.failing_since_s > self._dependencies.task_timeout_ms / 1000:
            raise StreamsError(
                f"no commit for {self._dependencies.task_timeout_ms} ms (task_timeout_ms): {error}"
            ) from error
        # Producers are discarded first: one that is closed in order would end its transaction.
        self._dependencies.producers.discard_producers()
        if isinstance(error, TaskMigrated):
            self._close_tasks(list(self.tasks))
            self._assignment = None
        else:
            self._roll_back_tasks()
        if isinstance(error, TaskCorrupted) and error.task in self.tasks:
            self.tasks[error.task].clear_stores(error.stores)
        if isinstance(error, ValueRefused) and error.task in self.tasks:
            self.tasks[error.task].early_serialization.start_serializing_early()
        self._dependencies.on_state_change(ThreadState.REBALANCING)
        self._dependencies.stop.wait(_BACK_OFF_S)

    def close(self) -> None:
        """Leave the group and close everything, without a commit.

        What a failed thread did is rolled back. A thread that is to be replaced hands its
        membership over instead of leaving.
        """
        with ExitStack() as steps:  # in reverse order, each whatever the others raise
            steps.callback(self._dependencies.restorer.close)
            steps.callback(self._dependencies.consumer.close)
            member = self._dependencies.member
            steps.callback(
                member.hand_over_membership if self._is_to_be_replaced else member.leave_group
            )
            steps.callback(self._dependencies.producers.close_producers)
            steps.callback(self._close_tasks, list(self.tasks))

    def _group_metadata(self) -> bytes:
        """Return the consumer group metadata of the current generation, for a transaction."""
        generation, member_id = self._dependencies.member.current_membership
        return encode_group_metadata(
            self._dependencies.group, generation, member_id, self._dependencies.member.instance_id
        )
