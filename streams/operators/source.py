"""Source: a message from the consumer becomes key, value and timestamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.errors import SerdeError
from streams.handling import Stage
from streams.topology.nodes import Context, Emit, SourceNode


def read_topic(node: SourceNode, context: Context, downstream: Emit) -> Callable[[Any], None]:
    """Deserialise each message once; what fails is SerdeError, naming the step and the record."""
    deserialize_key = node.key.deserialize
    deserialize_value = node.value.deserialize

    def receive(message: Any) -> None:
        key = message.key()
        value = message.value()
        try:
            if key is not None:
                key = deserialize_key(key)
            if value is not None:
                value = deserialize_value(value)
        except Exception as error:
            refusal = SerdeError(
                f"step {node.name!r} can't read {context.origin()} with serdes "
                f"key={node.key.name} value={node.value.name}: {error}; "
                f"key {message.key()!r:.200}, value {message.value()!r:.200}"
            )
            context.failed(Stage.DESERIALIZATION, node.name, error, refusal)
            return
        downstream(key, value, message.timestamp()[1])

    return receive
