"""Forward any number of records for each record, with its timestamp (KStreamFlatMap).

The mapper may be a generator, so it runs while its results go downstream. An error that a step
downstream raises has been handled there: it names its recovery, and passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator


def flat_map_pairs(mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Operator:
    """Return the operator that forwards each key and value that `mapper(key, value)` yields."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                for new_key, new_value in mapper(key, value):
                    downstream(new_key, new_value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)

        return process_record

    return bind_operator


def flat_map_values(mapper: Callable[[Any], Iterable[Any]]) -> Operator:
    """Return the operator that forwards each value that `mapper(value)` yields, with its key."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                for new_value in mapper(value):
                    downstream(key, new_value, timestamp_ms)
            except Exception as error:
                failed(error, key, value)

        return process_record

    return bind_operator
