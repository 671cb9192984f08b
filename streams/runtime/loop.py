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
from streams.errors import (
    ApplicationShutdown,
    OutcomeUnknown,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    ValueRefused,
)
from streams.membership.connection import ConnectionLost
from streams.membership.protocol import Assigned, Subscribed
from streams.membership.terms import Signal
from streams.positions import Partition
from streams.runtime.clients import group_metadata
from streams.runtime.commit import Committer
from streams.runtime.context import COMMIT
from streams.runtime.failures import NAMED
from streams.runtime.parts import Parts
from streams.runtime.progress import StoreProgress
from streams.runtime.recovery import named
from streams.runtime.task import Task, TaskState
from streams.runtime.work import Work

log = logging.getLogger(__name__)

_TAKE_WAIT_S = 0.05
_BACK_OFF_S = 0.2
_QUIET_S = 5.0
"""How long tasks have to run with nothing to commit before the last failure is cleared."""
_NO_TASKS = Assigned((), ())


class StreamLoop:
    """Runs the tasks that the group assigns to one thread, until a stop.

    Kafka Streams' counterpart is StreamThread (`runLoop`, `runOnce`).
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.counters = parts.counters
        self.tasks: dict[str, Task] = {}
        self._assigned: Assigned | None = None
        self._former: tuple[str, ...] = ()
        """The tasks that were assigned last, kept while the membership is lost."""
        self._work = Work(parts.consumer, parts.producers, parts.host, self.counters)
        self._commit_at = 0.0
        self._look_at = 0.0
        self.trouble_since_s: float | None = None
        self._settled_at = 0.0
        self._replaced = False
        self.turns = 0
        self.trouble = ""
        """The reason of the last recovery since the last commit; empty if there was none."""
        self.committed_ms: int | None = None
        """Wall-clock time of the last commit."""
        self._committer = Committer(
            parts.consumer,
            parts.admin,
            parts.producers,
            ledger=parts.ledger,
            group=self._group_metadata,
            commit_as_member=parts.member.commit_offsets,
            committed=parts.committed,
            reached=parts.reached,
            now_ms=parts.host.now_ms,
        )

    @property
    def record(self) -> str:
        """Return the origin of the record that is being processed, empty if none is."""
        task = self._work.at
        return "" if task is None else task.record

    @property
    def restoring(self) -> tuple[StoreProgress, ...]:
        """Return the progress of each store that is being restored."""
        return self._parts.restorer.progress

    @property
    def silent_since_s(self) -> float | None:
        """Return since when the group's coordinator has not answered, None if it answers."""
        return self._parts.member.silent_since_s

    def run(self) -> None:
        """Run until `stop` is set, then commit once more and leave. Raises StreamsError."""
        try:
            while not self._parts.stop.is_set():
                self.turn()
            self.commit()
        except Exception as error:
            self._replaced = self._parts.replaced(error)
            raise
        finally:
            self.close()

    def turn(self) -> None:
        """Take one turn of the loop, and recover from what goes wrong. Raises StreamsError."""
        self._turned()
        self._guarded(self._turn)

    def commit(self) -> None:
        """Commit all tasks now, and recover from what goes wrong. Raises StreamsError."""
        self._guarded(self._commit)

    def _turned(self) -> None:
        """Count a turn, and tell the membership that the thread is not stuck."""
        self.turns += 1
        self._parts.member.turned()

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run `action` and recover from errors that allow it; raise StreamsError for others."""
        try:
            try:
                action()
            except (TaskMigrated, TaskCorrupted, OutcomeUnknown, ValueRefused) as error:
                self._recover(error)
        except (StateError, OSError) as error:
            raise StreamsError(f"state: {error}") from error

    def _turn(self) -> None:
        """Do what is next: keep the membership, start tasks, process records, commit."""
        parts = self._parts
        self._keep_membership()
        if self._assigned is None:
            return
        if not self._is_settled():
            self._start_tasks()
        if not self._work:
            self._quiet()
            if not self._in(TaskState.RESTORING):
                parts.stop.wait(_TAKE_WAIT_S)
            return
        self._work.take(parts.records_max, self._wait_s())
        if strayed := parts.consumer.strayed():
            self._reset(strayed)
        self._work.process(self._go_on)
        parts.producers.poll()
        if parts.host.monotonic_s() >= self._commit_at:
            self._commit()

    def _wait_s(self) -> float:
        """Return for how many seconds to wait for records: until there is something else to do."""
        if not any(task.dirty for task in self.tasks.values()):
            return _TAKE_WAIT_S
        left_s = self._commit_at - self._parts.host.monotonic_s()
        return min(_TAKE_WAIT_S, max(left_s, 0.0))

    def _go_on(self) -> bool:
        """Commit between two slices if it is time, and return whether to process the next slice."""
        self._turned()
        if self._parts.host.monotonic_s() >= self._commit_at:
            self._commit()
        elif self._work.commit_asked or self._is_memory_full():
            self.counters.early_commits += 1
            self._commit()
        return not self._interrupted()

    def _is_memory_full(self) -> bool:
        """Return whether uncommitted writes take more memory than the setting allows."""
        return 0 <= self._parts.uncommitted_bytes_max < self._work.uncommitted_bytes

    def _reset(self, strayed: Mapping[Partition, int]) -> None:
        """Set partitions whose position is out of range to where the settings say.

        Raises: TaskMigrated where the committed offset is beyond the position: another member has
        the task, and what this one was to read may have been deleted since; OutcomeUnknown where no
        coordinator answers.
        """
        try:
            committed = self._parts.member.committed_offsets(strayed)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error
        for partition, position in strayed.items():
            held = committed.offsets.get(partition)
            if partition in committed.pending or (held is not None and held.offset > position):
                raise TaskMigrated(f"{partition} has been read beyond {position} by another member")
        positions = self._parts.resetting.go_on(strayed)
        self._parts.consumer.remove(positions)
        self._parts.consumer.add(positions)
        for partition, position in positions.items():
            self._work.task_of(partition).positions[partition] = position
        self.counters.offsets_out_of_range = self._parts.resetting.offsets_out_of_range
        self.counters.records_out_of_range = self._parts.resetting.records_out_of_range

    def _commit(self) -> None:
        """Commit all tasks, schedule the next commit and count this one."""
        self._next_commit()
        try:
            committed = self._committer.commit(self.tasks.values())
        except NAMED:
            raise
        except Exception as error:
            raise named(error, COMMIT) from error
        self._work.committed()
        if committed:
            self.counters.commits += 1
            self.committed_ms = self._parts.host.now_ms()
            self._over_trouble()
        else:
            self._quiet()

    def _next_commit(self) -> None:
        """Set the deadline of the next commit to one commit interval from now."""
        self._commit_at = self._parts.host.monotonic_s() + self._parts.commit_every_ms / 1000

    def _keep_membership(self) -> None:
        """Read the membership's signal, commit before a rebalance, and join the group if need be.

        Raises: TaskMigrated where the coordinator does not know this member any more.
        """
        member = self._parts.member
        match member.signal():
            case Signal.LOST if self._assigned is not None:
                raise TaskMigrated("the coordinator does not know this member any more")
            case Signal.REBALANCE:
                self._commit()
                self._assigned = None
            case _ if self._are_inputs_changed():
                log.info(
                    "%s: inputs have other partitions: tasks are assigned anew", self._parts.name
                )
                self._commit()
                self._assigned = None
        if self._assigned is None:
            self._join()

    def _are_inputs_changed(self) -> bool:
        """Return whether input partitions have changed; only the group's leader checks."""
        parts = self._parts
        now_s = parts.host.monotonic_s()
        if self._assigned is None or not parts.member.leads or now_s < self._look_at:
            return False
        self._look_at = now_s + parts.inputs_every_ms / 1000
        try:
            return parts.inputs_changed()
        except OutcomeUnknown as error:
            log.info("%s: inputs are looked at another time: %s", parts.name, error)
            return False

    def _join(self) -> None:
        """Join the group again and take over its assignment.

        Nothing is processed or committed until the group has answered. Tasks that were revoked are
        closed, the others go on. Raises ApplicationShutdown if a member asks all of them to end.
        """
        member = self._parts.member
        self._parts.changed("REBALANCING")
        self.counters.rebalances += 1
        for task in self._in(TaskState.RUNNING):
            task.suspend()
        generation_before = member.current.generation
        former = () if self.tasks else self._former
        assigned = member.join(Subscribed(tuple(self.tasks), former=former))
        if assigned is None:
            return
        if assigned.shutdown:
            raise ApplicationShutdown(assigned.shutdown)
        self._assigned = self._parts.adopt(assigned)
        self._former = self._assigned.tasks
        partitions_by_task = self._partitions_of(self._assigned)
        # A task that has other partitions than before is another task, and is created anew.
        self._close_tasks(
            [
                name
                for name, task in self.tasks.items()
                if partitions_by_task.get(name) != set(task.partitions)
            ]
        )
        if member.current.generation > generation_before + 1:
            # In a generation that this member missed another one may have run its tasks: their
            # positions are from before that, so they are read back.
            self._roll_back()
        for task in self._in(TaskState.SUSPENDED):
            task.resume()
        self._look_at = self._parts.host.monotonic_s() + self._parts.inputs_every_ms / 1000
        self._settled()

    def _start_tasks(self) -> None:
        """Bring each assigned task towards RUNNING; what can't be done yet is retried next turn."""
        opener, producers = self._parts.opener, self._parts.producers
        restorer = self._parts.restorer
        for name, partitions in self._wanted().items():
            if (created := opener.create(name, partitions)) is not None:
                self.tasks[name] = created
        waiting = self._in(TaskState.CREATED)
        for task in waiting:
            producers.of(task.name)  # fences its predecessor, before offsets are read
        restorer.begin(opener.locate(waiting))
        # While no task runs there is nothing else to do than to wait for the restorer.
        ready = restorer.ready(0.0 if self._work else _TAKE_WAIT_S)
        self.counters.restored_records = restorer.records
        if ready and not self._work:
            self._next_commit()
        parts = self._parts
        for task in ready:
            producer = producers.of(task.name)
            task.start(producer, parts.consumer, parts.order, parts.host.now_ms)
        if ready:
            self._work.begin(ready)
            log.info("%s runs tasks %s", parts.name, ", ".join(sorted(self.tasks)))
        self._settled()

    def _wanted(self) -> dict[str, list[Partition]]:
        """Return the tasks that are assigned and not created yet, with their partitions."""
        assigned = self._partitions_of(self._assigned or _NO_TASKS)
        return {name: sorted(mine) for name, mine in assigned.items() if name not in self.tasks}

    def _partitions_of(self, assigned: Assigned) -> dict[str, set[Partition]]:
        """Return the assigned tasks with the partitions that each of them reads."""
        by_task: dict[str, set[Partition]] = {name: set() for name in assigned.tasks}
        for topic, number in assigned.partitions:
            name = self._parts.opener.task_of(topic, number)
            if name in by_task:
                by_task[name].add(Partition(topic, number))
        return by_task

    def _in(self, state: TaskState) -> list[Task]:
        return [task for task in self.tasks.values() if task.state is state]

    def _settled(self) -> None:
        """Report RUNNING, and note the time, if all assigned tasks run."""
        if self._is_settled():
            self._settled_at = self._parts.host.monotonic_s()
            self._parts.changed("RUNNING")

    def _quiet(self) -> None:
        """Clear the last failure if all tasks have run for some seconds with nothing to commit."""
        if self._is_settled() and self._parts.host.monotonic_s() - self._settled_at >= _QUIET_S:
            self._over_trouble()

    def _over_trouble(self) -> None:
        """Clear the last failure: the thread has committed, or has been idle for a while."""
        self.trouble_since_s = None
        self.trouble = ""

    def _is_settled(self) -> bool:
        """Return whether all assigned tasks run."""
        assigned = self._assigned
        return assigned is not None and len(assigned.tasks) == len(self._in(TaskState.RUNNING))

    def _interrupted(self) -> bool:
        """Return whether a stop or a rebalance is asked for."""
        return self._parts.stop.is_set() or self._parts.member.signal() is not Signal.NOTHING

    def _close_tasks(self, names: list[str]) -> None:
        """Close the named tasks and release their producers, without a commit."""
        self._withdraw(names)
        closed = [self.tasks.pop(name) for name in names]
        with ExitStack() as steps:
            for task in closed:
                steps.callback(self._parts.producers.release, task.name)
                steps.callback(task.close)
            self._work.end(closed)

    def _withdraw(self, names: Iterable[str]) -> None:
        """Take tasks back from the restorer; their stores keep what has been restored."""
        restoring = [n for n in names if self.tasks[n].state is TaskState.RESTORING]
        if restoring:
            self._parts.restorer.withdraw(restoring)

    def _roll_back(self) -> None:
        """Roll every task back to what is committed; all of them stay open."""
        self._withdraw(self.tasks)
        self._work.end(list(self.tasks.values()))
        for task in self.tasks.values():
            if task.state is not TaskState.CREATED:
                task.rollback()

    def _recover(self, error: Exception) -> None:
        """Discard what the module's table names for `error`, so that the next turns start over.

        Raises: StreamsError if nothing has been committed for `task_timeout_ms`.
        """
        log.warning("%s starts over from what is committed: %s", self._parts.name, error)
        self.counters.recovered(error)
        self.trouble = str(error)
        now = self._parts.host.monotonic_s()
        if self.trouble_since_s is None:
            self.trouble_since_s = now
        if now - self.trouble_since_s > self._parts.task_timeout_ms / 1000:
            raise StreamsError(
                f"no commit for {self._parts.task_timeout_ms} ms (task_timeout_ms): {error}"
            ) from error
        # Producers are discarded first: one that is closed in order would end its transaction.
        self._parts.producers.discard()
        if isinstance(error, TaskMigrated):
            self._close_tasks(list(self.tasks))
            self._assigned = None
        else:
            self._roll_back()
        if isinstance(error, TaskCorrupted) and error.task in self.tasks:
            self.tasks[error.task].rebuild(error.stores)
        if isinstance(error, ValueRefused) and error.task in self.tasks:
            self.tasks[error.task].early.start()
        self._parts.changed("REBALANCING")
        self._parts.stop.wait(_BACK_OFF_S)

    def close(self) -> None:
        """Leave the group and close everything, without a commit.

        What a failed thread did is rolled back. A thread that is to be replaced hands its
        membership over instead of leaving.
        """
        with ExitStack() as steps:  # in reverse order, each whatever the others raise
            steps.callback(self._parts.restorer.close)
            steps.callback(self._parts.consumer.close)
            member = self._parts.member
            steps.callback(member.hand_over if self._replaced else member.leave)
            steps.callback(self._parts.producers.close)
            steps.callback(self._close_tasks, list(self.tasks))

    def _group_metadata(self) -> bytes:
        """Return the consumer group metadata of the current generation, for a transaction."""
        generation, member_id = self._parts.member.current
        return group_metadata(
            self._parts.group, generation, member_id, self._parts.member.instance_id
        )
