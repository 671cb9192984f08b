"""Filter: records that a predicate accepts go on, unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def keep(predicate: Callable[[Any, Any], object]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                kept = predicate(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            if kept:
                downstream(key, value, timestamp_ms)

        return process

    return bind


def drop(predicate: Callable[[Any, Any], object]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                dropped = predicate(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            if not dropped:
                downstream(key, value, timestamp_ms)

        return process

    return bind
