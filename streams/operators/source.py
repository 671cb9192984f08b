"""Turn a message of the consumer into key, value and timestamp, and advance stream time.

A record with a negative timestamp fails (Kafka Streams' FailOnInvalidTimestamp), and so does one
with several headers whose names are not UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from state.shown_values import hide_values, quote_value, read_text
from streams.common.message_headers import RepairedMessage
from streams.errors import SerdeError, StreamsError
from streams.graph.internal_context import InternalProcessorContext
from streams.graph.nodes import ForwardRecord, SourceNode
from streams.settings.exception_handlers import Stage


def create_message_reader(
    node: SourceNode, context: InternalProcessorContext, downstream: ForwardRecord
) -> Callable[[Any], None]:
    """Return a function that deserialises each message once and forwards it.

    A message that fails is handled as SerdeError, which names the step and the record.
    """
    deserialize_key = node.key.deserialize
    deserialize_value = node.value.deserialize

    def receive_message(message: Any) -> None:
        key = message.key()
        value = message.value()
        if message.__class__ is RepairedMessage and message.lost_names:
            _refuse_lost_names(message, node, context)
            return
        try:
            if key is not None:
                key = deserialize_key(key)
            if value is not None:
                value = deserialize_value(value)
        except Exception as error:
            refusal = SerdeError(
                f"step {node.name!r} can't read {context.describe_record_origin()} with serdes "
                f"key={node.key.name} value={node.value.name}: "
                f"{hide_values(read_text(error), error, message.key(), message.value())}; "
                f"key {quote_value(message.key())}, value {quote_value(message.value())}"
            )
            context.handle_failure(Stage.DESERIALIZATION, node.name, error, refusal)
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
            context.handle_failure(Stage.DESERIALIZATION, node.name, cause, invalid_timestamp)
            return
        downstream(key, value, timestamp_ms)

    return receive_message


def _refuse_lost_names(
    message: RepairedMessage, node: SourceNode, context: InternalProcessorContext
) -> None:
    """Return if the handler lets a record be skipped of whose headers' names too many are lost."""
    names = f"the names of {message.lost_names + 1} headers are not UTF-8"
    refusal = SerdeError(
        f"step {node.name!r} can't read {context.describe_record_origin()}: {names}, and only one "
        f"of them can be told; headers {quote_value(message.headers())}"
    )
    context.handle_failure(Stage.DESERIALIZATION, node.name, ValueError(names), refusal)
