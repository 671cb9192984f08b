"""Sink: key and value become bytes and go to a topic, with the record's timestamp and headers."""

from __future__ import annotations

from typing import Any

from streams.errors import SerdeError
from streams.handling import Stage
from streams.topology.nodes import Context, Emit, SinkNode

_BY_KEY = -1
"""librdkafka chooses the partition: murmur2 of the key, as Kafka's own producer does."""
_FIRST_MS = 1
"""librdkafka takes a timestamp of 0 for none, and writes the time that it is: this is next to 0."""


def write_topic(node: SinkNode, context: Context) -> Emit:
    """Serialise each record once and hand it to the producer.

    What the serdes or the producer refuse at once (too large, no such topic) is for the production
    handler. What the broker refuses later fails the transaction, and with it all of it.
    """
    serialize_key = node.key.serialize
    serialize_value = node.value.serialize
    produce = context.produce
    topic = node.topic

    def refused(error: Exception, refusal: SerdeError | None, key: Any, value: Any) -> None:
        context.failed(
            Stage.PRODUCTION, node.name, error, refusal, key=key, value=value, target=topic
        )

    def send(key: Any, value: Any, timestamp_ms: int) -> None:
        try:
            key_bytes = None if key is None else serialize_key(key)
            value_bytes = None if value is None else serialize_value(value)
        except Exception as error:
            refusal = SerdeError(
                f"step {node.name!r} can't write to topic {topic!r} with serdes "
                f"key={node.key.name} value={node.value.name}: {error}; "
                f"key {key!r:.200}, value {value!r:.200}, from {context.origin()}"
            )
            refused(error, refusal, key, value)
            return
        time_ms = timestamp_ms or _FIRST_MS
        message = context.message
        headers = None if message is None else message.headers()
        try:
            produce(topic, value_bytes, key_bytes, _BY_KEY, None, None, time_ms, headers)
        except BufferError:
            try:
                context.make_room()
                produce(topic, value_bytes, key_bytes, _BY_KEY, None, None, time_ms, headers)
            except Exception as error:
                refused(error, None, key, value)
        except Exception as error:
            refused(error, None, key, value)

    return send
