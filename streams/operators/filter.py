"""Forward the records that a predicate accepts, unchanged (KStreamFilter).

The function of each record stands here twice: one that compares the answer with the one that is
wanted takes 7 % longer (132 ns for 123 ns).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.unfinished_calls import refuse_unfinished_call


def filter_records(predicate: Callable[[Any, Any], object]) -> Operator:
    """Return the operator that forwards the records for which `predicate` is true."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                kept = predicate(key, value)
                if kept is not True and kept is not False:
                    refuse_unfinished_call(kept)
                    kept = bool(kept)  # an array or a missing value of pandas raises here
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
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                dropped = predicate(key, value)
                if dropped is not True and dropped is not False:
                    refuse_unfinished_call(dropped)
                    dropped = bool(dropped)
            except Exception as error:
                failed(error, key, value)
                return
            if not dropped:
                downstream(key, value, timestamp_ms)

        return process_record

    return bind_operator


def drop_records_without_key(binding: Binding) -> ForwardRecord:
    """Forward the records that have a key, and count the others as dropped.

    A repartition topic could not place them, and the step behind it would drop them. Kafka Streams
    does not count them there.
    """
    context, downstream = binding.context, binding.downstream

    def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
        if key is None:
            context.dropped_count += 1
        else:
            downstream(key, value, timestamp_ms)

    return process_record
