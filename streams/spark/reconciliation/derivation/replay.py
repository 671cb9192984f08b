"""Replay the steps of a sub-topology on an executor, without a broker.

The product's own steps are bound to stores in memory and to a producer that only notes what it is
handed. `replay_each_record` runs steps that look at one record at a time; `replay_partitions` runs
a task for each partition, whose records come in the order of their offsets. What depends on the
wall clock is refused: it can't be run again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle

from state.keys import (
    SESSION_SUFFIX_BYTES,
    TIME_MAX,
    WINDOW_SUFFIX_BYTES,
    KeyBytes,
    StartMs,
    unpack_session,
    unpack_window,
)
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams.common.partitioning import partition_for_key
from streams.errors import ConfigError, StreamsError, UserError
from streams.graph.nodes import Binding, ForwardRecord, Operator, StoreKind, StoreSpec
from streams.graph.step_measurements import StepMeasurements
from streams.operators.sink import Serialize
from streams.runtime.clients import StreamsProducer
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.context import COMMIT_ORIGIN, PUNCTUATION_ORIGIN, TaskContext
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.store_opening import AnyStore, open_store
from streams.settings.exception_handlers import ExceptionHandlers
from streams.spark.reconciliation.derivation.replayed_lookups import (
    GlobalTableHistories,
    GlobalTableSource,
    ReplayedLookups,
)
from streams.spark.reconciliation.derivation.row_schemas import (
    OutputRow,
    ReplayedMessage,
    drain_into_batches,
    iterate_messages,
)
from streams.topology.build import Subtopology
from streams.topology.compile import compile_subtopology

EndMs: TypeAlias = int

STEP_PREFIX = "step:"
"""What a target is called that is a step and no topic: no topic may have a colon."""
STORE_PREFIX = "store:"
_COMMIT_RECORDS = 10_000
"""After so many records the results that wait for a commit are emitted, which frees memory."""


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """Represents the work that is sent to Spark's executors for a replay.

    `subtopology`: the steps; `reported_stores`: those whose rows are reported at the end;
    `partition_counts`: of the topics of which it matters where records go; `global_tables`: those
    that steps join with, by store.
    """

    subtopology: Subtopology
    handlers: ExceptionHandlers
    reported_stores: tuple[str, ...] = ()
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    global_tables: Mapping[str, GlobalTableSource] = field(default_factory=dict)


def create_capture_operator(
    step: str, serialize_key: Serialize, serialize_value: Serialize
) -> Operator:
    """Create an operator that captures, as bytes, the records that reach `step`.

    It takes the place of `step`. Records without a key are left out.
    """

    def bind_tap(at: Binding) -> ForwardRecord:
        produce, failed = at.context.produce, at.skip_record_or_raise
        target = STEP_PREFIX + step

        def send_to_target(record_key: Any, record_value: Any, timestamp_ms: int) -> None:
            if record_key is None:
                return
            try:
                encoded = serialize_key(record_key)
                carried = None if record_value is None else serialize_value(record_value)
            except Exception as error:
                failed(error, record_key, record_value)
                return
            produce(target, carried, encoded, -1, None, None, timestamp_ms, None)

        return send_to_target

    return bind_tap


def serialize_as_empty(value: Any) -> bytes:
    """Serialize any value as empty bytes, where only its presence counts."""
    return b""


def pickle_or_cloudpickle(value: Any) -> bytes:
    """Pickle a value that is sent from one executor to another."""
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:
        carried: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
        return carried  # pickle refuses classes of __main__


def replay_each_record(
    work: ReplayWork, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Replay steps that handle each record alone; yield the rows that they make."""
    task = ReplayedTask(work, partition=-1)
    for batch in batches:
        for message in iterate_messages(batch):
            task.process_message(message)
        yield from drain_into_batches(task.output_rows)
    task.commit_and_close_task()
    yield from drain_into_batches(task.output_rows)


