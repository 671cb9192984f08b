"""Provide a context for one processor alone: what it forwards is kept, nothing runs behind it.

Stores are the product's own, in memory. `TopologyTestDriver` runs a whole application, with
commits, crashes and restores; this is for the rules of one processor. Kafka Streams'
MockProcessorContext.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, NoReturn

from state.guessed_names import explain_guessed_names
from state.memory import MemoryDisk
from streams.common.call_hints import explain_call
from streams.common.durations import Duration
from streams.errors import StreamsError
from streams.graph.materialized import Store
from streams.processor.context import RecordMetadata, parse_schedule_interval_ms
from streams.processor.processor import Processor
from streams.processor.record import Record
from streams.runtime.tasks.store_opening import open_store


class CapturedList(list[Any]):
    """Holds what a context has captured; Kafka Streams' is a method of this name."""

    def __call__(self, *arguments: object) -> NoReturn:
        """Raise TypeError: it is read, and not called."""
        raise TypeError(
            "forwarded and scheduled are lists, and not called: forwarded[0].record, and of one "
            'child [each for each in context.forwarded if each.to == "child"]'
        )


@explain_guessed_names({"child_name": "to", "get_record": "record", "headers": "record.headers"})
class CapturedForward(NamedTuple):
    """Holds a record that the processor has forwarded, and the child that it has named."""

    record: Record[Any, Any]
    to: str | None


@explain_guessed_names(
    {
        "cancel": "schedule returns the function that cancels",
        "cancelled": "is_cancelled",
        "get_interval": "interval_ms",
        "get_punctuator": "call_back(now_ms) calls the function",
        "get_type": 'clock, which is "stream" or "wall"',
    }
)
@dataclass(slots=True)
class CapturedPunctuator:
    """Holds a schedule of the processor; `call_back` lets its time come."""

    interval_ms: int
    clock: str
    callback: Callable[[int], object]
    is_cancelled: bool = False

    def call_back(self, now_ms: int) -> None:
        """Call the processor's function with the time in ms."""
        self.callback(now_ms)


@explain_guessed_names(
    {
        "add_state_store": "MockProcessorContext([Store....]) has them",
        "app_configs": "app.config, of the App",
        "app_configs_with_prefix": "app.config, of the App",
        "application_id": "app.application_id, of the App",
        "committed": "commit_count",
        "current_stream_time_ms": "stream_time_ms",
        "current_system_time_ms": "system_time_ms",
        "get_state_store": "store(name)",
        "get_state_store_context": "kinds of stores can't be added",
        "key_serde": "there are no default serdes",
        "record_collector": "forwarded has what was forwarded",
        "record_metadata": "did you mean record_metadata?",
        "reset_commit": "commit_count = 0",
        "reset_forwards": "forwarded.clear()",
        "scheduled_punctuators": "scheduled",
        "set_current_stream_time_ms": "stream_time_ms = ...",
        "set_current_system_time_ms": "system_time_ms = ...",
        "set_record_timestamp": "record_timestamp_ms = ...",
        "set_record_metadata": "record_metadata = RecordMetadata(topic, partition, offset)",
        "state_dir": "stores are in memory",
        "task_id": "did you mean task_id?",
        "value_serde": "there are no default serdes",
    }
)
class MockProcessorContext:
    """Stands for a task, for tests of one processor.

    `stores` are those that it uses. `process` hands it records; `forwarded` has what it has
    forwarded, `scheduled` its schedules, and `commit_count` how often it has requested a commit.

    >>> class Double(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value * 2))
    >>> context = MockProcessorContext()
    >>> processor = context.start_processor(Double())
    >>> processor.process(Record("ann", 5, 0))
    >>> context.forwarded[0].record.value
    10
    """

    def __init__(
        self, stores: Iterable[Store] = (), *, task_id: str = "0_0", system_time_ms: int = 0
    ) -> None:
        self.task_id = task_id
        self.system_time_ms = system_time_ms
        self.stream_time_ms = -1
        self.record_timestamp_ms = -1
        """The time of writes to stores that are given none: that of the record, or of the timer."""
        self.record_metadata: RecordMetadata | None = None
        self.forwarded: list[CapturedForward] = CapturedList()
        self.scheduled: list[CapturedPunctuator] = CapturedList()
        self.commit_count = 0
        self._stores = {
            each.name: open_store(
                each.create_spec(None, None, step="MockProcessorContext"),
                MemoryDisk(),
                clock=lambda: self.record_timestamp_ms,
            )
            for each in stores
        }

    def start_processor(
        self, processor: Processor[Any, Any, Any, Any]
    ) -> Processor[Any, Any, Any, Any]:
        """Give `processor` this context, call its `init`, and return it.

        From then on each record that it processes sets `record_timestamp_ms`, and `stream_time_ms`
        if it is newer.
        """
        context: Any = self
        process = processor.process

        def process_record(record: Record[Any, Any]) -> None:
            self.record_timestamp_ms = record.timestamp_ms
            self.stream_time_ms = max(self.stream_time_ms, record.timestamp_ms)
            process(record)

        processor.context = context
        vars(processor)["process"] = process_record
        processor.init(context)
        return processor

    def forward(self, record: Record[Any, Any], to: str | None = None) -> None:
        """Keep the record. Raises TypeError for what is none."""
        if not isinstance(record, Record):
            raise TypeError(f"forward takes a Record, not {record!r:.100}")
        self.forwarded.append(CapturedForward(record, to))

    def store(self, name: str) -> Any:
        """Return a store. Raises StreamsError for one that the context was not given."""
        if name not in self._stores:
            raise StreamsError(f"the context has no store {name!r}: it has {sorted(self._stores)}")
        return self._stores[name]

    @explain_call
    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        clock: Literal["stream", "wall"] = "stream",
    ) -> Callable[[], None]:
        """Keep the schedule, for the test to call. Return the function that cancels it.

        Raises ValueError for an interval below 1 ms or another clock.
        """

        def run_punctuation(now_ms: int) -> None:
            self.record_timestamp_ms = now_ms
            callback(now_ms)

        interval_ms = parse_schedule_interval_ms(interval, clock)
        punctuator = CapturedPunctuator(interval_ms, clock, run_punctuation)
        self.scheduled.append(punctuator)
        return partial(setattr, punctuator, "is_cancelled", True)

    def commit(self) -> None:
        """Count the request."""
        self.commit_count += 1
