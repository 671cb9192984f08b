"""Run one task: one sub-topology on one partition, with its stores, its positions and its commit.

Theory of operation. A task is what survives a rollback: its directory and its databases stay open
while producers, offsets and everything that was processed but not committed come and go. The steps
of its sub-topology are bound to a producer and a context when processing starts and are dropped
when the task is rolled back, with all that they held: results, punctuations, what user code kept in
its processors.

    state      what holds                                                   who touches the stores
    CREATED    the directory is ours, the databases are open                nobody
    RESTORING  the committed offsets are known; stores are being restored   the restorer
    RUNNING    steps are bound to a producer; records go through them       the stream thread
    SUSPENDED  as RUNNING, but a rebalance is on: nothing goes through      nobody
    CLOSED     nothing is ours any more                                     nobody

    from       to         by                  when
    CREATED    RESTORING  start_restoring     the committed offsets were read back, stable
    RESTORING  RUNNING    start_processing    the stores have reached what was committed
    RUNNING    SUSPENDED  suspend_processing  all is committed, and the member joins again
    SUSPENDED  RUNNING    resume_processing   the group has left the task with us
    RESTORING, RUNNING,
    SUSPENDED  CREATED    roll_back           nothing since the last commit counts: starts again
    all        CLOSED     close               the task is revoked, or the thread ends

Any other transition is a mistake in the runtime: RuntimeError. Kafka Streams' counterpart is
StreamTask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import Enum, auto
from typing import Any

from state.errors import Corrupt, Refused, RefusedLate
from state.expiring import ExpiringStore
from state.locks import Lock
from state.store import Checkpoint, StateStore
from state.transaction import no_record
from streams.errors import OutcomeUnknown, StreamsError, TaskCorrupted, ValueRefused
from streams.operators.held import held_bytes
from streams.positions import Committed, Partition
from streams.runtime.context import COMMIT, PUNCTUATION, TaskContext
from streams.runtime.early import EarlySerialization
from streams.runtime.failures import FAILING, Failures
from streams.runtime.interfaces import ProducerClient
from streams.runtime.logged import LoggedStore
from streams.runtime.offsets import METADATA_BYTES_MAX, encode_metadata
from streams.runtime.punctuation import Timeline
from streams.runtime.queues import NO_TIME, Consuming, Order, Queues, Records, Run, Straight
from streams.topology.build import Subtopology, expiry_of
from streams.topology.compile import compile_subtopology
from streams.topology.nodes import StepTime, Watch

log = logging.getLogger(__name__)

_SLICE_RECORDS_FIRST, _SLICE_RECORDS_MAX = 16, 256
_SLICE_S = 0.005
"""The time in seconds that a slice should take."""


class TaskState(Enum):
    """Names the states of a task, with the transitions in the module's theory of operation."""

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


