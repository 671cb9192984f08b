"""Run the loop of one stream thread: membership, tasks, records, commits.

Each turn does what is next, in this order: keep the membership (`rebalance`); start the tasks that
it assigns, each with its producer (`thread_tasks`); poll records and process them; commit when it
is time. An error discards some of these (`thread_recovery`), and the next turns build them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from streams.common.topic_partitions import Partition
from streams.errors import AuthenticationError, OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.membership.group_member import GroupMember, MembershipSignal
from streams.membership.instance_fencing import IdentityReplaced
from streams.membership.protocol import AssignmentInfo
from streams.runtime.clients import encode_group_metadata
from streams.runtime.restoring.progress import RestoreProgress, StandbyProgress
from streams.runtime.tasks.context import COMMIT_ORIGIN
from streams.runtime.tasks.recovery_errors import RECOVERY_ERRORS, to_recovery_error
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.commit import PartitionOffsets
from streams.runtime.threads.loop_collaborators import (
    create_client_renewal,
    create_committer,
    create_rebalance,
    create_recovery,
    create_thread_tasks,
    create_topic_id_check,
)
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.moved_positions import MovedPositions
from streams.runtime.threads.producer_creation import ProducerWait
from streams.runtime.threads.thread_dependencies import ThreadDependencies

_POLL_WAIT_S = 0.05
_POLLED_WAIT_SHARE, _POLLED_WAIT_S_MAX = 0.25, 0.05
"""A commit that is due waits for the rest of the polled records: at most this share of the commit
interval, and so many seconds."""


class StreamLoop:
    """Runs the tasks that the group assigns to one thread, until a stop.

    Kafka Streams' counterpart is StreamThread (`runLoop`, `runOnce`).
    """

    def __init__(self, dependencies: ThreadDependencies) -> None:
        self._thread_name, self._group = dependencies.name, dependencies.group
        self._host, self._stop = dependencies.host, dependencies.stop
        self._control, self._restorer = dependencies.control, dependencies.restorer
        self._consumer, self.admin = dependencies.consumer, dependencies.admin
        self._member = dependencies.member
        self._producers = dependencies.producers
        self._offset_resetter = dependencies.offset_resetter
        self._task_offsets = dependencies.task_offsets
        self._poll_records_max = dependencies.poll_records_max
        self._uncommitted_bytes_max = dependencies.uncommitted_bytes_max
        self._is_identity_replaced = dependencies.is_identity_replaced
        self._decide_replacement = dependencies.decide_replacement
        self._on_commit = dependencies.on_commit
        self.counters = dependencies.counters
        self._thread_tasks = create_thread_tasks(dependencies, restored_wait_s=_POLL_WAIT_S)
        self.tasks = self._thread_tasks.by_name
        self._executor = self._thread_tasks.executor
        self.measurements: ThreadMeasurements = self._executor.measurements
        self._renewal = create_client_renewal(dependencies, self._thread_tasks)
        self._rebalance = create_rebalance(
            dependencies,
            self._thread_tasks,
            commit_tasks=self._commit_before_rebalance,
            assignment_wait_s=_POLL_WAIT_S,
        )
        self.recovery = create_recovery(dependencies, self._thread_tasks)
        self._moved_positions = MovedPositions(self._consumer, self._producers, self._host)
        self._polled_wait_s = min(
            dependencies.commit_interval_ms / 1_000 * _POLLED_WAIT_SHARE, _POLLED_WAIT_S_MAX
        )
        self._topic_id_check = create_topic_id_check(dependencies)
        self._is_to_be_replaced = False
        self._is_stopped_cleanly = False
        self.turn_count = 0
        self.committed_at_ms: int | None = None
        """Wall-clock time of the last commit."""
        self._committer = create_committer(
            dependencies, get_group_metadata=self._group_metadata, on_commit=self._note_committed
        )

    @property
    def record_origin(self) -> str:
        """Return the origin of the record that is being processed, empty if none is."""
        task = self._executor.current_task
        return "" if task is None else task.record_origin

    @property
    def restore_progress(self) -> tuple[RestoreProgress, ...]:
        """Return the progress of each store that is being restored."""
        return self._restorer.reader.progress

    @property
    def assignment(self) -> AssignmentInfo | None:
        """Return the assignment of this member by the group; None while it is not known."""
        return self._thread_tasks.assignment

    @property
    def assigned_and_confirmed_at_s(self) -> tuple[float, float]:
        """Return the monotonic times when tasks were assigned, and when they were so for sure."""
        assigned_at_s = self._thread_tasks.assigned_at_s
        return assigned_at_s, max(self._member.confirmed_at_s or 0.0, assigned_at_s)

    @property
    def standby_tasks(self) -> list[Task]:
        """Return a copy of the list of the standby and warm-up tasks."""
        return list(self._thread_tasks.standby.by_name.values())

    @property
    def standby_progress(self) -> tuple[StandbyProgress, ...]:
        """Return how far each store of a standby or warm-up task has followed its changelog."""
        return self._restorer.follower.progress

    @property
    def group_member(self) -> GroupMember:
        """Return the thread's membership of its group."""
        return self._member

    @property
    def producer_waits(self) -> tuple[ProducerWait, ...]:
        """Return the tasks that wait for producers of their own, and since when."""
        return self._producers.creations.waits

    def run_until_stopped(self) -> None:
        """Run until `stop` is set; then commit, leave the group and close. Raises StreamsError."""
        try:
            while not self._stop.is_set():
                self.run_once()
            self.commit_now()
            self._is_stopped_cleanly = True
        except IdentityReplaced:
            raise
        except Exception as error:
            self._is_to_be_replaced = self._decide_replacement(error)
            if isinstance(error, AuthenticationError):
                # Closed in order, each would wait for a broker that does not let it in.
                self._producers.discard_producers()
            raise
        finally:
            self.close()

    def run_once(self) -> None:
        """Take one turn of the loop, and recover from what goes wrong. Raises StreamsError."""
        self._mark_progress()
        self.recovery.run_steps_or_probe_broker(self._do_next_steps)

    def commit_now(self) -> None:
        """Commit all tasks now, and recover from what goes wrong. Raises StreamsError.

        While the member joins this is tried under every guarantee: nothing else comes after it. It
        does nothing once the group has left the member's generation.
        """
        if not self._member.is_generation_over:
            self.recovery.run_with_recovery(lambda: self._commit_at_once(commit_positions=True))

    def _mark_progress(self) -> None:
        """Count a turn of the loop, and tell the group membership that the thread is not stuck."""
        self.turn_count += 1
        self._member.mark_progress()

    def _do_next_steps(self) -> None:
        """Keep the membership, start tasks, process polled records, and commit if it is time.

        Raises: IdentityReplaced where another loop is to go on with the worker's other ids.
        """
        if self._is_identity_replaced() and (not self.tasks or self._try_commit_tasks()):
            raise IdentityReplaced
        if self._renewal.is_due() and self._try_commit_tasks():
            self._renewal.renew_clients()
        self._rebalance.maintain_membership()
        if self._thread_tasks.assignment is None:
            return
        # A task that starts makes a producer, for which the group may refuse an old generation.
        if not self._thread_tasks.are_all_running() and not self._member.is_generation_over:
            self._thread_tasks.start_assigned_tasks()
        may_create = self._thread_tasks.are_all_running()  # active tasks come first
        self._thread_tasks.standby.follow_assigned_tasks(may_create=may_create)
        self._update_counters()
        is_commit_needed = any(task.commit_needed for task in self.tasks.values())
        if not self._executor or self._control.is_paused:
            _ = is_commit_needed and self._try_commit_tasks()  # no transaction is left open
            self.recovery.clear_failure_if_idle()
            self._consumer.serve_callbacks()
            self._producers.poll_delivery_reports()
            if self._executor or not (  # with tasks that run, nothing before has waited
                self._member.is_joining
                or self._producers.creations.is_waiting
                or self._thread_tasks.list_tasks_in_state(TaskState.RESTORING)
            ):
                self._stop.wait(_POLL_WAIT_S)
            return
        if (self._is_uncommitted_memory_full() and not self._rebalance.can_commit) or (
            self._must_commit_positions() and not self._try_commit_tasks()
        ):
            self._stop.wait(_POLL_WAIT_S)
            return
        self._executor.measure_lags_if_due()
        self._executor.poll_records(
            self._poll_records_max,
            self._poll_wait_s(is_commit_needed),
            # The first record after a commit opens the next transaction, and the time until that
            # is to end is enough to collect others.
            at_first_record=not is_commit_needed,
        )
        if out_of_range := self._topic_id_check.find_positions_out_of_range(
            self._consumer, lambda: [task.topic_ids for task in self.tasks.values()]
        ):
            self._reset_out_of_range_or_raise_if_migrated(out_of_range)
        self._executor.process_slices(self._commit_if_due_and_may_continue)
        self._producers.poll_delivery_reports()
        if self._is_commit_due(overdue_s=0.0):
            self._try_commit_tasks()

    def _poll_wait_s(self, is_commit_needed: bool) -> float:
        """Return for how many seconds to wait for records: at most until the next commit is due."""
        if not is_commit_needed or not self._rebalance.can_commit:
            return _POLL_WAIT_S
        left_s = self._thread_tasks.commit_deadline_s - self._host.monotonic_s()
        return min(_POLL_WAIT_S, max(left_s, 0.0))

    def _is_commit_due(self, overdue_s: float) -> bool:
        """Return whether the deadline of the next commit has been over for `overdue_s` seconds."""
        deadline_s = self._thread_tasks.commit_deadline_s + overdue_s
        return self._host.monotonic_s() >= deadline_s

    def _commit_if_due_and_may_continue(self) -> bool:
        """Commit between two slices if it is time, and return whether to process the next slice.

        What was polled together is committed together where that takes little time: records that
        are left for the next commit wait for another interval, those of all tasks but the first.
        """
        self._mark_progress()
        if self._is_commit_due(overdue_s=self._polled_wait_s):
            self._try_commit_tasks()
        elif (
            self._executor.commit_requested or self._is_uncommitted_memory_full()
        ) and self._try_commit_tasks():
            self.counters.early_commits += 1
        return not self._is_interrupted()

    def _must_commit_positions(self) -> bool:
        """Return whether a running task has positions that no record may be polled without."""
        return any(
            task.must_commit_positions and task.state is TaskState.RUNNING
            for task in self.tasks.values()
        )

    def _is_uncommitted_memory_full(self) -> bool:
        """Return whether uncommitted writes take more memory than the setting allows."""
        return 0 <= self._uncommitted_bytes_max < self._executor.uncommitted_bytes

    def _reset_out_of_range_or_raise_if_migrated(
        self, out_of_range: Mapping[Partition, int]
    ) -> None:
        """Go on with partitions out of range at the offsets that the reset policy selects.

        Raises: TaskMigrated where the committed offset is beyond the position: another member has
        the task, and what this one was to read may have been deleted since; OutcomeUnknown where no
        coordinator answers.
        """
        try:
            committed = self._member.fetch_committed_offsets(out_of_range)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error
        for partition, position in out_of_range.items():
            held = committed.offsets.get(partition)
            if partition in committed.pending or (held is not None and held.offset > position):
                raise TaskMigrated(f"{partition} has been read beyond {position} by another member")
        positions = self._offset_resetter.reset_positions(out_of_range)
        self._consumer.remove_partitions(positions)
        self._consumer.add_partitions(positions)
        for partition, position in positions.items():
            task = self._executor.task_of_partition(partition)
            task.positions[partition] = position
            task.must_commit_positions = True  # the policy might choose another one next time
        self._update_counters()

    def _note_committed(self, offsets: PartitionOffsets) -> None:
        """Pass committed offsets on to the offset resetter and to the commit listener."""
        self._offset_resetter.note_committed(offsets)
        self._on_commit(offsets)

    def _update_counters(self) -> None:
        """Take over what the restorer has read, for former tasks too, and offsets out of range."""
        self.counters.restored_records = self._restorer.reader.restored_records
        self.counters.standby_records = self._restorer.follower.followed_records
        self.counters.offsets_out_of_range = self._offset_resetter.offsets_out_of_range
        self.counters.records_out_of_range = self._offset_resetter.records_out_of_range

    def _try_commit_tasks(self) -> bool:
        """Commit all tasks; return False, and do nothing, while a join allows no commit."""
        if not self._rebalance.can_commit:
            return False
        self._commit_at_once()
        return True

    def _commit_before_rebalance(self, with_positions: bool) -> None:
        """Commit all tasks before a join or a revocation, unless a join allows no commit."""
        if self._rebalance.can_commit:
            self._commit_at_once(commit_positions=with_positions)

    def _commit_at_once(self, *, commit_positions: bool | None = None) -> None:
        """Commit all tasks, schedule the next commit and count this one.

        Positions that have moved over no record are committed too or not, as `commit_positions`
        says; now and then if it is None.
        """
        self._thread_tasks.schedule_commit()
        try:
            if commit_positions is not False:
                self._moved_positions.request_commits(
                    self.tasks.values(),
                    at_once=commit_positions is True,
                    # The next generation may have given an idle task away already.
                    is_joining=self._member.is_joining,
                )
            self._commit_dirty_tasks()
            for task in self.tasks.values():
                if task.state is TaskState.RUNNING:
                    task.stores.write_waiting_changes()
        except RECOVERY_ERRORS:
            raise
        except Exception as error:
            raise to_recovery_error(error, COMMIT_ORIGIN) from error

    def _commit_dirty_tasks(self) -> None:
        """Commit the tasks that have something to commit, and count the commit.

        Raises: what `TaskCommitter.commit_tasks` raises.
        """
        dirty = [task for task in self.tasks.values() if task.commit_needed]
        for together in self.recovery.group_for_commit(dirty):
            began_at_s = self._host.monotonic_s()
            self._committer.commit_tasks(together)
            self._note_commit(together, began_at_s)

    def _note_commit(self, committed: list[Task], began_at_s: float) -> None:
        """Count a commit of these tasks, and clear what has failed before it."""
        self._executor.reset_after_commit()
        if committed:
            self.counters.commits += 1
            self.measurements.timings.commit.observe_since(began_at_s)
            self.committed_at_ms = self._host.now_ms()
            self.recovery.note_commit(committed)
        else:
            self.recovery.clear_failure_if_idle()

    def _is_interrupted(self) -> bool:
        """Return whether a stop, a rebalance, or a commit for want of memory, comes first."""
        return (
            self._stop.is_set()
            or self._control.is_paused
            or self._member.read_current_signal_or_raise() is not MembershipSignal.NOTHING
            or (self._is_uncommitted_memory_full() and not self._rebalance.can_commit)
        )

    def close(self) -> None:
        """Leave the group and close everything, without a commit.

        After a clean stop the group is left first: others take the tasks over while
        the stores are closed. What a failed thread did is rolled back before. A thread that is to
        be replaced hands its membership over instead of leaving.
        """
        member = self._member
        keeps = self._is_to_be_replaced or self._control.remains_in_group
        leave_group = partial(member.leave_group, has_failed=not self._is_stopped_cleanly)
        leave = member.end_without_leaving_group if keeps else leave_group
        self._task_offsets.release_reporting_role(self._thread_name)
        with ExitStack() as steps:  # in reverse order, each whatever the others raise
            steps.callback(self._update_counters)  # the restorer has read on until it ended
            steps.callback(self._restorer.close)
            steps.callback(self._consumer.close)
            if not self._is_stopped_cleanly:
                steps.callback(leave)
            steps.callback(self._producers.close_producers)
            steps.callback(self._thread_tasks.standby.close_tasks_without_commit)
            steps.callback(self._thread_tasks.close_tasks_without_commit)
            if self._is_stopped_cleanly:
                steps.callback(leave)
            steps.callback(self._producers.cancel_all_creations)

    def _group_metadata(self) -> bytes:
        """Return the consumer group metadata of the present generation, for a transaction."""
        generation, member_id = self._rebalance.require_commit_membership()
        return encode_group_metadata(
            self._group, generation, member_id, self._member.static_instance_id
        )
