"""The loop of one stream thread: membership, tasks, records, commits, and recovery.

Each turn does what is next, in this order: have a membership; have the tasks that it names, each
with its producer; take records and process them; commit when it is time. Recovery is losing some
of these: the next turns get it back.

    raised             lost
    OutcomeUnknown     producers, tasks      (the new producer's epoch fences the old)
    TaskMigrated       producers, tasks, membership
    StreamsError       everything: the thread ends and the error is reported
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from state.errors import StateError
from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated, UserError
from streams.membership.classic import ClassicMember, Signal
from streams.membership.protocol import Assigned, Subscribed
from streams.positions import Partition
from streams.runtime.clients import (
    Admin,
    DataConsumer,
    group_metadata,
    recovery_from_produce,
)
from streams.runtime.commit import Committer, Step
from streams.runtime.host import Event
from streams.runtime.opening import Opener
from streams.runtime.producers import Producers
from streams.runtime.task import Task, TaskContext

log = logging.getLogger(__name__)

_TAKE_WAIT_S = 0.05
_BACK_OFF_S = 0.2
_QUIET_S = 5.0
"""Tasks that ran so long and had nothing to commit are not in trouble."""
_NO_TASKS = Assigned((), ())


@dataclass(slots=True)
class Counters:
    """What a thread has done."""

    records: int = 0
    commits: int = 0
    rebalances: int = 0
    restored_records: int = 0
    recoveries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a loop is made of: everything that could surprise comes in from outside."""

    name: str
    group: str
    member: ClassicMember
    consumer: DataConsumer
    restore_consumer: DataConsumer
    admin: Admin
    opener: Opener
    producers: Producers
    stop: Event
    monotonic_s: Callable[[], float]
    commit_every_ms: int
    records_max: int
    task_timeout_ms: int
    changed: Callable[[str], None]
    """Is told REBALANCING and RUNNING."""
    reached: Callable[[Step], None]


