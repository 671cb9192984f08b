"""Run one task: one sub-topology on one partition, with its stores, its positions and its commit.

Theory of operation. A task is what survives a rollback: its directory and its databases stay open
while producers, offsets and everything that was processed but not committed come and go. The steps
of its sub-topology are bound to a producer and a context when processing starts and are dropped
when the task is rolled back, with all that they held: results, punctuations, what user code kept in
its processors. `task_state` has the states and the transitions.

Directory and databases stay open from one role to the other, so a task that becomes active replays
what its changelogs got since, and no more. Kafka Streams' counterparts are StreamTask and
StandbyTask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from state.locks import ProcessFileLock
from state.replica import TopicReplica
from state.ttl_store import TtlStore
from streams.common.host import Clocks
from streams.common.topic_partitions import NO_TIME, OffsetAndMetadata, Partition
from streams.graph.internal_context import StepStreamTime, TaskObserver
from streams.graph.nodes import StoreSpec
from streams.graph.step_measurements import StepMeasurements
from streams.runtime.changelogs.window_expiry import ExpiredRecords
from streams.runtime.clients.interfaces import FlowControl, ProducerClient
from streams.runtime.clients.refused_writes import RefusedWrites
from streams.runtime.offsets.offset_metadata import (
    METADATA_BYTES_MAX,
    FirstStart,
    encode_metadata,
)
from streams.runtime.tasks.bound_steps import BoundSteps
from streams.runtime.tasks.context import TaskContext
from streams.runtime.tasks.early_serialization import EarlySerialization
from streams.runtime.tasks.failures import FAIL_ON_ANY_ERROR, FailureHandler
from streams.runtime.tasks.offset_proof import UNCHECKED, OffsetProof
from streams.runtime.tasks.partition_group import (
    RecordBuffer,
    RecordOrderSettings,
    create_record_buffer,
)
from streams.runtime.tasks.task_state import TaskState, require_next_state
from streams.runtime.tasks.task_stores import TaskStores
from streams.topology.build import Subtopology, name_ttl_stream_time

_INITIAL_SLICE_SIZE, _SLICE_SIZE_MAX = 16, 256
_SLICE_TARGET_S = 0.005
"""The time in seconds that a slice should take."""


class Task:
    """Processes the records of one sub-topology on one partition, in the stores that it owns.

    `partitions` are those that it reads; `directory`, its name in the state directory, is held by
    `lock`.
    """

    def __init__(
        self,
        name: str,
        subtopology: Subtopology,
        *,
        partitions: list[Partition],
        stores: TaskStores,
        lock: ProcessFileLock,
        directory: str = "",
        failures: FailureHandler = FAIL_ON_ANY_ERROR,
        global_replicas: Mapping[str, TopicReplica] | None = None,
        observer: TaskObserver | None = None,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
        is_transactional: bool = True,
    ) -> None:
        self.name = name
        self.directory = directory or name
        self.partitions = partitions
        self.stores = stores
        self.state = TaskState.CREATED
        self.commit_needed = False
        self.positions: dict[Partition, int] = {}
        """The next offset of each partition, known from RESTORING on."""
        self.required_changelog_positions: dict[Partition, int] = {}
        """Each changelog's position when the offsets were committed: a restore goes up to it."""
        self.offset_proof = UNCHECKED
        """The committed records of the stores that the committed offsets account for."""
        self.uncommitted_inputs: list[Partition] = []
        """The input partitions for which no offset had been committed."""
        self.start_entries: Mapping[str, int] = {}  # of the metadata, if there is room
        self.topic_ids: Mapping[str, int] = {}
        """The hash of the id of each input topic, where the brokers have ids."""
        self._changelog_ids: Mapping[str, int] = {}
        self.first_starts: Mapping[Partition, FirstStart] = {}
        """The group's first start with the topic of each partition, where it is known."""
        self.partition_times_ms: dict[Partition, int] = {}
        """The highest timestamp of each partition, where the committed metadata have it."""
        self.step_times_ms: dict[str, int] = {}
        """The stream time of each step that has its own, where the committed metadata have it."""
        self.commit_number = 0
        """The number of the last commit: see `streams.runtime.offsets.offset_metadata`."""
        self.must_commit_positions = False
        """Whether positions that a reset policy has chosen are to be committed before a record is
        polled: another time it might choose others."""
        self.step_measurements: dict[str, StepMeasurements] = {}  # by step
        self.slice_size = _INITIAL_SLICE_SIZE
        """How many records to process before the thread does something else."""
        self.committed_positions: dict[Partition, int] = {}
        self.commit_sequence = 0
        """Counts the beginnings and the ends of what a commit writes to the stores: odd in between,
        and after a commit that has failed, until the task starts again."""
        self.commit_pending_since_ms: int | None = None
        """The wall-clock time in ms from which on Kafka may have more than the stores show."""
        self._subtopology = subtopology
        self._steps: BoundSteps | None = None
        self.buffer: RecordBuffer | None = None  # while it does not process
        self._failures = failures
        self._global_replicas = global_replicas
        self._observer = observer
        self._metadata_bytes_max = metadata_bytes_max
        self._is_transactional = is_transactional
        topics = tuple(sorted({partition.topic for partition in partitions}))
        # Of several inputs one may lose its offset: those of the others name it.
        self._input_topics = topics if len(topics) > 1 else ()
        stores.choose_metadata_entries_that_fit(len(self.timed_steps), topics, metadata_bytes_max)
        self._lock = lock
        self.early_serialization = EarlySerialization(stores.all_stores, self._is_processing_record)

    @property
    def steps(self) -> BoundSteps:
        """Return the steps that are bound now."""
        assert self._steps is not None, f"task {self.name} is {self.state.name}: nothing is bound"
        return self._steps

    @property
    def buffered_records(self) -> RecordBuffer:
        """Return the buffer of records that were polled for the task and are not processed yet."""
        assert self.buffer is not None, f"task {self.name} is {self.state.name}"
        return self.buffer

    @property
    def keyed_topics(self) -> frozenset[str]:
        """Return the inputs whose records are kept by key, repartition topics left out."""
        return self._subtopology.keyed_topics

    @property
    def timed_steps(self) -> tuple[str, ...]:
        """Return the names of the steps that have a stream time of their own."""
        return self._subtopology.stream_time_names

    @property
    def store_specs(self) -> Mapping[str, StoreSpec]:
        """Return the declarations of its stores, by name."""
        return {each.name: each for each in self._subtopology.stores}

    @property
    def record_origin(self) -> str:
        """Return the origin of the record that is processed now, or was last; empty if none."""
        steps = self._steps
        is_none = steps is None or steps.context.message is None
        return "" if is_none else self.steps.context.describe_record_origin()

    def start_following(self) -> None:
        """Change to STANDBY: from now on the stores belong to the restorer, which follows."""
        self.state = require_next_state(self.name, self.state, "follow")

    def stop_following(self) -> None:
        """Change back to CREATED; the restorer gives the stores back, at its next batch."""
        self.state = require_next_state(self.name, self.state, "unfollow")

    def start_restoring(
        self,
        positions: dict[Partition, int],
        required_changelog_positions: dict[Partition, int],
        partition_times_ms: dict[Partition, int],
        step_times_ms: dict[str, int] | None = None,
        commit_number: int = 0,
        offset_proof: OffsetProof = UNCHECKED,
        *,
        committed_positions: Mapping[Partition, int] | None = None,
        must_commit_positions: bool = False,
    ) -> None:
        """Change to RESTORING, with the positions and times that the task has committed.

        `committed_positions` are those of `positions` that are committed.
        """
        self.state = require_next_state(self.name, self.state, "restore")
        self.committed_positions = dict(committed_positions or {})
        self.must_commit_positions = must_commit_positions
        self.step_times_ms = step_times_ms or {}
        self.commit_number = commit_number
        self.offset_proof = offset_proof
        self.positions = positions
        self.required_changelog_positions = required_changelog_positions
        self.partition_times_ms = partition_times_ms

    def start_processing(
        self,
        producer: ProducerClient,
        flow_control: FlowControl,
        order_settings: RecordOrderSettings,
        clocks: Clocks,
        refused_writes: RefusedWrites | None = None,
    ) -> None:
        """Bind the steps to a producer, so that records may be processed from now on.

        `flow_control` pauses partitions with full buffers, `order_settings` order their records.
        """
        self.state = require_next_state(self.name, self.state, "start")
        self.commit_pending_since_ms = None
        self.commit_sequence += 2 - self.commit_sequence % 2  # a restore may have added to it
        self._changelog_ids = self.stores.hash_changelog_ids()
        stores = self.stores.all_stores()
        context = TaskContext(
            self.name,
            producer,
            stores,
            self._failures,
            stream_time_ms=max(self.partition_times_ms.values(), default=NO_TIME),
            clocks=clocks,
            observer=self._observer,
            global_replicas=self._global_replicas,
            step_times_ms=self.step_times_ms,
            early_serialization=self.early_serialization if stores else None,
            store_source_topics=self.stores.list_source_topics(),
            refused_writes=refused_writes,
            notes_lookups=order_settings.keeps_order,
            step_measurements=self.step_measurements,
        )
        self._steps = BoundSteps(self._subtopology, context, self.stores, self.early_serialization)
        for expiry, store in self._iterate_ttl_stores_with_time():
            store.advance_stream_time(expiry.ms)
        topics = self._steps.bind_sources()
        self.buffer = create_record_buffer(
            {partition: topics[partition.topic] for partition in self.partitions},
            self.partition_times_ms,
            flow_control,
            order_settings,
        )

    def adapt_slice_size(self, record_count: int, elapsed_s: float) -> None:
        """Adapt the number of records of the next slice, so that it takes about 5 ms.

        `record_count` records were processed in `elapsed_s` seconds. After a slice that took longer
        it is shortened in proportion; otherwise it doubles, up to a maximum.
        """
        if elapsed_s > _SLICE_TARGET_S and record_count:
            self.slice_size = max(int(record_count * _SLICE_TARGET_S / elapsed_s), 1)
        else:
            self.slice_size = max(self.slice_size, min(self.slice_size * 2, _SLICE_SIZE_MAX))

    def roll_back(self) -> None:
        """Discard all that is not committed; directory and databases stay open."""
        self.state = require_next_state(self.name, self.state, "rollback")
        self._unbind_steps()
        self.positions, self.required_changelog_positions = {}, {}
        self.partition_times_ms, self.step_times_ms = {}, {}
        self.commit_needed = self.must_commit_positions = False
        self.stores.roll_back_changes()

    def mark_stores_for_rebuild(self, store_names: Collection[str], reason: str) -> None:
        """Have the named stores rebuilt; raise StreamsError for one without a changelog."""
        assert self.state is TaskState.CREATED, f"task {self.name} is {self.state.name}"
        self.stores.mark_stores_for_rebuild(store_names, reason)

    def close(self) -> None:
        """Release stores and directory, whatever fails, and discard what was not committed."""
        self.state = require_next_state(self.name, self.state, "close")
        with ExitStack() as steps:  # in reverse order
            steps.callback(self._lock.release)
            for store in self.stores.all_stores().values():
                steps.callback(store.close)
            steps.callback(self._unbind_steps)

    def prepare_next_commit(self, positions: Mapping[Partition, int], now_ms: int) -> None:
        """Set the offset to commit of each input partition, and the number of the next commit.

        The offset is that of the next buffered record; where none is buffered it is the consumer's
        position, which may be past transaction markers (`positions`; partitions without one keep
        theirs). `now_ms` is wall-clock time.
        """
        self.commit_number = max(self.commit_number + 1, now_ms)
        for partition in self.positions:
            self.positions[partition] = self._next_commit_offset(partition, positions)
        self.stores.set_source_positions(self.positions)

    def has_changed_offsets(self, positions: Mapping[Partition, int]) -> bool:
        """Return whether a commit would change an offset, or commit one for the first time.

        `positions` are the consumer's, as for `prepare_next_commit`.
        """
        committed = self.committed_positions
        return any(
            committed.get(partition) != self._next_commit_offset(partition, positions)
            for partition in self.positions
        )

    def _next_commit_offset(self, partition: Partition, positions: Mapping[Partition, int]) -> int:
        """Return the offset to commit for an input partition: of its next record to process."""
        head = self.buffered_records.next_offset(partition)
        return positions.get(partition, self.positions[partition]) if head is None else head

    def committable_offsets(self) -> list[tuple[Partition, OffsetAndMetadata]]:
        """Return the offset to commit of each input partition, with store positions as metadata.

        All are committed each time: so one that has only punctuated is fenced, too (decision 9).

        Raises: OutcomeUnknown if a changelog record was not delivered; the fatal error that user
        code may have caught.
        """
        steps = self.steps
        # Raised by the results that were emitted for this commit.
        if (fatal := steps.context.fatal_error) is not None:
            raise fatal
        stores = self.stores.committable_positions()
        for expiry, store in self._iterate_ttl_stores_with_time():
            expiry.ms = store.stream_time_ms
        times = self.buffered_records.partition_times_ms(steps.context.stream_time_ms)
        step_times = {step: time.ms for step, time in steps.context.step_times.items()}
        entries = self.stores.advance_expiry()
        if self.stores.names_expired:
            entries |= self.start_entries
        entries |= self.stores.name_unlogged_commits(self.commit_number)
        starts = self.first_starts
        encode = partial(
            encode_metadata,
            stores,
            step_times=step_times,
            commit_number=self.commit_number,
            bytes_max=self._metadata_bytes_max,
            input_topics=self._input_topics,
            topic_ids=self.topic_ids,
            changelog_ids=self._changelog_ids,
            is_at_least_once=not self._is_transactional,
            entries=entries,
        )
        return [
            (p, OffsetAndMetadata(o, encode(times.get(p, NO_TIME), first_start=starts.get(p))))
            for p, o in self.positions.items()
        ]

    def pop_first_offsets(self) -> list[tuple[Partition, OffsetAndMetadata]]:
        """Return the offsets at which inputs without a committed one began, once.

        They are committed before anything is written that a commit without a transaction follows,
        so that an input without an offset has lost it (`streams.runtime.tasks.offset_proof`).
        """
        first, self.uncommitted_inputs = self.uncommitted_inputs, []
        if not self.stores.list_written_changelogs():
            return []
        encode = partial(
            encode_metadata,
            self.stores.committable_positions(),
            bytes_max=self._metadata_bytes_max,
            topic_ids=self.topic_ids,
            changelog_ids=self._changelog_ids,
            is_at_least_once=True,
        )
        texts = {p: encode(first_start=self.first_starts.get(p)) for p in first}
        return [(p, OffsetAndMetadata(self.positions[p], text)) for p, text in texts.items()]

    def commit_stores(self, now_ms: int) -> None:
        """Hand the stores' changes to their disks after Kafka has committed the transaction.

        `now_ms` is a wall-clock time at which nothing was in the changelogs above the stores'
        positions.
        """
        self.commit_sequence += 1
        self.committed_positions = dict(self.positions)
        self.stores.commit_changes(now_ms)
        self.commit_sequence, self.commit_pending_since_ms = self.commit_sequence + 1, None
        self.commit_needed = self.must_commit_positions = False
        self.steps.context.commit_requested = False
        if self.early_serialization.is_on:
            self.early_serialization.stop_when_quiet(now_ms)

    def pop_expired_records(self) -> list[ExpiredRecords]:
        """Return the changelog records that have expired by the last commit, by partition."""
        return self.stores.pop_expired_records(self.partitions)

    def _is_processing_record(self) -> bool:
        """Return whether a record is being processed."""
        steps = self._steps
        return steps is not None and steps.context.message is not None

    def _iterate_ttl_stores_with_time(self) -> Iterator[tuple[StepStreamTime, TtlStore[Any, Any]]]:
        """Yield each store whose values expire, with its committed stream time."""
        for name, store in self.stores.list_ttl_stores():
            yield self.steps.context.get_or_create_stream_time(name_ttl_stream_time(name)), store

    def _unbind_steps(self) -> None:
        """Drop the buffered records, and the bound steps with all that they hold."""
        self.buffer = None
        # The steps refer to the producer, which is freed when no task refers to it any more.
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.unbind_steps()
