"""Forward the records that a predicate accepts, unchanged (KStreamFilter)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator


def filter_records(predicate: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that forwards the records for which `predicate` is true."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.handle_failure

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                kept = predicate(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            if kept:
                downstream(key, value, timestamp_ms)

        return process_record

    return bind_operator


def filter_not_records(predicate: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that forwards the records for which `predicate` is false."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.handle_failure

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                dropped = predicate(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            if not dropped:
                downstream(key, value, timestamp_ms)

        return process_record

    return bind_operator
