"""Bind a sub-topology into a task without a broker.

Messages are piped in, and the records that the steps produce are kept for the test to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from state.cache import ObjectCache
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import App, StreamsError
from streams.common.topic_partitions import Partition
from streams.errors import UnknownTopic
from streams.graph.internal_context import StepStreamTime, TaskObserver
from streams.graph.step_measurements import StepMeasurements
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.failures import FailureHandler
from streams.runtime.tasks.store_opening import open_store
from streams.settings.exception_handlers import ExceptionHandler, ExceptionHandlers, Stage
from streams.testing.cluster import Message
from streams.topology.compile import compile_subtopology

_TRACED = (("trace", b"1"),)


class BoundTask:
    """Stands in for a task's context: it keeps the produced records and can have a full queue."""

    def __init__(
        self,
        app: App,
        number: int = 0,
        *,
        stores: Mapping[str, Any] | None = None,
        **handlers: ExceptionHandler,
    ) -> None:
        self.counters = ThreadCounters()
        self.clock_s = 0.0
        self.failures = FailureHandler(
            ExceptionHandlers(**handlers),
            counters=self.counters,
            monotonic_s=lambda: self.clock_s,
            list_topics=lambda: self.topics,
        )
        self.topics = {"dead"}
        """Topics that exist beside those of the application."""
        self.refused: dict[str, Exception] = {}
        """The error that producing to a topic raises."""
        self.missing: set[str] = set()
        """The topics that do not exist."""
        self.looked_up: list[str] = []
        """The topics that were looked up and found."""
        self.produced: list[tuple[Any, ...]] = []
        self.globals: dict[str, Any] = {}
        self.partitions: dict[str, int] = {}
        self.read_partitions: dict[str, int] = {}
        """The number of partitions of each topic."""
        self.chosen: list[int] = []
        """The partition of each produced record; -1 leaves the choice to the producer."""
        self.measured: dict[str, StepMeasurements] = {}
        self.message: Any = None
        self.commit_callbacks: list[Callable[[], None]] = []
        self.uncommitted_results: dict[str, dict[Any, Any]] = {}
        self.start_callbacks: list[Callable[[], None]] = []
        self.close_callbacks: list[Callable[[], None]] = []
        self.task_name = f"{number}_0"
        self.stream_time_ms = -1
        self.dropped_count = 0
        self.late_count = 0
        self.step_times: dict[str, StepStreamTime] = {}
        self.elapsed_s = 0.0
        self.shared_by_steps: dict[str, Any] = {}
        self.value_previews: dict[str, Callable[[set[bytes]], None]] = {}
        self.observer: TaskObserver | None = None
        self.record_timestamp_ms = -1
        self.store_source_topics: Mapping[str, str] = {}
        self.scheduled: list[tuple[int, str, Callable[[int], None]]] = []
        self.commits_asked = 0
        self.full_queue_count = 0
        self.made_room = 0
        subtopology = app.topology().subtopologies[number]
        self.stores: dict[str, Any] = dict(stores or {}) or {
            spec.name: open_store(
                spec, MemoryDisk(), cache=ObjectCache(0), clock=lambda: self.record_timestamp_ms
            )
            for spec in subtopology.stores
        }
        """The argument `stores` passes on those of an earlier task."""
        self._receivers = compile_subtopology(subtopology, self)

    def get_or_create_step_measurements(self, step: str) -> StepMeasurements:
        return self.measured.setdefault(step, StepMeasurements(lambda: 0, lambda: self.clock_s))

    def produce(self, topic: str, value: Any, key: Any, partition: int, *rest: Any) -> None:
        if self.full_queue_count:
            self.full_queue_count -= 1
            raise BufferError
        if topic in self.refused:
            raise self.refused[topic]
        _, _, timestamp_ms, headers = rest
        self.produced.append((topic, key, value, timestamp_ms, headers))
        self.chosen.append(partition)

    def partition_count(self, topic: str) -> int:
        return self.partitions[topic]

    def get_read_partition_count(self, topic: str) -> int | None:
        return self.read_partitions.get(topic)

    def refuse_topic_for_a_while(self, topic: str, reason: str) -> None:
        self.missing.add(topic)

    def require_chosen_topic_exists(self, topic: str) -> None:
        if topic in self.missing:
            raise UnknownTopic(f"topic {topic!r} does not exist")
        self.looked_up.append(topic)

    def wait_for_queue_room(self) -> None:
        self.made_room += 1

    def schedule_punctuation(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        entry = (interval_ms, clock, callback)
        self.scheduled.append(entry)
        return lambda: self.scheduled.remove(entry)

    def monotonic_s(self) -> float:
        return self.elapsed_s

    def now_ms(self) -> int:
        return int(self.elapsed_s * 1_000)

    @property
    def skips_processing(self) -> bool:
        return self.failures.skips_processing

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
        self.failures.skip_record_or_raise(
            self, stage, step, error, refusal, key=key, value=value, target_topic=target_topic
        )

    def request_commit(self) -> None:
        self.commits_asked += 1

    def get_store(self, name: str) -> Any:
        return self.stores[name]

    def find_global_store(self, name: str, step: str | None = None) -> Any | None:
        return self.globals.get(name)

    def get_or_create_stream_time(self, step: str) -> StepStreamTime:
        return self.step_times.setdefault(step, StepStreamTime())

    def describe_record_origin(self) -> str:
        return "in[0]@7"

    def pipe(
        self,
        key: str | bytes | None,
        value: str | bytes | None,
        timestamp_ms: int = 0,
        *,
        topic: str | None = None,
        headers: Sequence[tuple[str, bytes]] = _TRACED,
    ) -> None:
        """Pipe a record into `topic`, or into the only source topic if none is given."""
        name = topic or next(iter(self._receivers))
        encoded = [each.encode() if isinstance(each, str) else each for each in (key, value)]
        at = Partition(name, 0)
        self.message = Message(at, 7, encoded[0], encoded[1], timestamp_ms, headers)
        self._receivers[name](self.message)
        self.message = None

    def commit_stores(self) -> None:
        """Drain and commit every store, as the runtime does when Kafka has committed."""
        for store in self.stores.values():
            store.drain_writes()
            store.commit(StoreCheckpoint(0, "id"))

    def close(self) -> None:
        for close in self.close_callbacks:
            close()

    def punctuate(self, now_ms: int) -> None:
        """Call every scheduled punctuation as if it were due at `now_ms`."""
        for _, _, callback in list(self.scheduled):
            callback(now_ms)

    def flush(self) -> None:
        self.message = None
        for flush in reversed(self.commit_callbacks):
            flush()

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        return [(key, value) for _, key, value, _, _ in self.produced]
