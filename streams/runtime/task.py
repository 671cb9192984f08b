"""Task: one sub-topology on one partition, with its stores, its positions and its commit.

Theory of operation. A task is what survives a rollback: its directory and its databases stay open
while producers, offsets and everything that was processed but not committed come and go. The steps
of its sub-topology are bound when it starts and let go when it is rolled back, with all that they
held: results, punctuations, what user code kept in its processors.

    state      what holds                                                   who touches the stores
    CREATED    the directory is ours, the databases are open                nobody
    RESTORING  the committed offsets are known; stores follow changelogs    the restorer
    RUNNING    steps are bound to a producer; records go through them       the stream thread
    SUSPENDED  as RUNNING, but a rebalance is on: nothing goes through      nobody
    CLOSED     nothing is ours any more                                     nobody

    from       to         by         when
    CREATED    RESTORING  restore    the committed offsets were read back, stable
    RESTORING  RUNNING    start      the stores have reached what was committed
    RUNNING    SUSPENDED  suspend    all is committed, and the member joins again
    SUSPENDED  RUNNING    resume     the group has left the task with us
    RESTORING, RUNNING,
    SUSPENDED  CREATED    rollback   nothing since the last commit counts: begin again from there
    all        CLOSED     close      the task goes elsewhere, or the thread ends

Any other transition is a mistake in the runtime: RuntimeError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from state.directory import Lock
from state.store import Checkpoint, StateStore
from streams.errors import OutcomeUnknown, StreamsError
from streams.handling import Stage
from streams.positions import Committed, Partition
from streams.runtime.clients import DataProducer
from streams.runtime.failures import FAILING, Failures
from streams.runtime.offsets import encode_metadata
from streams.topology.build import Subtopology
from streams.topology.compile import Receive, compile_subtopology

log = logging.getLogger(__name__)


class TaskState(Enum):
    """See the module's theory of operation."""

    CREATED = auto()
    RESTORING = auto()
    RUNNING = auto()
    SUSPENDED = auto()
    CLOSED = auto()


_OPEN = {TaskState.CREATED, TaskState.RESTORING, TaskState.RUNNING, TaskState.SUSPENDED}
_TRANSITIONS: dict[str, tuple[set[TaskState], TaskState]] = {
    "restore": ({TaskState.CREATED}, TaskState.RESTORING),
    "start": ({TaskState.RESTORING}, TaskState.RUNNING),
    "suspend": ({TaskState.RUNNING}, TaskState.SUSPENDED),
    "resume": ({TaskState.SUSPENDED}, TaskState.RUNNING),
    "rollback": (_OPEN - {TaskState.CREATED}, TaskState.CREATED),
    "close": (_OPEN, TaskState.CLOSED),
}


@dataclass(slots=True)
class LoggedStore:
    """A store, its changelog partition, and the first offset there that the store has not seen."""

    store: StateStore
    changelog: Partition
    topic_id: str
    position: int


