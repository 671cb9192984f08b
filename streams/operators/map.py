"""Map: one record becomes one record, the timestamp stays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def map_pairs(mapper: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                pair = mapper(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            try:
                new_key, new_value = pair
            except (TypeError, ValueError):
                no_pair = TypeError(f"map returns a key and a value, and this one {pair!r:.200}")
                failed(no_pair.with_traceback(sys.exc_info()[2]), key, value)
                return
            downstream(new_key, new_value, timestamp_ms)

        return process

    return bind


def map_values(mapper: Callable[[Any], Any]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                new_value = mapper(value)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(key, new_value, timestamp_ms)

        return process

    return bind


def map_keys(mapper: Callable[[Any, Any], Any]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                new_key = mapper(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(new_key, value, timestamp_ms)

        return process

    return bind