class StreamLoop:
    """Runs the tasks that the group gives to one thread. `run` returns after a stop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.counters = Counters()
        self.tasks: dict[str, Task] = {}
        self._assigned: Assigned | None = None
        self._routes: dict[str, dict[int, tuple[Task, Callable[[Any], None]]]] = {}
        self._commit_at = 0.0
        self._trouble_since: float | None = None
        self._settled_at = 0.0
        self._committer = Committer(
            parts.consumer,
            parts.admin,
            parts.producers,
            group=self._group_metadata,
            commit_as_member=parts.member.commit_offsets,
            reached=parts.reached,
        )

    def run(self) -> None:
        """Until `stop` is set; then a last commit, and leave. Raises StreamsError, StateError."""
        try:
            while not self._parts.stop.is_set():
                self._guarded(self._turn)
            self._guarded(self._commit)
        finally:
            self._close()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (TaskMigrated, OutcomeUnknown) as error:
            self._recover(error)
        except (StateError, OSError) as error:
            raise StreamsError(f"state: {error}") from error

    def _turn(self) -> None:
        parts = self._parts
        self._keep_membership()
        if self._assigned is None:
            return
        if len(self.tasks) < len(self._assigned.tasks):
            self._commit()  # a restore may take longer than the transaction's time-out
            self._open_tasks()
        if not self.tasks:
            self._quiet()
            parts.stop.wait(_TAKE_WAIT_S)
            return
        now = parts.monotonic_s()
        messages = parts.consumer.take(
            parts.records_max, min(_TAKE_WAIT_S, max(self._commit_at - now, 0.0))
        )
        if messages:
            self._process(messages)
        parts.producers.poll()
        if parts.monotonic_s() >= self._commit_at:
            self._commit()

    def _process(self, messages: list[Any]) -> None:
        begin = self._parts.producers.begin
        routes = self._routes
        context: TaskContext | None = None
        try:
            for message in messages:
                try:
                    task, receive = routes[message.topic()][message.partition()]
                except KeyError:
                    continue  # taken just before its partition was given away
                if not task.dirty:
                    begin(task.name)
                    task.dirty = True
                context = task.context
                context.message = message
                receive(message)
        except (UserError, TaskMigrated, OutcomeUnknown):
            raise
        except Exception as error:
            where = context.origin() if context is not None else self._parts.name
            raise _named(error, f"record {where}") from error
        self.counters.records += len(messages)

    def _commit(self) -> None:
        self._commit_at = self._parts.monotonic_s() + self._parts.commit_every_ms / 1000
        try:
            committed = self._committer.commit(self.tasks.values())
        except (UserError, TaskMigrated, OutcomeUnknown):
            raise
        except StateError as error:
            raise StreamsError(str(error)) from error
        except Exception as error:
            raise _named(error, TaskContext.COMMIT) from error
        if committed:
            self.counters.commits += 1
            self._trouble_since = None
        else:
            self._quiet()

    def _keep_membership(self) -> None:
        member = self._parts.member
        match member.signal():
            case Signal.LOST if self._assigned is not None:
                raise TaskMigrated("the coordinator does not know this member any more")
            case Signal.REBALANCE:
                self._commit()
                self._assigned = None
        if self._assigned is None:
            self._parts.changed("REBALANCING")
            self.counters.rebalances += 1
            before = member.current.generation
            self._assigned = member.join(Subscribed(tuple(self.tasks)))
            if self._assigned is not None:
                # In a generation that we missed another member may have run a task of ours:
                # what we hold of it is from before. The next turn reads it back.
                mine = self._assigned.tasks if member.current.generation <= before + 1 else ()
                self._close_tasks([name for name in self.tasks if name not in mine])
                self._settled()

    def _open_tasks(self) -> None:
        """Open what is assigned and not open yet; what is not to be had is tried again."""
        parts = self._parts
        assigned = self._assigned or _NO_TASKS
        wanted: dict[str, list[Partition]] = {
            name: [] for name in assigned.tasks if name not in self.tasks
        }
        for topic, number in assigned.partitions:
            name = parts.opener.task_of(topic, number)
            if name in wanted:
                wanted[name].append(Partition(topic, number))
        opened = parts.opener.open(wanted, parts.producers, self._interrupted)
        self.counters.restored_records += opened.replayed
        positions: dict[Partition, int] = {}
        for task in opened.tasks:
            self.tasks[task.name] = task
            positions |= task.positions
            for partition in task.positions:
                numbers = self._routes.setdefault(partition.topic, {})
                numbers[partition.number] = (task, task.receivers[partition.topic])
        if positions:
            parts.consumer.add(positions)
            log.info("%s runs tasks %s", parts.name, ", ".join(sorted(self.tasks)))
        self._settled()

    def _settled(self) -> None:
        if self._is_settled():
            self._settled_at = self._parts.monotonic_s()
            self._parts.changed("RUNNING")

    def _quiet(self) -> None:
        """Nothing is to be committed: after a while of this no trouble goes on."""
        if self._is_settled() and self._parts.monotonic_s() - self._settled_at >= _QUIET_S:
            self._trouble_since = None

    def _is_settled(self) -> bool:
        return self._assigned is not None and len(self.tasks) == len(self._assigned.tasks)

    def _interrupted(self) -> bool:
        return self._parts.stop.is_set() or self._parts.member.signal() is not Signal.NOTHING

    def _close_tasks(self, names: list[str]) -> None:
        if not names:
            return
        closed = [self.tasks.pop(name) for name in names]
        partitions = [partition for task in closed for partition in task.positions]
        for topic, number in partitions:
            del self._routes[topic][number]
        with ExitStack() as steps:
            for task in closed:
                steps.callback(self._parts.producers.release, task.name)
                steps.callback(task.close)
            self._parts.consumer.remove(partitions)

    def _recover(self, error: Exception) -> None:
        """Roll back: give the producers up, close every task, and say why."""
        log.warning("%s starts over from what is committed: %s", self._parts.name, error)
        self.counters.recoveries += 1
        now = self._parts.monotonic_s()
        if self._trouble_since is None:
            self._trouble_since = now
        if now - self._trouble_since > self._parts.task_timeout_ms / 1000:
            raise StreamsError(
                f"no commit for {self._parts.task_timeout_ms} ms (task_timeout_ms): {error}"
            ) from error
        self._parts.producers.discard()  # first: what is closed in order ends its transaction
        self._close_tasks(list(self.tasks))
        if isinstance(error, TaskMigrated):
            self._assigned = None
        self._parts.changed("REBALANCING")
        self._parts.stop.wait(_BACK_OFF_S)

    def _close(self) -> None:
        """Nothing is committed here: what a failed thread did is rolled back."""
        with ExitStack() as steps:  # in reverse order, each whatever the others raise
            steps.callback(self._parts.restore_consumer.close)
            steps.callback(self._parts.consumer.close)
            steps.callback(self._parts.member.leave)
            steps.callback(self._parts.producers.close)
            steps.callback(self._close_tasks, list(self.tasks))

    def _group_metadata(self) -> bytes:
        generation, member_id = self._parts.member.current
        return group_metadata(
            self._parts.group, generation, member_id, self._parts.member.instance_id
        )


def _named(error: Exception, what: str) -> Exception:
    """The error that says what happens next, of whatever processing `what` raised. Where it was in
    a user's function it says the line."""
    if (recovery := recovery_from_produce(error, f"{what}: produce")) is not None:
        return recovery
    reason = str(error)
    if not isinstance(error, StateError):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{error!r} in {frame.name}, {frame.filename}:{frame.lineno}"
    return StreamsError(f"{what} can't be processed: {reason}")
