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

from state.errors import EarlierWriteRefused, StoreCorrupted, StoreSerdeError
from state.expiring import ExpiringStore
from state.locks import ProcessFileLock
from state.store import StateStore, StoreCheckpoint
from state.transaction import raise_no_record
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskCorrupted, ValueRefused
from streams.graph.nodes import StepStreamTime, TaskObserver
from streams.operators.uncommitted_results import estimate_messages_bytes
from streams.runtime.context import COMMIT_ORIGIN, PUNCTUATION_ORIGIN, TaskContext
from streams.runtime.early_serialization import EarlySerialization
from streams.runtime.failures import FAIL_ON_ANY_ERROR, FailureHandler
from streams.runtime.interfaces import ProducerClient
from streams.runtime.logged_store import LoggedStore
from streams.runtime.offset_metadata import METADATA_BYTES_MAX, encode_metadata
from streams.runtime.partition_group import (
    NO_TIME,
    FlowControl,
    PartitionGroup,
    RecordBuffer,
    RecordOrderSettings,
    RecordRun,
    SinglePartitionQueue,
)
from streams.runtime.punctuation import PunctuationQueue
from streams.topology.build import Subtopology, expiry_time_name
from streams.topology.compile import compile_subtopology

log = logging.getLogger(__name__)

_INITIAL_SLICE_SIZE, _SLICE_SIZE_MAX = 16, 256
_SLICE_TARGET_S = 0.005
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
        lock: ProcessFileLock,
        directory: str = "",
        unlogged_stores: Mapping[str, StateStore] | None = None,
        failures: FailureHandler = FAIL_ON_ANY_ERROR,
        global_views: Mapping[str, Callable[[], Any]] | None = None,
        observer: TaskObserver | None = None,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
    ) -> None:
        self.name = name
        self.directory = directory or name
        self.partitions = partitions
        self.stores = stores
        self.unlogged_stores = dict(unlogged_stores or {})
        """Stores without a changelog: they commit like the others, and nothing restores them."""
        self.state = TaskState.CREATED
        self.commit_needed = False
        self.positions: dict[Partition, int] = {}
        """The next offset of each partition, known from RESTORING on."""
        self.required_changelog_positions: dict[Partition, int] = {}
        """The position of each changelog when the offsets were committed: a restore goes up to
        it."""
        self.partition_times_ms: dict[Partition, int] = {}
        """The highest timestamp of each partition, where the committed metadata have it."""
        self.step_times_ms: dict[str, int] = {}
        """The stream time of each step that has its own, where the committed metadata have it."""
        self.commit_number = 0
        """The number of the last commit: see `streams.runtime.offset_metadata`."""
        self.slice_size = _INITIAL_SLICE_SIZE
        """How many records to process before the thread does something else."""
        self._subtopology = subtopology
        self._context: TaskContext | None = None
        self._failures = failures
        self._global_views = global_views
        self._observer = observer
        self._metadata_bytes_max = metadata_bytes_max
        self._buffered_records: RecordBuffer | None = None
        self._lock = lock
        self._undelivered: list[str] = []
        self.early_serialization = EarlySerialization(self.all_stores, self._is_processing_record)

    @property
    def context(self) -> TaskContext:
        """Return the context of the steps that are bound now."""
        assert self._context is not None, f"task {self.name} is {self.state.name}: nothing is bound"
        return self._context

    @property
    def timed_steps(self) -> tuple[str, ...]:
        """Return the names of the steps that have a stream time of their own."""
        return self._subtopology.stream_time_names

    @property
    def record_origin(self) -> str:
        """Return the origin of the record that is processed now, or was last; empty if none."""
        context = self._context
        return (
            "" if context is None or context.message is None else context.describe_record_origin()
        )

    @property
    def buffered_records(self) -> RecordBuffer:
        """Return the buffer of records that were polled for this task and are not processed yet."""
        assert self._buffered_records is not None, (
            f"task {self.name} is {self.state.name}: nothing is read"
        )
        return self._buffered_records

    def start_restoring(
        self,
        positions: dict[Partition, int],
        required_changelog_positions: dict[Partition, int],
        partition_times_ms: dict[Partition, int],
        step_times_ms: dict[str, int] | None = None,
        commit_number: int = 0,
    ) -> None:
        """Change to RESTORING, with the positions and times that the task has committed."""
        self._change_state("restore")
        self.step_times_ms = step_times_ms or {}
        self.commit_number = commit_number
        self.positions = positions
        self.required_changelog_positions = required_changelog_positions
        self.partition_times_ms = partition_times_ms

    def start_processing(
        self,
        producer: ProducerClient,
        flow_control: FlowControl,
        order_settings: RecordOrderSettings,
        now_ms: Callable[[], int],
    ) -> None:
        """Bind the steps to a producer, so that records may be processed from now on.

        `now_ms` is the wall clock, `flow_control` pauses partitions whose buffer is full,
        `order_settings` say in which order records of several partitions are taken.
        """
        self._change_state("start")
        self._context = TaskContext(
            self.name,
            producer,
            self.all_stores(),
            self._failures,
            stream_time_ms=max(self.partition_times_ms.values(), default=NO_TIME),
            now_ms=now_ms,
            observer=self._observer,
            global_views=self._global_views,
            step_times_ms=self.step_times_ms,
            early_serialization=self.early_serialization if self.all_stores() else None,
        )
        for expiry, store in self._stores_with_expiry():
            store.advance_stream_time(expiry.ms)
        with self._translate_store_errors():  # processors may read their stores in `init`
            topics = compile_subtopology(self._subtopology, self._context)
        receivers = {p: topics[p.topic] for p in self.partitions}
        match self.partitions:
            case [only]:
                self._buffered_records = SinglePartitionQueue(only, receivers[only])
            case _:
                self._buffered_records = PartitionGroup(
                    receivers, self.partition_times_ms, flow_control, order_settings
                )

    def suspend_processing(self) -> None:
        """Suspend processing during a rebalance; the caller has committed everything before."""
        self._change_state("suspend")

    def resume_processing(self) -> None:
        """Resume processing after a rebalance that has left the task with this member."""
        self._change_state("resume")

    def roll_back(self) -> None:
        """Discard all that is not committed; directory and databases stay open."""
        self._change_state("rollback")
        self._unbind_steps()
        (
            self.positions,
            self.required_changelog_positions,
            self.partition_times_ms,
            self.step_times_ms,
        ) = {}, {}, {}, {}
        self.commit_needed = False
        for store in self.all_stores().values():
            store.rollback_transaction()
        # Delivery reports of the discarded producer may still come: they change the objects from
        # before, which nobody reads any more.
        self.stores = {name: replace(logged) for name, logged in self.stores.items()}
        self._undelivered = []

    def all_stores(self) -> dict[str, StateStore]:
        """Return every store by its name, those without a changelog included."""
        return {name: each.store for name, each in self.stores.items()} | self.unlogged_stores

    def clear_stores(self, store_names: Collection[str]) -> None:
        """Clear the named stores, which can't be trusted, so that their changelogs restore them."""
        assert self.state is TaskState.CREATED, f"task {self.name} is {self.state.name}"
        for name in store_names:
            outcome = "rebuilt from its changelog"
            if name in self.unlogged_stores:
                outcome = "emptied: it has no changelog"
            log.warning("task %s: store %r is %s", self.name, name, outcome)
            self.all_stores()[name].clear_all_data()

    def close(self) -> None:
        """Release stores and directory, whatever fails, and discard what was not committed."""
        self._change_state("close")
        with ExitStack() as steps:  # in reverse order
            steps.callback(self._lock.release)
            for store in self.all_stores().values():
                steps.callback(store.close)
            steps.callback(self._unbind_steps)

    def process_runs(self, runs: list[RecordRun]) -> int:
        """Process runs of records and return how many punctuations were called."""
        context = self.context
        with self._translate_store_errors():
            if context.punctuations.by_stream_time:
                return self._process_with_punctuations(runs)
            early = self.early_serialization if self.early_serialization.is_on else None
            for receive, messages in runs:
                for message in messages:
                    context.message = message
                    receive(message)
                    if early is not None:
                        early.serialize_mutated_values(context, self._subtopology.find_first_user)
        return 0

    def _process_with_punctuations(self, runs: list[RecordRun]) -> int:
        """Process runs, with each punctuation called right after the record that makes it due."""
        context = self.context
        stream = context.punctuations.by_stream_time
        called = 0
        for receive, messages in runs:
            for message in messages:
                context.message = message
                receive(message)
                if self.early_serialization.is_on:
                    self.early_serialization.serialize_mutated_values(
                        context, self._subtopology.find_first_user
                    )
                if stream.is_due(context.stream_time_ms):
                    called += self._call_due(stream, context.stream_time_ms)
        return called

    def adapt_slice_size(self, record_count: int, elapsed_s: float) -> None:
        """Adapt the slice size so that a slice takes about 5 ms.

        `record_count` records were processed in `elapsed_s` seconds. A slice that took longer is
        shortened in proportion; otherwise the size doubles, up to a maximum.
        """
        if elapsed_s > _SLICE_TARGET_S and record_count:
            self.slice_size = max(int(record_count * _SLICE_TARGET_S / elapsed_s), 1)
        elif self.slice_size < _SLICE_SIZE_MAX:
            self.slice_size = min(self.slice_size * 2, _SLICE_SIZE_MAX)

    def is_punctuation_due(self, now_ms: Callable[[], int]) -> bool:
        """Return whether punctuations are due, by stream time or by the wall clock."""
        context = self.context
        stream, wall = context.punctuations.by_stream_time, context.punctuations.by_wall_clock
        if stream and stream.is_due(context.stream_time_ms):
            return True
        return bool(wall) and wall.is_due(now_ms())

    def call_due_punctuations(self, now_ms: int) -> int:
        """Call the punctuations that are due by either clock and return how many were called."""
        context = self.context
        called = self._call_due(context.punctuations.by_stream_time, context.stream_time_ms)
        return called + self._call_due(context.punctuations.by_wall_clock, now_ms)

    def _call_due(self, punctuation_queue: PunctuationQueue, now_ms: int) -> int:
        """Call the punctuations of one clock that are due at `now_ms` and return their number."""
        context = self.context
        context.message = None
        context.origin_without_record = PUNCTUATION_ORIGIN
        with self._translate_store_errors():
            called = punctuation_queue.call_due(now_ms)
            if self.early_serialization.is_on:
                self.early_serialization.serialize_mutated_values(
                    context, self._subtopology.find_first_user
                )
            return called

    def _is_processing_record(self) -> bool:
        """Return whether a record is being processed."""
        context = self._context
        return context is not None and context.message is not None

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory the task's uncommitted writes take."""
        written = sum(store.uncommitted_bytes for store in self.all_stores().values())
        return written + sum(
            map(estimate_messages_bytes, self.context.uncommitted_results.values())
        )

    def emit_pending_results(self) -> None:
        """Emit the results that steps have held for the commit, upstream steps first.

        Raises: the fatal error that user code may have caught since the last commit.
        """
        context = self.context
        context.message = None
        context.origin_without_record = COMMIT_ORIGIN
        with self._translate_store_errors():
            if context.fatal_error is not None:
                raise context.fatal_error
            for flush in reversed(context.commit_callbacks):
                flush()
            if self.early_serialization.is_on:
                self.early_serialization.serialize_mutated_values(
                    context, self._subtopology.find_first_user
                )

    def serialize_changes(self) -> None:
        """Serialize the new value of each changed key of every store.

        Raises: ValueRefused for a value that a store's serde refuses; which record wrote it is
        found when the transaction is repeated.
        """
        with self._translate_store_errors():  # expired values are looked up on disk
            for store in self.all_stores().values():
                # A user's `except Exception` may have caught what a read raised.
                store.raise_if_corrupted()
            try:
                for store in self.all_stores().values():
                    store.drain_writes()
            except StoreSerdeError as error:
                if self.early_serialization.is_on:
                    raise
                raise ValueRefused(self.name, str(error)) from error

    def log_changes(self, producer: ProducerClient) -> None:
        """Send each changed key of every logged store to the store's changelog."""
        for logged in self.stores.values():
            logged.log_changes(producer, self._undelivered)

    def written_changelogs(self) -> list[Partition]:
        """Return the changelog partitions that the task writes."""
        return [each.changelog for each in self.stores.values() if not each.is_source_topic]

    def set_changelog_positions(self, end_offsets: Mapping[Partition, int]) -> None:
        """Set the positions of the logged stores to the ends of their changelogs.

        For a producer that reports failed deliveries only, and so tells no offsets.
        """
        for logged in self.stores.values():
            if not logged.is_source_topic:
                logged.changelog_position = end_offsets[logged.changelog]

    def advance_positions(self, positions: Mapping[Partition, int], now_ms: int) -> None:
        """Set the offset to commit of each input partition, and the number of the next commit.

        The offset is that of the next buffered record; where none is buffered it is the consumer's
        position, which may be past transaction markers (`positions`; partitions without one keep
        theirs). `now_ms` is wall-clock time.
        """
        self.commit_number = max(self.commit_number + 1, now_ms)
        for partition in self.positions:
            head = self.buffered_records.next_offset(partition)
            if head is None:
                head = positions.get(partition)
            if head is not None:
                self.positions[partition] = head
        for logged in self.stores.values():
            if logged.is_source_topic:
                logged.changelog_position = self.positions[logged.changelog]

    def committable_offsets(self) -> list[tuple[Partition, OffsetAndMetadata]]:
        """Return the offset to commit of each input partition, with store positions as metadata.

        Every input partition is committed each time, so the transaction of a task that has only
        punctuated is fenced like any other (decision 9).

        Raises: OutcomeUnknown if a changelog record was not delivered; the fatal error that user
        code may have caught.
        """
        # Raised by the results that were emitted for this commit.
        if (fatal := self.context.fatal_error) is not None:
            raise fatal
        if self._undelivered:
            raise OutcomeUnknown(f"changelog not delivered: {', '.join(self._undelivered)}")
        stores = {
            name: each.changelog_position
            for name, each in self.stores.items()
            if not each.is_source_topic
        }
        for expiry, store in self._stores_with_expiry():
            expiry.ms = store.stream_time_ms
        times = self.buffered_records.partition_times_ms(self.context.stream_time_ms)
        steps = {step: time.ms for step, time in self.context.step_times.items()}
        number, bytes_max = self.commit_number, self._metadata_bytes_max
        return [
            (
                p,
                OffsetAndMetadata(
                    o, encode_metadata(stores, times.get(p, NO_TIME), steps, number, bytes_max)
                ),
            )
            for p, o in self.positions.items()
        ]

    def commit_stores(self, now_ms: int) -> None:
        """Make the stores' changes durable after Kafka has committed the transaction.

        `now_ms` is a wall-clock time at which nothing was in the changelogs above the stores'
        positions.
        """
        with self._translate_store_errors():
            for logged in self.stores.values():
                logged.store.commit(
                    StoreCheckpoint(logged.changelog_position, logged.changelog_topic_id, now_ms)
                )
            for store in self.unlogged_stores.values():
                store.commit(StoreCheckpoint(0, "", now_ms))
        self.commit_needed = False
        self.context.commit_requested = False
        if self.early_serialization.is_on:
            self.early_serialization.stop_when_quiet(now_ms)

    def _stores_with_expiry(self) -> Iterator[tuple[StepStreamTime, ExpiringStore[Any, Any]]]:
        """Yield each store whose values expire, with its committed stream time."""
        for name, store in self.all_stores().items():
            if isinstance(store, ExpiringStore):
                yield self.context.get_step_stream_time(expiry_time_name(name)), store

    def _change_state(self, transition: str) -> None:
        """Change the state by the named transition, or raise RuntimeError if it is not possible."""
        allowed, state = _TRANSITIONS[transition]
        if self.state not in allowed:
            raise RuntimeError(
                f"task {self.name} is {self.state.name}: {transition} is not possible"
            )
        self.state = state

    @contextmanager
    def _translate_store_errors(self) -> Iterator[None]:
        """Translate StoreCorrupted, raised in this context manager's block, into TaskCorrupted.

        A corrupt copy of a global table raises StreamsError. A value that a serde refused late
        starts the search for the record that wrote it.
        """
        try:
            yield
        except StoreCorrupted as error:
            if error.store not in self.stores and error.store not in self.unlogged_stores:
                raise StreamsError(
                    f"{error}. It is the worker's copy of a global table: start again, and it is "
                    "copied anew"
                ) from error
            raise TaskCorrupted(self.name, [error.store], str(error)) from error
        except EarlierWriteRefused as error:
            self.context.start_refused_value_search(error)
            raise

    def _unbind_steps(self) -> None:
        """Drop the bound steps and all that they hold, after calling their close callbacks."""
        # The steps refer to the producer, which is freed when no task refers to it any more.
        self._buffered_records = None
        context, self._context = self._context, None
        if context is not None:
            for close in context.close_callbacks:
                close()
            # All refer back to the context: without these cycles it is freed at once, and the
            # producer with it.
            context.close_callbacks.clear()
            context.commit_callbacks.clear()
            for store in self.all_stores().values():
                store.clock = raise_no_record
