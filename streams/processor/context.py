"""Let a processor forward records, use stores, schedule calls and request commits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from state.shown_values import quote_value
from streams.common.call_hints import explain_call
from streams.common.durations import Duration, duration_to_ms
from streams.errors import StreamsError
from streams.graph.nodes import Binding, ForwardRecord
from streams.processor.read_only_table_store import ReadOnlyTableStore
from streams.processor.record import Headers, MessageWithHeaders, Record

K2 = TypeVar("K2", default=Any)
V2 = TypeVar("V2", default=Any)

_NO_KEY: Any = object()
_KAFKA_STREAMS_NAMES = {
    "getStateStore": "store(name)",
    "get_state_store": "store(name)",
    "taskId": "task_id",
    "recordMetadata": "record_metadata",
    "currentStreamTimeMs": "stream_time_ms",
    "current_stream_time_ms": "stream_time_ms",
    "currentSystemTimeMs": "system_time_ms",
    "current_system_time_ms": "system_time_ms",
    "timestamp": "timestamp_ms of the record",
    "headers": "headers of the record",
    **dict.fromkeys(
        ("appConfigs", "app_configs", "appConfigsWithPrefix", "app_configs_with_prefix"),
        "app.config, of the App",
    ),
    **dict.fromkeys(("applicationId", "application_id"), "app.application_id, of the App"),
    **dict.fromkeys(("stateDir", "state_dir"), "app.config.state_dir, of the App"),
    **dict.fromkeys(
        ("keySerde", "key_serde", "valueSerde", "value_serde"),
        "the serdes of steps and stores: there are no default ones",
    ),
    "metrics": "running.metrics() and metrics_port; figures of one's own are prometheus-client's",
}
"""What replaces the methods of Kafka Streams' ProcessorContext, in Java's and Python's spelling."""


def parse_schedule_interval_ms(interval: Duration, clock: str) -> int:
    """Return the interval of a schedule in ms. Raises ValueError for what can't be scheduled."""
    interval_ms = duration_to_ms(interval, "interval")
    if interval_ms < 1:
        raise ValueError("interval must be at least 1 ms")
    if clock not in ("stream", "wall"):
        raise ValueError(f"clock={clock!r} is neither 'stream' nor 'wall'")
    return interval_ms


class RecordMetadata(NamedTuple):
    """Identifies the record being processed by its topic, partition and offset."""

    topic: str
    partition: int
    offset: int


