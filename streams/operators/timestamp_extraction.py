"""Give each record of a source the time that its timestamp extractor says.

A task that reads several partitions takes the record with the lowest time next. So the extractor is
called as soon as a record is the first of its partition (`stamp_message`), with the highest time
that the partition has had; what came of it is dealt with when the record is processed. A task of
one partition calls it then.

    the extractor     the record
    returns a time    is processed at that time
    returns < 0       is dropped and counted; the log says so
    raises, or        is for the `deserialization_handler`, as one that can't be read
    returns > 2^63-1

Source: RecordQueue.updateHead, ExtractRecordMetadataTimestamp. There an extractor that raises ends
the thread, whatever the handler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from operator import index
from typing import Any

from state.shown_values import hide_values, quote_value
from streams.common.counted import format_count
from streams.common.topic_partitions import NO_TIME
from streams.common.user_code import describe_error
from streams.errors import StreamsError
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import ForwardRecord, SourceNode
from streams.processor.record import Record
from streams.settings.exception_handlers import Stage
from streams.settings.timestamp_extractors import (
    TimestampExtractor,
    TimestampPolicy,
    count_extractor_arguments,
)

log = logging.getLogger(__name__)

_LOG_INTERVAL_S = 10.0
_TIME_MS_MAX = 2**63 - 1
_TO_BE_READ, _READ, _UNREADABLE, _WITHOUT_TIME = range(4)

ReadMessage = Callable[[Any], tuple[Any, Any]]
"""Deserializes a message's key and value. Raises what its serdes raise."""
HandleUnreadable = Callable[[Any, Exception], None]
"""Handles a message that could not be read, and the error. Returns if it is to be skipped."""


class StampedMessage:
    """Presents a message with its key and value as they were read, and its extracted time."""

    __slots__ = ("error", "key_read", "message", "outcome", "time_ms", "value_read")

    def __init__(self, message: Any) -> None:
        self.message = message
        self.key_read: Any = None
        self.value_read: Any = None
        self.time_ms = NO_TIME
        """The extracted time; below 0: there is none, so the record is taken at once."""
        self.outcome = _TO_BE_READ
        self.error: Exception | None = None

    def __len__(self) -> int:
        """Return how many bytes the value has, as confluent-kafka's messages do."""
        return len(self.message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)


def find_message_time_ms(message: Any) -> int:
    """Return the time of a message in ms: the extracted one if there is one, else its own."""
    time_ms: int = (
        message.time_ms if message.__class__ is StampedMessage else message.timestamp()[1]
    )
    return time_ms


