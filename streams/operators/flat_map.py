"""Flat map: one record becomes any number of records, the timestamp stays.

The mapper may be a generator, so it runs while its results go downstream. What fails there has been
handled there: an error that comes from it says itself what happens next, and passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streams.topology.nodes import Binding, Emit, Operator


def flat_map_pairs(mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                for new_key, new_value in mapper(key, value):
                    downstream(new_key, new_value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)

        return process

    return bind


def flat_map_values(mapper: Callable[[Any], Iterable[Any]]) -> Operator:
    def bind(at: Binding) -> Emit:
        downstream, failed = at.downstream, at.failed

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                for new_value in mapper(value):
                    downstream(key, new_value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)

        return process

    return bind
