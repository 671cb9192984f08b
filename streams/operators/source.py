"""Turn a message of the consumer into key, value and timestamp, and advance stream time.

A record with a negative timestamp fails (Kafka Streams' FailOnInvalidTimestamp), unless its source
has a timestamp extractor (`timestamp_extraction`), and so does one with several headers whose names
are not UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from state.shown_values import hide_values, quote_value, read_text_safely
from streams.common.message_headers import RepairedMessage
from streams.errors import SerdeError, StreamsError
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import ForwardRecord, SourceNode
from streams.operators.timestamp_extraction import TimestampedSource
from streams.settings.exception_handlers import Stage
from streams.settings.timestamp_extractors import TimestampExtractor, TimestampPolicy

Key: TypeAlias = Any
Value: TypeAlias = Any


def create_message_reader(
    node: SourceNode, context: InternalProcessorContext, downstream: ForwardRecord
) -> Callable[[Any], None]:
    """Return a function that deserialises each message once and forwards it.

    A message that fails is handled as SerdeError, which names the step and the record.
    """
    extractor = node.timestamp_extractor
    if extractor not in (None, TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP):
        return _create_timestamped_source(node, extractor, context, downstream)
    deserialize_key = node.key.deserialize
    deserialize_value = node.value.deserialize

    def receive_message(message: Any) -> None:
        key = message.key()
        value = message.value()
        if message.__class__ is RepairedMessage and message.lost_names:
            _skip_lost_header_names_or_raise(message, node, context)
            return
        try:
            if key is not None:
                key = deserialize_key(key)
            if value is not None:
                value = deserialize_value(value)
        except Exception as error:
            _skip_unreadable_or_raise(message, error, node, context)
            return
        timestamp_ms = message.timestamp()[1]
        if timestamp_ms > context.stream_time_ms:
            context.stream_time_ms = timestamp_ms
        elif timestamp_ms < 0:
            invalid_timestamp = StreamsError(
                f"step {node.name!r} can't take {context.describe_record_origin()}: its timestamp "
                "is "
                f"{timestamp_ms}, so it has no place in time. Write it with one"
            )
            cause = ValueError(f"timestamp {timestamp_ms}")
            context.skip_record_or_raise(Stage.DESERIALIZATION, node.name, cause, invalid_timestamp)
            return
        downstream(key, value, timestamp_ms)

    return receive_message


def _create_timestamped_source(
    node: SourceNode,
    extractor: TimestampExtractor,
    context: InternalProcessorContext,
    downstream: ForwardRecord,
) -> TimestampedSource:
    """Return the source of a node whose timestamp extractor says the time of its records."""
    deserialize_key = node.key.deserialize
    deserialize_value = node.value.deserialize

    def read_message(message: Any) -> tuple[Key, Value]:
        key, value = message.key(), message.value()
        if _has_lost_names(message):
            raise ValueError("names of headers are lost")
        return (
            None if key is None else deserialize_key(key),
            None if value is None else deserialize_value(value),
        )

    def handle_unreadable(message: Any, error: Exception) -> None:
        if _has_lost_names(message):
            _skip_lost_header_names_or_raise(message, node, context)
        else:
            _skip_unreadable_or_raise(message, error, node, context)

    return TimestampedSource(node, extractor, context, downstream, read_message, handle_unreadable)


def _has_lost_names(message: Any) -> bool:
    return message.__class__ is RepairedMessage and bool(message.lost_names)


def _skip_unreadable_or_raise(
    message: Any, error: Exception, node: SourceNode, context: InternalProcessorContext
) -> None:
    """Return if the handler lets a record be skipped that the source's serdes can't read."""
    refusal = SerdeError(
        f"step {node.name!r} can't read {context.describe_record_origin()} with serdes "
        f"key={node.key.name} value={node.value.name}: "
        f"{hide_values(read_text_safely(error), error, message.key(), message.value())}; "
        f"key {quote_value(message.key())}, value {quote_value(message.value())}"
    )
    context.skip_record_or_raise(Stage.DESERIALIZATION, node.name, error, refusal)


def _skip_lost_header_names_or_raise(
    message: RepairedMessage, node: SourceNode, context: InternalProcessorContext
) -> None:
    """Return if the handler lets a record be skipped of whose headers' names too many are lost."""
    names = f"the names of {message.lost_names + 1} headers are not UTF-8"
    refusal = SerdeError(
        f"step {node.name!r} can't read {context.describe_record_origin()}: {names}, and only one "
        f"of them can be told; headers {quote_value(message.headers())}"
    )
    context.skip_record_or_raise(Stage.DESERIALIZATION, node.name, ValueError(names), refusal)
