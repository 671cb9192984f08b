"""Call a function with each record and forward the record unchanged (KStreamPeek)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.unfinished_calls import refuse_unfinished_call


def peek_records(action: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that calls `action(key, value)` and forwards the record unchanged."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                result = action(key, value)
                if result is not None:
                    refuse_unfinished_call(result)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(key, value, timestamp_ms)

        return process_record

    return bind_operator
