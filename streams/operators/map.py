"""Map: one record becomes one record, the timestamp stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def map_pairs(mapper: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            key, value = mapper(key, value)
            downstream(key, value, timestamp_ms)

        return process

    return bind


def map_values(mapper: Callable[[Any], Any]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            downstream(key, mapper(value), timestamp_ms)

        return process

    return bind


def map_keys(mapper: Callable[[Any, Any], Any]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            downstream(mapper(key, value), value, timestamp_ms)

        return process

    return bind
