"""Filter: records that a predicate accepts go on, unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def keep(predicate: Callable[[Any, Any], object]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if predicate(key, value):
                downstream(key, value, timestamp_ms)

        return process

    return bind


def drop(predicate: Callable[[Any, Any], object]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            if not predicate(key, value):
                downstream(key, value, timestamp_ms)

        return process

    return bind
