"""Provide bound steps with what they use of their task: record, stores, producer and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.errors import Corrupt, RefusedLate
from state.store import StateStore
from streams.errors import (
    OutcomeUnknown,
    SerdeError,
    StreamsError,
    TaskCorrupted,
    TaskMigrated,
    ValueRefused,
)
from streams.handling import Stage
from streams.runtime.early import EarlySerialization
from streams.runtime.failures import Failures
from streams.runtime.globals import ReadOnly
from streams.runtime.interfaces import ProducerClient
from streams.runtime.punctuation import Punctuations
from streams.topology.nodes import StepTime, Watch

COMMIT = "the results of a commit"
PUNCTUATION = "a punctuation"


class TaskContext:
    """Gives the bound steps of one task its current record, stores, producer and clocks.

    `stores` are by name; `now_ms` is the wall clock. It implements
    `streams.topology.nodes.InternalProcessorContext`, which describes the methods.
    """

    __slots__ = (
        "_early",
        "_failures",
        "_global_views",
        "_globals",
        "_partition_count",
        "_partition_counts",
        "_stores",
        "between",
        "closers",
        "commit_asked",
        "dropped",
        "flushers",
        "held",
        "late",
        "make_room",
        "message",
        "now_ms",
        "produce",
        "punctuations",
        "record_ms",
        "shared",
        "starters",
        "step_times",
        "stream_time_ms",
        "task_name",
        "unheard",
        "watch",
    )

    def __init__(
        self,
        task_name: str,
        producer: ProducerClient,
        stores: Mapping[str, StateStore],
        failures: Failures,
        *,
        stream_time_ms: int,
        now_ms: Callable[[], int],
        watch: Watch | None = None,
        global_views: Mapping[str, Callable[[], Any]] | None = None,
        step_times: Mapping[str, int] | None = None,
        early: EarlySerialization | None = None,
    ) -> None:
        self.task_name = task_name
        self.produce = producer.produce
        self.make_room = producer.make_room
        self._partition_count = producer.partition_count
        self._partition_counts: dict[str, int] = {}
        self.message: Any = None
        self.between = COMMIT
        """The origin that errors name while there is no message."""
        self.record_ms = -1
        self.stream_time_ms = stream_time_ms
        self.commit_asked = False
        self.dropped = 0
        """The number of records dropped since it was last taken."""
        self.late = 0
        """The number of dropped records that came after their window had closed."""
        self.step_times = {step: StepTime(ms) for step, ms in (step_times or {}).items()}
        self.unheard: Exception | None = None
        """The error that ends the transaction, though a user's function may have caught it: nothing
        that was done since may be committed."""
        self.now_ms = now_ms
        self.watch = watch
        self.shared: dict[str, Any] = {}
        self.punctuations = Punctuations(now_ms)
        self.flushers: list[Callable[[], None]] = []
        self.held: dict[str, dict[Any, Any]] = {}
        self.starters: list[Callable[[], None]] = []
        self.closers: list[Callable[[], None]] = []
        self._stores = stores
        self._global_views = global_views or {}
        self._globals: dict[str, Any] = {}
        self._failures = failures
        self._early = early
        for store in stores.values():
            store.clock = self.timestamp_ms

    def timestamp_ms(self) -> int:
        """Return the timestamp of the record being processed, in ms since 1970."""
        return self.record_ms

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
        if isinstance(error, RefusedLate):
            self.find_refused_value(error)
        elif stage is Stage.PRODUCTION and isinstance(refusal, SerdeError):
            self.find_refused_value(refusal)
        try:
            self._failures.failed(
                self, stage, step, error, refusal, key=key, value=value, target=target
            )
        except (TaskMigrated, TaskCorrupted, OutcomeUnknown, Corrupt) as lost:
            self.unheard = lost
            raise

    def find_refused_value(self, error: Exception) -> None:
        """Raise ValueRefused, so that the transaction is repeated to find the refused record.

        The value may be a store's, and may have been written by an earlier record. If the stores
        serialize early already, the refusal is only noted.
        """
        early = self._early
        if early is None:
            return
        if early.is_on:
            early.note_refusal()
            return
        self.unheard = ValueRefused(self.task_name, str(error))
        raise self.unheard from error

    def partition_count(self, topic: str) -> int:
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = self._partition_count(topic)
        return count

    def store(self, name: str) -> Any:
        return self._stores[name]

    def global_store(self, name: str) -> Any | None:
        if name not in self._globals and name in self._global_views:
            self._globals[name] = ReadOnly(name, self._global_views[name]())
        return self._globals.get(name)

    def step_time(self, step: str) -> StepTime:
        return self.step_times.setdefault(step, StepTime())

    def schedule(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        return self.punctuations.schedule(interval_ms, callback, clock)

    def commit(self) -> None:
        self.commit_asked = True

    def take_dropped(self) -> tuple[int, int]:
        """Return how many records were dropped, and how many of these were late, and reset both."""
        counted = self.dropped, self.late
        self.dropped = self.late = 0
        return counted

    def origin(self) -> str:
        message = self.message
        if message is None or message.topic() is None:
            return self.between
        return f"{message.topic()}[{message.partition()}]@{message.offset()}"
