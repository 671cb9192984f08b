"""Define what a bound step may ask of the task that it runs in.

`streams.runtime.tasks.context` implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from streams.errors import StreamsError
from streams.graph.step_measurements import StepMeasurements
from streams.settings.exception_handlers import Stage


@dataclass(slots=True)
class StepStreamTime:
    """Holds the stream time of one step: the largest timestamp it has been given, in ms.

    -1 before the first. It is committed with the offsets, and restored after a restart.
    """

    ms: int = -1


class TaskObserver(Protocol):
    """Observes what a task does: implemented by a test driver (`streams.testing`)."""

    def observe_late_record(self, record: Any) -> None:
        """Observe a LateRecord: a record that was dropped because its window had closed."""
        ...


class InternalProcessorContext(Protocol):
    """Gives a bound step access to the task that it runs in.

    Kafka Streams' InternalProcessorContext.
    """

    @property
    def produce(self) -> Callable[..., None]:
        """Return confluent-kafka's `produce` of the task's producer.

        Arguments by position, which is faster: topic, value, key, partition, callback, on_delivery
        (the same), timestamp, headers.
        """
        ...

    def wait_for_queue_room(self) -> None:
        """Wait until the producer's full queue takes records again."""

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as first fetched. Raises UnknownTopic."""

    def get_read_partition_count(self, topic: str) -> int | None:
        """Return how many partitions of a repartition topic are read; None: all, always."""
        ...

    def require_chosen_topic_exists(self, topic: str) -> None:
        """Raise UnknownTopic if a topic that a function has chosen does not exist."""

    def refuse_topic_for_a_while(self, topic: str, reason: str) -> None:
        """Refuse a topic that can't be written for `metadata_max_age_ms`.

        `require_chosen_topic_exists` raises the refusal.
        """

    message: Any
    """The record being processed as the consumer returned it, or with the headers that a processor
    gave it; None between records."""
    record_timestamp_ms: int
    """The timestamp of the record that a processor was handed last: its writes to stores have it
    unless it gives another."""
    store_source_topics: Mapping[str, str]
    """By store name the table's topic that restores it in the place of a changelog."""
    commit_callbacks: list[Callable[[], None]]
    """Functions to call before a commit, downstream first, of steps that hold results back."""
    uncommitted_results: dict[str, dict[Any, Any]]
    """By store name the results that the steps which write it hold back until the commit."""
    start_callbacks: list[Callable[[], None]]
    """Functions to call when all steps are bound, downstream first."""
    close_callbacks: list[Callable[[], None]]
    """Functions to call when the steps are discarded, upstream first."""
    task_name: str
    stream_time_ms: int
    """The largest timestamp of the task's records so far; -1 before the first."""
    dropped_count: int
    """The number of records that were dropped since the count was last taken."""
    late_count: int
    """The number of these that came after their window had closed, once for each window."""
    shared_by_steps: dict[str, Any]
    """Objects that several steps share, by the name of a store that only these steps use."""

    value_previews: dict[str, Callable[[set[bytes]], None]]
    """By source topic a function to call with the values of a slice of records, as bytes, right
    before they are processed: for a step that computes something of many in less time."""
    observer: TaskObserver | None
    """The test driver that runs the task, if any: results are looked for with each record then."""

    @property
    def monotonic_s(self) -> Callable[[], float]:
        """Return the function that reads the monotonic clock in s."""
        ...

    @property
    def now_ms(self) -> Callable[[], int]:
        """Return the function that reads the wall clock in ms."""
        ...

    def get_store(self, name: str) -> Any:
        """Return a store of the task by name."""
        ...

    def find_global_store(self, name: str, step: str | None = None) -> Any | None:
        """Return a global table's replica, to read for `step`, by its store's name, or None."""
        ...

    def get_or_create_stream_time(self, step: str) -> StepStreamTime:
        """Return the stream time of a step that has one: the same object for each caller."""
        ...

    def get_or_create_step_measurements(self, step: str) -> StepMeasurements:
        """Return the measurements of a step: the same object for each caller."""
        ...

    def schedule_punctuation(
        self, interval_ms: int, callback: Callable[[int], None], clock: str
    ) -> Callable[[], None]:
        """Call `callback` with the time in ms after each `interval_ms` of `clock`.

        `clock` is "stream" or "wall". Returns the function that cancels the schedule. Kafka
        Streams: a Punctuator.
        """
        ...

    def request_commit(self) -> None:
        """Request a commit as soon as the record being processed is done."""
        ...

    @property
    def skips_processing(self) -> bool:
        """Return whether processing may go on after a step has failed."""
        ...

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
        """Handle the error that a step has raised: return if the record is to be skipped.

        Otherwise raises `refusal`, or an error that names the step and the record.
        """
        ...

    def describe_record_origin(self) -> str:
        """Return topic, partition and offset of the record being processed, for messages."""
        ...
