"""What a processor may do: forward, use its stores, schedule punctuations, ask for a commit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from streams.durations import Duration, duration_ms
from streams.errors import StreamsError
from streams.processor.record import Headers, Record, Rewritten
from streams.topology.nodes import Binding, Emit

K2 = TypeVar("K2", default=Any)
V2 = TypeVar("V2", default=Any)

_NO_RECORD: Any = object()


class RecordMetadata(NamedTuple):
    """Where the record being processed was read."""

    topic: str
    partition: int
    offset: int


class RecordContext(NamedTuple):
    """What there is to know of the record being processed, but for its key and its value."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    headers: Headers


class ProcessorContext(Generic[K2, V2]):
    """The task as one processor sees it."""

    def __init__(self, at: Binding, stores: Collection[str]) -> None:
        self._at = at
        self._task = at.context
        self._stores = stores
        self._downstream = at.downstream

    def forward(self, record: Record[K2, V2], to: str | None = None) -> None:
        """Hand a record to all that comes after this step, or to the next step named `to`."""
        if not isinstance(record, Record):
            raise TypeError(
                f"forward takes a Record, as record.with_value(...) makes one, not {record!r:.200}"
            )
        emit = self._downstream if to is None else self._child(to)
        task = self._task
        message = task.message
        time_ms = task.record_ms
        try:
            if record.own_headers is not None or record.source is not message:
                task.message = Rewritten(message, record.headers)
            emit(record.key, record.value, record.timestamp_ms)
        finally:
            task.message = message
            task.record_ms = time_ms

    def store(self, name: str) -> Any:
        """A store that this processor names in `stores`, or any global table, to read. Raises
        StreamsError for any other."""
        if (copy := self._task.global_store(name)) is not None:
            return copy
        if name not in self._stores:
            raise StreamsError(
                f"step {self._at.step!r} has no store {name!r}: name it in the processor's stores, "
                f"which are now {sorted(self._stores)}"
            )
        return self._task.store(name)

    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        clock: Literal["stream", "wall"] = "stream",
    ) -> Callable[[], None]:
        """Call `callback` with the time in ms each `interval` of stream time or of wall-clock time.

        Stream time moves with the records: without records it stands still. Returns a function that
        ends it. Raises ValueError for an interval below 1 ms or another clock.
        """
        interval_ms = duration_ms(interval, "interval")
        if interval_ms < 1:
            raise ValueError("interval must be at least 1 ms")
        if clock not in ("stream", "wall"):
            raise ValueError(f"clock={clock!r} is neither 'stream' nor 'wall'")
        task = self._task

        failed = self._at.failed

        def punctuate(now_ms: int) -> None:
            task.record_ms = now_ms
            try:
                callback(now_ms)
            except Exception as error:
                failed(error, None, None)

        return task.schedule(interval_ms, punctuate, clock)

    def commit(self) -> None:
        """Ask for a commit soon: when the record being processed is done."""
        self._task.commit()

    @property
    def task_id(self) -> str:
        """The task's name: `<sub-topology>_<partition>`."""
        return self._task.task_name

    @property
    def stream_time_ms(self) -> int:
        """The largest timestamp of the task's records so far; -1 before the first."""
        return self._task.stream_time_ms

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the record being processed was read; None in `init`, in punctuations, and for what
        a commit brings."""
        message = self._task.message
        if message is None or message.topic() is None:
            return None
        return RecordMetadata(message.topic(), message.partition(), message.offset())

    @property
    def record_context(self) -> RecordContext | None:
        """`record_metadata` with the record's timestamp and headers: as the processor was handed
        them, a timestamp or headers that a processor before it gave included."""
        if (read := self.record_metadata) is None:
            return None
        task = self._task
        return RecordContext(*read, task.record_ms, tuple(task.message.headers() or ()))

    def _child(self, name: str) -> Emit:
        try:
            return self._at.children[name]
        except KeyError:
            raise StreamsError(
                f"step {self._at.step!r} can't forward to {name!r}: the steps after it are "
                f"{sorted(self._at.children)}"
            ) from None


class FixedKeyContext(ProcessorContext[K2, V2]):
    """Refuses to forward another key than the record's: for `process_values`."""

    key: Any = _NO_RECORD
    """Of the record being processed."""

    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        clock: Literal["stream", "wall"] = "stream",
    ) -> Callable[[], None]:
        """As any processor's. What the callback forwards has the keys that it chooses."""

        def between_records(now_ms: int) -> None:
            self.key = _NO_RECORD
            callback(now_ms)

        return super().schedule(interval, between_records, clock=clock)

    def forward(self, record: Record[K2, V2], to: str | None = None) -> None:
        key = self.key
        known = key is not _NO_RECORD and isinstance(record, Record)
        if known and record.key is not key and record.key != key:
            raise StreamsError(
                f"step {self._at.step!r} forwards the key {record.key!r:.200} for a record with "
                f"the key {key!r:.200}: process_values can't change the key, process can"
            )
        super().forward(record, to)