def replay_partitions(
    work: ReplayWork, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Replay one task for each partition, one after the other; yield the rows that they make.

    The records of each partition come together and in order.
    """
    messages = (message for batch in batches for message in iterate_messages(batch))
    for partition, of_partition in groupby(messages, ReplayedMessage.partition):
        task = ReplayedTask(work, partition)
        for number, message in enumerate(of_partition, start=1):
            task.process_message(message)
            if number % _COMMIT_RECORDS == 0:
                task.commit_stores()
                yield from drain_into_batches(task.output_rows)
        task.commit_and_close_task()
        yield from drain_into_batches(task.output_rows)


def run_steps_without_records(replay_work: ReplayWork) -> None:
    """Run the steps without records on the driver, so that it reports errors. Raises UserError."""
    try:
        ReplayedTask(replay_work, partition=0).commit_and_close_task()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"its steps can't be run by themselves: {error!r}") from error


class ReplayedTask:
    """Runs one task without a broker and collects its results in `output_rows`.

    `lookups` answers what its steps ask global tables.
    """

    def __init__(
        self, work: ReplayWork, partition: int, lookups: ReplayedLookups | None = None
    ) -> None:
        self.partition = partition
        self.output_rows: list[OutputRow] = []
        self._numbers = count()
        self._reported_stores = work.reported_stores
        self._specs = {spec.name: spec for spec in work.subtopology.stores}
        self._stores = {spec.name: open_store(spec, MemoryDisk()) for spec in self._specs.values()}
        self._changelogs: dict[str, dict[bytes, tuple[bytes, int]]] = {n: {} for n in self._stores}
        self._positions = dict.fromkeys(self._stores, 0)
        failures = FailureHandler(
            work.handlers,
            counters=ThreadCounters(),
            monotonic_s=float,
            list_topics=_AllTopics,
            # The application has logged them: here nothing fails anew.
            logs_skipped=False,
        )
        self._context = _ReplayContext(
            f"{work.subtopology.number}_{partition}",
            _CapturingProducer(self._add_produced_record, work.partition_counts),
            self._stores,
            failures,
            stream_time_ms=-1,
            clocks=_NoClocks(),
        )
        self._context.lookups = lookups or ReplayedLookups(GlobalTableHistories(work.global_tables))
        self._receive = compile_subtopology(work.subtopology, self._context)

    def process_message(self, message: Any) -> None:
        """Process a record through the steps; errors that would end the application are raised."""
        context = self._context
        context.message = message
        self._receive[message.topic()](message)
        stream = context.punctuations.by_stream_time
        if stream and stream.follow_clock(context.stream_time_ms):
            context.message = None
            context.origin_without_record = PUNCTUATION_ORIGIN
            stream.call_due(context.stream_time_ms)

    def commit_stores(self) -> None:
        """Emit the results that wait for a commit, and apply the stores' writes to changelogs."""
        context = self._context
        context.message = None
        context.origin_without_record = COMMIT_ORIGIN
        for flush in reversed(context.commit_callbacks):
            flush()
        context.lookups.raise_if_unknown()
        for name, store in self._stores.items():
            self._update_changelog(name, store)

    def _update_changelog(self, name: str, store: AnyStore) -> None:
        """Apply a store's logged changes to its rows of the changelog, and commit the store."""
        log = self._changelogs[name]
        entries = store.drain_writes()
        for key, value, timestamp_ms in entries:
            if value is None:
                log.pop(key, None)
            else:
                log[key] = value, timestamp_ms
        self._positions[name] += len(entries)
        store.commit(StoreCheckpoint(self._positions[name], "replayed"))

    def commit_and_close_task(self) -> None:
        """Commit, add rows of the reported stores to `output_rows`, and close the steps."""
        self.commit_stores()
        for name in self._reported_stores:
            spec = self._specs[name]
            for key, (value, timestamp_ms) in self._changelogs[name].items():
                row = (*_split_windowed_key(key, spec), value, timestamp_ms)
                self._append_output_row(STORE_PREFIX + name, row, None, None)
        for close in self._context.close_callbacks:
            close()

    def _add_produced_record(
        self, topic: str, value: Any, key: Any, timestamp_ms: int, target_partition: int | None
    ) -> None:
        """Add a record that the steps have produced to a topic."""
        row = (_encode_if_text(key), None, None, _encode_if_text(value), timestamp_ms)
        self._append_output_row(topic, row, self._context.message, target_partition)

    def _append_output_row(
        self, target: str, row: tuple[Any, ...], message: Any, target_partition: int | None
    ) -> None:
        """Append a row for a target, with the position of the input record that caused it."""
        at = (None, self.partition, -1)
        if message is not None and message.topic() is not None:
            at = (message.topic(), message.partition(), message.offset())
        self.output_rows.append((target, *row, *at, next(self._numbers), target_partition))


def _split_windowed_key(
    key: bytes, spec: StoreSpec
) -> tuple[KeyBytes, StartMs | None, EndMs | None]:
    """Split a changelog's key into key, window start and window end."""
    if spec.kind is StoreKind.WINDOW:
        start_ms, _ = unpack_window(key[-WINDOW_SUFFIX_BYTES:])
        end_ms = min(start_ms + (spec.window_size_ms or 0), TIME_MAX)
        return key[:-WINDOW_SUFFIX_BYTES], start_ms, end_ms
    if spec.kind is StoreKind.SESSION:
        end_ms, start_ms = unpack_session(key[-SESSION_SUFFIX_BYTES:])
        return key[:-SESSION_SUFFIX_BYTES], start_ms, end_ms
    return key, None, None


def _encode_if_text(data: Any) -> bytes | None:
    """Encode text as bytes; return bytes and None as they are."""
    return data.encode() if isinstance(data, str) else data


class _NoClocks:
    """Implements `streams.common.host.Clocks` by StreamsError: no step may need a clock."""

    def monotonic_s(self) -> float:
        raise StreamsError("a step looks at a clock: what it does can't be done again")

    def now_ms(self) -> int:
        raise StreamsError("a step looks at the wall clock: what it does can't be done again")


class _ReplayContext(TaskContext):
    """Provides a task's context in which nothing depends on a clock, or on another thread."""

    __slots__ = ("lookups",)

    lookups: ReplayedLookups

    def get_or_create_step_measurements(self, step: str) -> StepMeasurements:
        """Return what takes the measurements of a step, which nobody reads: its clock stands."""
        return StepMeasurements(lambda: 0, lambda: 0.0)

    def find_global_store(self, name: str, step: str | None = None) -> Any | None:
        """Return the global table's store for a step; None for the name of a task's own store.

        Raises ConfigError where a processor reads a global table by itself.
        """
        if step is not None:
            return self.lookups.open_store(name, step)
        if name in self._stores:
            return None
        error = ConfigError(
            f"a processor reads the global table {name!r} by itself: what it found is not known"
        )
        self.lookups.note_unknown_row(error)
        raise error

    def schedule_punctuation(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        """Schedule a punctuation by stream time. Raises StreamsError for the wall clock."""
        if clock == "wall":
            raise StreamsError(
                "it punctuates by the wall clock: what it does then can't be done again"
            )
        return super().schedule_punctuation(interval_ms, callback, clock)


class _CapturingProducer(StreamsProducer):
    """Captures the records that steps produce, and writes nothing.

    It has the methods of a producer, and uses nothing of its base class.
    """

    def __init__(
        self,
        on_record: Callable[[str, Any, Any, int, int | None], None],
        partition_counts: Mapping[str, int],
    ) -> None:
        self._partition_counts = partition_counts

        def capture_record(
            topic: str,
            value: Any = None,
            key: Any = None,
            partition: int = -1,
            callback: Any = None,
            on_delivery: Any = None,
            timestamp_ms: int = 0,
            headers: Any = None,
        ) -> None:
            count = partition_counts.get(topic)
            to = partition if partition >= 0 else None
            if to is None and count is not None and key is not None:
                to = partition_for_key(key, count)
            on_record(topic, value, key, timestamp_ms, to)

        self.produce = capture_record

    def wait_for_queue_room(self) -> None:
        """Return without waiting, since there is always room."""

    def find_transaction_error(self) -> Exception | None:
        """Return None: nothing is written in transactions."""

    def fetch_partition_count(self, topic: str) -> int:
        """Return a topic's number of partitions, or 1 where it makes no difference."""
        return self._partition_counts.get(topic, 1)


class _AllTopics(frozenset[str]):
    """Represents the set of all topic names, which contains every name."""

    def __contains__(self, name: object) -> bool:
        return True