class Task:
    """Processes the records of one sub-topology on one partition, in the stores that it owns.

    `partitions` are those that it reads; `directory`, its name in the state directory, is held by
    `lock`; `unlogged_stores` are the stores without a changelog.
    """

    def __init__(
        self,
        name: str,
        subtopology: Subtopology,
        *,
        partitions: list[Partition],
        stores: dict[str, LoggedStore],
        lock: Lock,
        directory: str = "",
        unlogged: Mapping[str, StateStore] | None = None,
        failures: Failures = FAILING,
        global_views: Mapping[str, Callable[[], Any]] | None = None,
        watch: Watch | None = None,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
    ) -> None:
        self.name = name
        self.directory = directory or name
        self.partitions = partitions
        self.stores = stores
        self.unlogged = dict(unlogged or {})
        """Stores without a changelog: they commit like the others, and nothing restores them."""
        self.state = TaskState.CREATED
        self.dirty = False
        self.positions: dict[Partition, int] = {}
        """The next offset of each partition, known from RESTORING on."""
        self.required: dict[Partition, int] = {}
        """The position of each changelog when the offsets were committed: a restore goes up to
        it."""
        self.times: dict[Partition, int] = {}
        """The highest timestamp of each partition, where the committed metadata have it."""
        self.step_times: dict[str, int] = {}
        """The stream time of each step that has its own, where the committed metadata have it."""
        self.commit_number = 0
        """The number of the last commit: see `streams.runtime.offset_metadata`."""
        self.slice_records = _SLICE_RECORDS_FIRST
        """How many records to process before the thread does something else."""
        self._subtopology = subtopology
        self._context: TaskContext | None = None
        self._failures = failures
        self._global_views = global_views
        self._watch = watch
        self._metadata_bytes_max = metadata_bytes_max
        self._records: Records | None = None
        self._lock = lock
        self._undelivered: list[str] = []
        self.early = EarlySerialization(self.every_store, self._has_record)

    @property
    def context(self) -> TaskContext:
        """Return the context of the steps that are bound now."""
        assert self._context is not None, f"task {self.name} is {self.state.name}: nothing is bound"
        return self._context

    @property
    def timed_steps(self) -> tuple[str, ...]:
        """Return the names of the steps that have a stream time of their own."""
        return self._subtopology.timed_steps

    @property
    def record(self) -> str:
        """Return the origin of the record that is processed now, or was last; empty if none."""
        context = self._context
        return "" if context is None or context.message is None else context.origin()

    @property
    def records(self) -> Records:
        """Return the buffer of records that were polled for this task and are not processed yet."""
        assert self._records is not None, f"task {self.name} is {self.state.name}: nothing is read"
        return self._records

    def restore(
        self,
        positions: dict[Partition, int],
        required: dict[Partition, int],
        times: dict[Partition, int],
        step_times: dict[str, int] | None = None,
        commit_number: int = 0,
    ) -> None:
        """Take over the committed positions and times, so that the stores may be restored."""
        self._step("restore")
        self.step_times = step_times or {}
        self.commit_number = commit_number
        self.positions = positions
        self.required = required
        self.times = times

    def start(
        self,
        producer: ProducerClient,
        consuming: Consuming,
        order: Order,
        now_ms: Callable[[], int],
    ) -> None:
        """Bind the steps to a producer, so that records may be processed from now on.

        `now_ms` is the wall clock, `flow_control` pauses partitions whose buffer is full,
        `order_settings` say in which order records of several partitions are taken.
        """
        self._step("start")
        self._context = TaskContext(
            self.name,
            producer,
            self.every_store(),
            self._failures,
            stream_time_ms=max(self.times.values(), default=NO_TIME),
            now_ms=now_ms,
            watch=self._watch,
            global_views=self._global_views,
            step_times=self.step_times,
            early=self.early if self.every_store() else None,
        )
        for expiry, store in self._expiry_times():
            store.advance(expiry.ms)
        with self._corrupt_is_named():  # processors may read their stores in `init`
            topics = compile_subtopology(self._subtopology, self._context)
        receivers = {p: topics[p.topic] for p in self.partitions}
        match self.partitions:
            case [only]:
                self._records = Straight(only, receivers[only])
            case _:
                self._records = Queues(receivers, self.times, consuming, order)

    def suspend(self) -> None:
        """Suspend processing while a rebalance is on; everything has been committed before."""
        self._step("suspend")

    def resume(self) -> None:
        """Resume processing after a rebalance that has left the task with this member."""
        self._step("resume")

    def rollback(self) -> None:
        """Discard all that is not committed; directory and databases stay open."""
        self._step("rollback")
        self._unbind()
        self.positions, self.required, self.times, self.step_times = {}, {}, {}, {}
        self.dirty = False
        for store in self.every_store().values():
            store.rollback()
        # Delivery reports of the discarded producer may still come: they change the objects from
        # before, which nobody reads any more.
        self.stores = {name: replace(logged) for name, logged in self.stores.items()}
        self._undelivered = []

    def every_store(self) -> dict[str, StateStore]:
        """Return every store by its name, those without a changelog included."""
        return {name: each.store for name, each in self.stores.items()} | self.unlogged

    def rebuild(self, stores: Collection[str]) -> None:
        """Clear the named stores, which can't be trusted, so that their changelogs restore them."""
        assert self.state is TaskState.CREATED, f"task {self.name} is {self.state.name}"
        for name in stores:
            outcome = "rebuilt from its changelog"
            if name in self.unlogged:
                outcome = "emptied: it has no changelog"
            log.warning("task %s: store %r is %s", self.name, name, outcome)
            self.every_store()[name].clear()

    def close(self) -> None:
        """Release stores and directory, whatever fails, and discard what was not committed."""
        self._step("close")
        with ExitStack() as steps:  # in reverse order
            steps.callback(self._lock.release)
            for store in self.every_store().values():
                steps.callback(store.close)
            steps.callback(self._unbind)

    def process(self, runs: list[Run]) -> int:
        """Process runs of records and return how many punctuations were called."""
        context = self.context
        with self._corrupt_is_named():
            if context.punctuations.stream:
                return self._process_by_stream_time(runs)
            early = self.early if self.early.is_on else None
            for receive, messages in runs:
                for message in messages:
                    context.message = message
                    receive(message)
                    if early is not None:
                        early.settle(context, self._subtopology.first_user)
        return 0

    def _process_by_stream_time(self, runs: list[Run]) -> int:
        """Process runs, with each punctuation called right after the record that makes it due."""
        context = self.context
        stream = context.punctuations.stream
        called = 0
        for receive, messages in runs:
            for message in messages:
                context.message = message
                receive(message)
                if self.early.is_on:
                    self.early.settle(context, self._subtopology.first_user)
                if stream.due(context.stream_time_ms):
                    called += self._punctuate(stream, context.stream_time_ms)
        return called

    def paced(self, records: int, took_s: float) -> None:
        """Adapt the slice size so that a slice takes about 5 ms.

        `record_count` records were processed in `elapsed_s` seconds. A slice that took longer is
        shortened in proportion; otherwise the size doubles, up to a maximum.
        """
        if took_s > _SLICE_S and records:
            self.slice_records = max(int(records * _SLICE_S / took_s), 1)
        elif self.slice_records < _SLICE_RECORDS_MAX:
            self.slice_records = min(self.slice_records * 2, _SLICE_RECORDS_MAX)

    def due(self, now_ms: Callable[[], int]) -> bool:
        """Return whether punctuations are due, by stream time or by the wall clock."""
        context = self.context
        stream, wall = context.punctuations.stream, context.punctuations.wall
        if stream and stream.due(context.stream_time_ms):
            return True
        return bool(wall) and wall.due(now_ms())

    def punctuate(self, now_ms: int) -> int:
        """Call the punctuations that are due by either clock and return how many were called."""
        context = self.context
        called = self._punctuate(context.punctuations.stream, context.stream_time_ms)
        return called + self._punctuate(context.punctuations.wall, now_ms)

    def _punctuate(self, timeline: Timeline, now_ms: int) -> int:
        """Call the punctuations of one clock that are due at `now_ms` and return their number."""
        context = self.context
        context.message = None
        context.between = PUNCTUATION
        with self._corrupt_is_named():
            called = timeline.punctuate(now_ms)
            if self.early.is_on:
                self.early.settle(context, self._subtopology.first_user)
            return called

    def _has_record(self) -> bool:
        """Return whether a record is being processed."""
        context = self._context
        return context is not None and context.message is not None

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory the running transaction takes."""
        written = sum(store.uncommitted_bytes for store in self.every_store().values())
        return written + sum(map(held_bytes, self.context.held.values()))

    def flush(self) -> None:
        """Emit the results that steps have held for the commit, upstream steps first.

        Raises: the fatal error that user code may have caught since the last commit.
        """
        context = self.context
        context.message = None
        context.between = COMMIT
        with self._corrupt_is_named():
            if context.unheard is not None:
                raise context.unheard
            for flush in reversed(context.flushers):
                flush()
            if self.early.is_on:
                self.early.settle(context, self._subtopology.first_user)

    def serialize_changes(self) -> None:
        """Serialize the new value of each changed key of every store.

        Raises: ValueRefused for a value that a store's serde refuses; which record wrote it is
        found when the transaction is repeated.
        """
        with self._corrupt_is_named():  # expired values are looked up on disk
            for store in self.every_store().values():
                store.check()  # a user's `except Exception` may have caught what a read raised
            try:
                for store in self.every_store().values():
                    store.drain()
            except Refused as error:
                if self.early.is_on:
                    raise
                raise ValueRefused(self.name, str(error)) from error

    def log_changes(self, producer: ProducerClient) -> None:
        """Send each changed key of every logged store to the store's changelog."""
        for logged in self.stores.values():
            logged.log_changes(producer, self._undelivered)

    def changelogs(self) -> list[Partition]:
        """Return the changelog partitions that the task writes."""
        return [each.changelog for each in self.stores.values() if not each.from_source]

    def delivered(self, latest: Mapping[Partition, int]) -> None:
        """Set the positions of the logged stores to the ends of their changelogs.

        For a producer that reports failed deliveries only, and so tells no offsets.
        """
        for logged in self.stores.values():
            if not logged.from_source:
                logged.position = latest[logged.changelog]

    def advance(self, positions: Mapping[Partition, int], now_ms: int) -> None:
        """Set the offset to commit of each input partition, and the number of the next commit.

        The offset is that of the next buffered record; where none is buffered it is the consumer's
        position, which may be past transaction markers (`positions`; partitions without one keep
        theirs). `now_ms` is wall-clock time.
        """
        self.commit_number = max(self.commit_number + 1, now_ms)
        for partition in self.positions:
            head = self.records.head(partition)
            if head is None:
                head = positions.get(partition)
            if head is not None:
                self.positions[partition] = head
        for logged in self.stores.values():
            if logged.from_source:
                logged.position = self.positions[logged.changelog]

    def offsets(self) -> list[tuple[Partition, Committed]]:
        """Return the offset to commit of each input partition, with store positions as metadata.

        Every input partition is committed each time, so the transaction of a task that has only
        punctuated is fenced like any other (decision 9).

        Raises: OutcomeUnknown if a changelog record was not delivered; the fatal error that user
        code may have caught.
        """
        # Raised by the results that were emitted for this commit.
        if (fatal := self.context.unheard) is not None:
            raise fatal
        if self._undelivered:
            raise OutcomeUnknown(f"changelog not delivered: {', '.join(self._undelivered)}")
        stores = {name: each.position for name, each in self.stores.items() if not each.from_source}
        for expiry, store in self._expiry_times():
            expiry.ms = store.stream_time_ms
        times = self.records.times(self.context.stream_time_ms)
        steps = {step: time.ms for step, time in self.context.step_times.items()}
        number, bytes_max = self.commit_number, self._metadata_bytes_max
        return [
            (
                p,
                Committed(
                    o, encode_metadata(stores, times.get(p, NO_TIME), steps, number, bytes_max)
                ),
            )
            for p, o in self.positions.items()
        ]

    def committed(self, now_ms: int) -> None:
        """Make the stores' changes durable after Kafka has committed the transaction.

        `now_ms` is a wall-clock time at which nothing was in the changelogs above the stores'
        positions.
        """
        with self._corrupt_is_named():
            for logged in self.stores.values():
                logged.store.commit(Checkpoint(logged.position, logged.topic_id, now_ms))
            for store in self.unlogged.values():
                store.commit(Checkpoint(0, "", now_ms))
        self.dirty = False
        self.context.commit_asked = False
        if self.early.is_on:
            self.early.committed(now_ms)

    def _expiry_times(self) -> Iterator[tuple[StepTime, ExpiringStore[Any, Any]]]:
        """Yield each store whose values expire, with its committed stream time."""
        for name, store in self.every_store().items():
            if isinstance(store, ExpiringStore):
                yield self.context.step_time(expiry_of(name)), store

    def _step(self, name: str) -> None:
        """Change the state by the named transition, or raise RuntimeError if it is not possible."""
        allowed, state = _TRANSITIONS[name]
        if self.state not in allowed:
            raise RuntimeError(f"task {self.name} is {self.state.name}: {name} is not possible")
        self.state = state

    @contextmanager
    def _corrupt_is_named(self) -> Iterator[None]:
        """Translate a store's corruption in the body into TaskCorrupted, which names the task.

        A corrupt copy of a global table raises StreamsError. A value that a serde refused late
        starts the search for the record that wrote it.
        """
        try:
            yield
        except Corrupt as error:
            if error.store not in self.stores and error.store not in self.unlogged:
                raise StreamsError(
                    f"{error}. It is the worker's copy of a global table: start again, and it is "
                    "copied anew"
                ) from error
            raise TaskCorrupted(self.name, [error.store], str(error)) from error
        except RefusedLate as error:
            self.context.find_refused_value(error)
            raise

    def _unbind(self) -> None:
        """Drop the bound steps and all that they hold, after calling their close callbacks."""
        # The steps refer to the producer, which is freed when no task refers to it any more.
        self._records = None
        context, self._context = self._context, None
        if context is not None:
            for close in context.closers:
                close()
            # All refer back to the context: without these cycles it is freed at once, and the
            # producer with it.
            context.closers.clear()
            context.flushers.clear()
            for store in self.every_store().values():
                store.clock = no_record
