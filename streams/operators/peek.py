"""Peek: a function sees each record, which goes on unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def look(action: Callable[[Any, Any], object]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                action(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(key, value, timestamp_ms)

        return process

    return bind
