"""Flat map: one record becomes any number of records, the timestamp stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def flat_map_pairs(mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            for new_key, new_value in mapper(key, value):
                downstream(new_key, new_value, timestamp_ms)

        return process

    return bind


def flat_map_values(mapper: Callable[[Any], Iterable[Any]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream = at.downstream

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            for new_value in mapper(value):
                downstream(key, new_value, timestamp_ms)

        return process

    return bind