class TimestampedSource:
    """Takes the messages of one source whose time an extractor says, and forwards its records."""

    def __init__(
        self,
        node: SourceNode,
        extractor: TimestampExtractor,
        context: InternalProcessorContext,
        downstream: ForwardRecord,
        read_message: ReadMessage,
        handle_unreadable: HandleUnreadable,
    ) -> None:
        self._step = node.name
        self._context = context
        self._downstream = downstream
        self._extract = create_extract_function(extractor, context.now_ms)
        self._read_message = read_message
        self._handle_unreadable = handle_unreadable
        self._dropped_count = 0
        self._next_log_s: float | None = None

    def wrap_unstamped_message(self, message: Any) -> StampedMessage:
        """Return a message with the place for its time, which is extracted when it is processed.

        So whoever has the message can tell its time afterwards.
        """
        return message if message.__class__ is StampedMessage else StampedMessage(message)

    def stamp_message(self, message: Any, partition_time_ms: int) -> StampedMessage:
        """Read a message and extract its time, whatever fails; it is not processed yet.

        One that is stamped already is returned as it is.
        """
        stamped = self.wrap_unstamped_message(message)
        if stamped.outcome != _TO_BE_READ:
            return stamped
        message, stamped.outcome = stamped.message, _READ
        try:
            stamped.key_read, stamped.value_read = self._read_message(message)
        except Exception as error:
            stamped.outcome, stamped.error = _UNREADABLE, error
            return stamped
        record = Record.from_message(
            stamped.key_read, stamped.value_read, message.timestamp()[1], message
        )
        try:
            stamped.time_ms = _require_writable_time(self._extract(record, partition_time_ms))
        except Exception as error:
            stamped.outcome, stamped.error = _WITHOUT_TIME, error
        return stamped

    def __call__(self, message: Any) -> None:
        """Process a message, stamped or as it was polled."""
        context = self._context
        stamped = self.stamp_message(message, context.stream_time_ms)
        time_ms = stamped.time_ms
        if stamped.error is not None:
            self._skip_record_or_raise(stamped, stamped.error)
        elif time_ms < 0:
            context.dropped_count += 1
            self._log_dropped(time_ms)
        else:
            if time_ms > context.stream_time_ms:
                context.stream_time_ms = time_ms
            self._downstream(stamped.key_read, stamped.value_read, time_ms)

    def _skip_record_or_raise(self, stamped: StampedMessage, error: Exception) -> None:
        """Return if the record of an error is to be skipped."""
        if stamped.outcome == _UNREADABLE:
            self._handle_unreadable(stamped.message, error)
            return
        refusal = StreamsError(
            f"step {self._step!r} can't take {self._context.describe_record_origin()}: it has no "
            f"time, {hide_values(describe_error(error), error, stamped.key(), stamped.value())}; "
            f"key {quote_value(stamped.key())}, value {quote_value(stamped.value())}"
        )
        self._context.skip_record_or_raise(Stage.DESERIALIZATION, self._step, error, refusal)

    def _log_dropped(self, time_ms: int) -> None:
        """Log a dropped record: the first at once, then their number every 10 s."""
        self._dropped_count += 1
        now_s = self._context.monotonic_s()
        if self._next_log_s is not None and now_s < self._next_log_s:
            return
        self._next_log_s = now_s + _LOG_INTERVAL_S
        log.warning(
            "step %r drops %s: its time is %d, below 0 (%s dropped since the last such line)",
            self._step,
            self._context.describe_record_origin(),
            time_ms,
            format_count(self._dropped_count, "record"),
        )
        self._dropped_count = 0


def _require_writable_time(given: Any) -> int:
    """Return an extracted time. Raises ValueError for one that no record can be written with."""
    time_ms = index(given)
    if time_ms > _TIME_MS_MAX:
        raise ValueError(f"its extracted time {time_ms} is above 2^63-1, the highest in ms")
    return time_ms


def create_extract_function(
    extractor: TimestampExtractor, now_ms: Callable[[], int]
) -> Callable[[Record, int], int]:
    """Return the function of a record and its partition's highest time that extracts the time.

    Its result is below 0 for a record that is to be dropped.
    """
    match extractor:
        case TimestampPolicy.WALLCLOCK:
            return lambda record, partition_time_ms: now_ms()
        case TimestampPolicy.LOG_AND_SKIP_ON_INVALID_TIMESTAMP:
            return lambda record, partition_time_ms: record.timestamp_ms
        case TimestampPolicy.USE_PARTITION_TIME_ON_INVALID_TIMESTAMP:
            return _use_partition_time
        case TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP:
            return _fail_on_invalid_timestamp
        case function:
            if count_extractor_arguments(function) == 1:
                return lambda record, partition_time_ms: function(record)
            return function


def _use_partition_time(record: Record, partition_time_ms: int) -> int:
    """Return the record's time, or the partition's. Raises ValueError where neither is known."""
    if record.timestamp_ms >= 0:
        return record.timestamp_ms
    if partition_time_ms < 0:
        raise ValueError("its timestamp is below 0, and its partition has had no time yet")
    return partition_time_ms


def _fail_on_invalid_timestamp(record: Record, partition_time_ms: int) -> int:
    """Return the record's time. Raises ValueError for one below 0."""
    if record.timestamp_ms < 0:
        raise ValueError(f"its timestamp is {record.timestamp_ms}: write it with one")
    return record.timestamp_ms
