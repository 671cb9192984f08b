"""Provide bound steps with what they use of their task: record, stores, producer and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from state.errors import EarlierWriteRefused, StoreCorrupted
from state.replica import TopicReplica
from state.store import StateStore
from streams.common.host import Clocks
from streams.errors import (
    OutcomeUnknown,
    SerdeError,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    ValueRefused,
    WriteRefused,
)
from streams.graph.internal_context import StepStreamTime, TaskObserver
from streams.graph.step_measurements import StepMeasurements
from streams.processor.global_store import ReadOnlyGlobalStore
from streams.runtime.clients.errors import RecordRefused
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.clients.refused_writes import RefusedWrites
from streams.runtime.tasks.early_serialization import EarlySerialization
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.global_lookups import GlobalLookups
from streams.runtime.tasks.punctuation import TaskPunctuations
from streams.runtime.tasks.recovery_errors import RECOVERY_ERRORS
from streams.settings.exception_handlers import Stage

COMMIT_ORIGIN = "the results of a commit"
PUNCTUATION_ORIGIN = "a punctuation"


class DroppedCounts(NamedTuple):
    """Counts dropped records, and those of them that were late."""

    dropped: int
    late: int


class TaskContext:
    """Gives the bound steps of one task its current record, stores, producer and clocks.

    `stores` are by name; `clocks` are the machine's. It implements
    `streams.graph.internal_context.InternalProcessorContext`, which describes the methods.
    """

    __slots__ = (
        "_early_serialization",
        "_failures",
        "_fetch_partition_count",
        "_find_transaction_error",
        "_global_lookups",
        "_global_replicas",
        "_global_stores",
        "_partition_counts",
        "_stores",
        "close_callbacks",
        "commit_callbacks",
        "commit_requested",
        "dropped_count",
        "fatal_error",
        "late_count",
        "message",
        "monotonic_s",
        "now_ms",
        "observer",
        "origin_without_record",
        "produce",
        "punctuations",
        "record_timestamp_ms",
        "shared_by_steps",
        "start_callbacks",
        "step_measurements",
        "step_times",
        "store_source_topics",
        "stream_time_ms",
        "task_name",
        "uncommitted_results",
        "value_previews",
        "wait_for_queue_room",
    )

    def __init__(
        self,
        task_name: str,
        producer: ProducerClient,
        stores: Mapping[str, StateStore],
        failures: FailureHandler,
        *,
        stream_time_ms: int,
        clocks: Clocks,
        observer: TaskObserver | None = None,
        global_replicas: Mapping[str, TopicReplica] | None = None,
        step_times_ms: Mapping[str, int] | None = None,
        early_serialization: EarlySerialization | None = None,
        store_source_topics: Mapping[str, str] = MappingProxyType({}),
        refused_writes: RefusedWrites | None = None,
        notes_lookups: bool = False,
        step_measurements: dict[str, StepMeasurements] | None = None,
    ) -> None:
        self.task_name = task_name
        self.store_source_topics = store_source_topics
        self._find_transaction_error = producer.find_transaction_error
        self.wait_for_queue_room = producer.wait_for_queue_room
        self._fetch_partition_count = producer.fetch_partition_count
        self._partition_counts: dict[str, int] = {}
        self.message: Any = None
        self.origin_without_record = COMMIT_ORIGIN
        """The origin that errors name while there is no message."""
        self.record_timestamp_ms = -1
        self.stream_time_ms = stream_time_ms
        self.commit_requested = False
        self.dropped_count = 0
        """The number of records dropped since it was last taken."""
        self.late_count = 0
        """The number of dropped records that came after their window had closed."""
        self.step_times = {step: StepStreamTime(ms) for step, ms in (step_times_ms or {}).items()}
        self.step_measurements = {} if step_measurements is None else step_measurements
        self.fatal_error: Exception | None = None
        """The error that ends the transaction, though a user's function may have caught it: nothing
        that was done since may be committed."""
        self.monotonic_s = clocks.monotonic_s
        self.now_ms = clocks.now_ms
        self.observer = observer
        self.shared_by_steps: dict[str, Any] = {}
        self.value_previews: dict[str, Callable[[set[bytes]], None]] = {}
        self.punctuations = TaskPunctuations(clocks.now_ms)
        self.commit_callbacks: list[Callable[[], None]] = []
        self.uncommitted_results: dict[str, dict[Any, Any]] = {}
        self.start_callbacks: list[Callable[[], None]] = []
        self.close_callbacks: list[Callable[[], None]] = []
        self._stores = stores
        self._global_replicas = global_replicas or {}
        self._global_stores: dict[str, Any] = {}
        self._global_lookups = GlobalLookups() if notes_lookups else None
        self._failures = failures
        self._early_serialization = early_serialization
        self.produce = (
            producer.produce
            if refused_writes is None
            else refused_writes.wrap_produce_if_searching(self, producer)
        )
        for store in stores.values():
            store.clock = self.timestamp_ms

    def timestamp_ms(self) -> int:
        """Return the timestamp of the record being processed, in ms since 1970."""
        return self.record_timestamp_ms

    @property
    def fails_production(self) -> bool:
        """Return whether a record that can't be written ends the thread, whichever it is."""
        return self._failures.fails_production

    @property
    def skips_processing(self) -> bool:
        return self._failures.skips_processing

    def skip_record_or_raise(
        self,
        stage: Stage,
        step: str,
        error: Exception,
        refusal: StreamsError | None = None,
        *,
        key: Any = None,
        value: Any = None,
        target_topic: str | None = None,
    ) -> None:
        if isinstance(error, EarlierWriteRefused):
            self.start_refused_value_search(error)
        elif stage is Stage.PRODUCTION and isinstance(refusal, SerdeError):
            self.start_refused_value_search(refusal)
        if (
            stage is Stage.PRODUCTION
            and refusal is None
            and not isinstance(error, (*RECOVERY_ERRORS, RecordRefused))
            and (failed := self._find_transaction_error()) is not None
        ):
            error = failed  # `produce` only says that the transaction has failed
        try:
            self._failures.skip_record_or_raise(
                self, stage, step, error, refusal, key=key, value=value, target_topic=target_topic
            )
        except (
            TaskMigrated,
            TaskCorrupted,
            OutcomeUnknown,
            WriteRefused,
            StoreCorrupted,
        ) as lost:
            self.fatal_error = lost
            raise

    def start_refused_value_search(self, error: Exception) -> None:
        """Raise ValueRefused to repeat the transaction, unless values are serialized early already.

        The repeated transaction finds the record at fault, which may be an earlier one than the
        record being processed. If the stores serialize early already, the refusal is only noted.
        """
        early = self._early_serialization
        if early is None:
            return
        if early.is_on:
            early.note_refusal()
            return
        self.fatal_error = ValueRefused(self.task_name, str(error))
        raise self.fatal_error from error

    def get_read_partition_count(self, topic: str) -> int | None:
        return self._failures.get_read_partition_count(topic, self._fetch_partition_count)

    def partition_count(self, topic: str) -> int:
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = self._fetch_partition_count(topic)
        return count

    def require_chosen_topic_exists(self, topic: str) -> None:
        self._failures.require_chosen_topic_exists(topic, self._fetch_partition_count)

    def refuse_topic_for_a_while(self, topic: str, reason: str) -> None:
        self._failures.refuse_topic_for_a_while(topic, reason)

    def get_store(self, name: str) -> Any:
        return self._stores[name]

    def find_global_store(self, name: str, step: str | None = None) -> Any | None:
        if name not in self._global_replicas:
            return None
        replica = self._global_replicas[name]
        if step is not None and self._global_lookups is not None:
            return self._global_lookups.open_store(replica, step)
        if name not in self._global_stores:
            self._global_stores[name] = ReadOnlyGlobalStore(name, replica.open_view())
        return self._global_stores[name]

    def pop_lookup_states(self) -> dict[str, str]:
        """Return the states in which steps found global tables since the last call, by step.

        They are encoded as in the ledger; none without one.
        """
        return {} if self._global_lookups is None else self._global_lookups.pop_encoded_states()

    def get_or_create_stream_time(self, step: str) -> StepStreamTime:
        return self.step_times.setdefault(step, StepStreamTime())

    def get_or_create_step_measurements(self, step: str) -> StepMeasurements:
        measured = self.step_measurements.get(step)
        if measured is None:
            measured = StepMeasurements(self.now_ms, self.monotonic_s)
            self.step_measurements[step] = measured
        return measured

    def schedule_punctuation(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        return self.punctuations.schedule_callback(interval_ms, callback, clock)

    def request_commit(self) -> None:
        self.commit_requested = True

    def pop_dropped_counts(self) -> DroppedCounts:
        """Return the numbers of dropped and of late records since the last call, and reset them."""
        counted = DroppedCounts(self.dropped_count, self.late_count)
        self.dropped_count = self.late_count = 0
        return counted

    def describe_record_origin(self) -> str:
        message = self.message
        if message is None or message.topic() is None:
            return self.origin_without_record
        return f"{message.topic()}[{message.partition()}]@{message.offset()}"