class RecordContext(NamedTuple):
    """Describes the record being processed, without its key and its value.

    Its counterpart is Kafka Streams' `processor.RecordContext`.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    headers: Headers


class ProcessorContext(Generic[K2, V2]):
    """Gives one processor access to its task (Kafka Streams' ProcessorContext)."""

    def __init__(self, binding: Binding, store_names: Collection[str]) -> None:
        self._at = binding
        self._task = binding.context
        self._stores = store_names
        self._downstream = binding.downstream

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what to call instead of `name`."""
            instead = _KAFKA_STREAMS_NAMES.get(name)
            hint = f": here it is {instead}" if instead else ""
            raise AttributeError(f"a ProcessorContext has no {name!r}{hint}")

    def forward(self, record: Record[K2, V2], to: str | None = None) -> None:
        """Forward a record to all steps after this one, or to the step named `to`."""
        if not isinstance(record, Record):
            raise TypeError(
                f"forward takes a Record, as record.with_value(...) makes one, not "
                f"{quote_value(record)}"
            )
        emit = self._downstream if to is None else self._require_child(to)
        task = self._task
        message = task.message
        time_ms = task.record_timestamp_ms
        try:
            if record.own_headers is not None or record.source_message is not message:
                task.message = MessageWithHeaders(message, record.headers)
            emit(record.key, record.value, record.timestamp_ms)
        finally:
            task.message = message
            task.record_timestamp_ms = time_ms

    def store(self, name: str) -> Any:
        """Return the store of that name, which `stores` must name, or the one of a global table.

        A global table's store is to be read only, and so is the store of a table that its own topic
        restores (`reuse.ktable.source.topics`). Raises StreamsError for any other name.
        """
        if (copy := self._task.find_global_store(name)) is not None:
            return copy
        if name not in self._stores:
            raise StreamsError(
                f"step {self._at.step!r} has no store {name!r}: name it in the processor's stores, "
                f"which are now {sorted(self._stores)}"
            )
        store = self._task.get_store(name)
        topic = self._task.store_source_topics.get(name)
        if topic is None:
            return store
        return ReadOnlyTableStore(store, step=self._at.step, name=name, topic=topic)

    @explain_call
    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        clock: Literal["stream", "wall"] = "stream",
    ) -> Callable[[], None]:
        """Call `callback` with the time in ms each `interval` of stream time or of wall-clock time.

        Stream time advances with the records: without records it stands still. Returns a function
        that cancels the schedule. Raises ValueError for an interval below 1 ms or another clock.
        """
        interval_ms = parse_schedule_interval_ms(interval, clock)
        task = self._task
        failed = self._at.skip_record_or_raise

        def run_punctuation(now_ms: int) -> None:
            task.record_timestamp_ms = now_ms
            try:
                callback(now_ms)
            except Exception as error:
                failed(error, None, None)

        return task.schedule_punctuation(interval_ms, run_punctuation, clock)

    def commit(self) -> None:
        """Request a commit soon: when the record being processed is done."""
        self._task.request_commit()

    @property
    def task_id(self) -> str:
        """Return the task's name: `<sub-topology>_<partition>`."""
        return self._task.task_name

    @property
    def stream_time_ms(self) -> int:
        """Return the largest timestamp of the task's records so far; -1 before the first."""
        return self._task.stream_time_ms

    @property
    def system_time_ms(self) -> int:
        """Return the wall-clock time in ms since 1970 (`currentSystemTimeMs`).

        In a test driver it is the driver's clock.
        """
        return self._task.now_ms()

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the record being processed, or None without one.

        There is none in `init`, in punctuations, and for results that a commit emits.
        """
        message = self._task.message
        if message is None or message.topic() is None:
            return None
        return RecordMetadata(message.topic(), message.partition(), message.offset())

    @property
    def record_context(self) -> RecordContext | None:
        """Return the origin, timestamp and headers of the record being processed, or None.

        Timestamp and headers are as the processor was handed them: those that an earlier processor
        gave the record are included.
        """
        if (read := self.record_metadata) is None:
            return None
        task = self._task
        return RecordContext(*read, task.record_timestamp_ms, tuple(task.message.headers() or ()))

    def _require_child(self, name: str) -> ForwardRecord:
        try:
            return self._at.children[name]
        except KeyError:
            raise StreamsError(
                f"step {self._at.step!r} can't forward to {name!r}: the steps after it are "
                f"{sorted(self._at.children)}"
            ) from None


class FixedKeyContext(ProcessorContext[K2, V2]):
    """Refuses to forward another key than that of the record: for `process_values`."""

    key: Any = _NO_KEY
    """The key of the record being processed."""
    refusal_of_other_keys = "process_values can't change the key, process can"
    """What to say of a record with another key."""

    @explain_call
    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        clock: Literal["stream", "wall"] = "stream",
    ) -> Callable[[], None]:
        """Schedule `callback` as ProcessorContext does; it may forward records with any key."""

        def run_without_record(now_ms: int) -> None:
            self.key = _NO_KEY
            callback(now_ms)

        return super().schedule(interval, run_without_record, clock=clock)

    def forward(self, record: Record[K2, V2], to: str | None = None) -> None:
        """Forward a record with the key of the record being processed, or raise StreamsError."""
        key = self.key
        has_record = key is not _NO_KEY and isinstance(record, Record)
        if has_record and record.key is not key and record.key != key:
            raise StreamsError(
                f"step {self._at.step!r} forwards the key {quote_value(record.key)} for a record "
                f"with the key {quote_value(key)}: {self.refusal_of_other_keys}"
            )
        super().forward(record, to)