class TaskContext:
    """What bound steps use of their task (see `streams.topology.nodes.Context`)."""

    COMMIT = "the results of a commit"
    __slots__ = (
        "_failures",
        "_stores",
        "closers",
        "flushers",
        "make_room",
        "message",
        "produce",
        "record_ms",
        "starters",
        "stream_time_ms",
        "task_name",
    )

    def __init__(
        self,
        task_name: str,
        producer: DataProducer,
        stores: Mapping[str, LoggedStore],
        failures: Failures,
    ) -> None:
        self._failures = failures
        self.task_name = task_name
        self.produce = producer.produce
        self.make_room = producer.make_room
        self.message: Any = None
        self.record_ms = -1
        self.stream_time_ms = -1
        self.flushers: list[Callable[[], None]] = []
        self.starters: list[Callable[[], None]] = []
        self.closers: list[Callable[[], None]] = []
        self._stores = stores
        for logged in stores.values():
            logged.store.clock = self.timestamp_ms

    def timestamp_ms(self) -> int:
        """Of the record being processed, in ms since 1970."""
        return self.record_ms

    def store(self, name: str) -> Any:
        return self._stores[name].store

    def schedule(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        raise StreamsError("punctuations are not there yet")

    def commit(self) -> None:
        """The next commit interval will do."""

    @property
    def skips_processing(self) -> bool:
        return self._failures.skips_processing

    def failed(
        self,
        stage: Stage,
        step: str,
        error: Exception,
        refusal: StreamsError | None = None,
        *,
        key: Any = None,
        value: Any = None,
        target: str | None = None,
    ) -> None:
        self._failures.failed(
            self, stage, step, error, refusal, key=key, value=value, target=target
        )

    def origin(self) -> str:
        message = self.message
        if message is None:
            return self.COMMIT
        return f"{message.topic()}[{message.partition()}]@{message.offset()}"


class Task:
    """One task of a thread. `partitions` are what it reads; its directory is held by `lock`."""

    def __init__(
        self,
        name: str,
        subtopology: Subtopology,
        *,
        partitions: list[Partition],
        stores: dict[str, LoggedStore],
        lock: Lock,
        failures: Failures = FAILING,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.stores = stores
        self.state = TaskState.CREATED
        self.dirty = False
        self.positions: dict[Partition, int] = {}
        """The next offset of each partition. Known from RESTORING on."""
        self.required: dict[Partition, int] = {}
        """Where each changelog stood when the offsets were committed: a restore gets there."""
        self.receivers: dict[str, Receive] = {}
        self._subtopology = subtopology
        self._context: TaskContext | None = None
        self._failures = failures
        self._lock = lock
        self._undelivered: list[str] = []

    @property
    def context(self) -> TaskContext:
        """Of the steps as they are bound now."""
        assert self._context is not None, f"task {self.name} is {self.state.name}: nothing is bound"
        return self._context

    def restore(self, positions: dict[Partition, int], required: dict[Partition, int]) -> None:
        """The committed offsets are known: the stores may be caught up."""
        self._step("restore")
        self.positions = positions
        self.required = required

    def start(self, producer: DataProducer) -> None:
        """Bind the steps: from now on records may be processed."""
        self._step("start")
        self._context = TaskContext(self.name, producer, self.stores, self._failures)
        self.receivers = compile_subtopology(self._subtopology, self._context)

    def suspend(self) -> None:
        """A rebalance begins. Everything has been committed."""
        self._step("suspend")

    def resume(self) -> None:
        """The rebalance is over, and the task is still ours."""
        self._step("resume")

    def rollback(self) -> None:
        """Forget all that is not committed; directory and databases stay open."""
        self._step("rollback")
        self._unbind()
        self.positions, self.required = {}, {}
        self.dirty = False
        for logged in self.stores.values():
            logged.store.rollback()
        # Reports of the producer that is gone may still come: they find what nobody looks at.
        self.stores = {name: replace(logged) for name, logged in self.stores.items()}
        self._undelivered = []

    def rebuild(self, stores: Collection[str]) -> None:
        """Empty the stores named, which can't be trusted: their changelogs bring them back."""
        assert self.state is TaskState.CREATED, f"task {self.name} is {self.state.name}"
        for name in stores:
            log.warning("task %s: store %r is rebuilt from its changelog", self.name, name)
            self.stores[name].store.clear()

    def close(self) -> None:
        """Release stores and directory. What was not committed is forgotten."""
        self._step("close")
        self._unbind()
        for logged in self.stores.values():
            logged.store.close()
        self._lock.release()

    def flush(self) -> None:
        """Let the steps that hold results back emit them, upstream first."""
        context = self.context
        context.message = None
        for flush in reversed(context.flushers):
            flush()

    def log_changes(self, producer: DataProducer) -> None:
        """Hand each dirty key to its changelog; positions are known when all is delivered."""
        for logged in self.stores.values():
            topic, partition = logged.changelog
            entries = logged.store.drain()
            last = len(entries) - 1
            for index, (key, value, timestamp_ms) in enumerate(entries):
                # A report on the last record alone: delivery is in order, and reports are not free.
                report = _reporter(logged, self._undelivered) if index == last else None
                try:
                    producer.produce(topic, value, key, partition, report, None, timestamp_ms)
                except BufferError:
                    producer.make_room()
                    producer.produce(topic, value, key, partition, report, None, timestamp_ms)

    def changelogs(self) -> list[Partition]:
        return [logged.changelog for logged in self.stores.values()]

    def delivered(self, latest: Mapping[Partition, int]) -> None:
        """Positions from the changelogs' ends: for a producer that reports failures only."""
        for logged in self.stores.values():
            logged.position = latest[logged.changelog]

    def offsets(self) -> list[tuple[Partition, Committed]]:
        """What to commit: every input partition, each with the positions of all stores."""
        if self._undelivered:
            raise OutcomeUnknown(f"changelog not delivered: {', '.join(self._undelivered)}")
        metadata = encode_metadata({name: s.position for name, s in self.stores.items()})
        return [(p, Committed(offset, metadata)) for p, offset in self.positions.items()]

    def committed(self) -> None:
        """Kafka has committed: make the stores' changes durable."""
        for logged in self.stores.values():
            logged.store.commit(Checkpoint(logged.position, logged.topic_id))
        self.dirty = False

    def _step(self, name: str) -> None:
        allowed, state = _TRANSITIONS[name]
        if self.state not in allowed:
            raise RuntimeError(f"task {self.name} is {self.state.name}: {name} is not possible")
        self.state = state

    def _unbind(self) -> None:
        # The steps hold the producer: it goes when the last task lets it go.
        self.receivers = {}
        context, self._context = self._context, None
        if context is not None:
            for close in context.closers:
                close()
            # Both lead back to the context: without them it goes at once, and the producer with it.
            context.closers.clear()
            context.flushers.clear()


def _reporter(logged: LoggedStore, undelivered: list[str]) -> Callable[[Any, Any], None]:
    """Notes where a record of the changelog went. It holds nothing of the task: a producer keeps
    the reports of what it could not deliver, and would keep itself alive through the task."""

    def report(error: Any, message: Any) -> None:
        if error is not None:
            undelivered.append(str(error))
        elif message.offset() < logged.position:
            # Also where the broker took it for a repetition and did not say of which offset.
            undelivered.append(
                f"{logged.changelog} went back from {logged.position} to {message.offset()}"
            )
        else:
            logged.position = message.offset() + 1

    return report
