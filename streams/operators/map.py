"""Forward one record for each record, with its timestamp (KStreamMap)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.operators.unfinished_calls import with_first_result_checked


def map_pairs(mapper: Callable[[Any, Any], tuple[Any, Any]]) -> Operator:
    """Return the operator that forwards the key and value that `mapper(key, value)` returns."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                pair = mapper(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            try:
                if type(pair) is not tuple:  # the usual type costs this comparison alone
                    _refuse_text(pair)
                new_key, new_value = pair
            except (TypeError, ValueError):
                not_a_pair = TypeError(f"map returns a key and a value, and this one {pair!r:.200}")
                failed(not_a_pair.with_traceback(sys.exc_info()[2]), key, value)
                return
            downstream(new_key, new_value, timestamp_ms)

        return process_record

    return bind_operator


def _refuse_text(pair: Any) -> None:
    """Raise TypeError for a text or bytes: two characters would be taken for key and value."""
    if isinstance(pair, str | bytes):
        raise TypeError


def map_values(mapper: Callable[[Any], Any]) -> Operator:
    """Return the operator that replaces each record's value by `mapper(value)`."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise
        call: Callable[..., Any] = mapper

        def use_unchecked() -> None:
            nonlocal call
            call = mapper

        call = with_first_result_checked(mapper, use_unchecked)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                new_value = call(value)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(key, new_value, timestamp_ms)

        return process_record

    return bind_operator


def map_keys(mapper: Callable[[Any, Any], Any]) -> Operator:
    """Return the operator that replaces each record's key by `mapper(key, value)`."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        downstream, failed = binding.downstream, binding.skip_record_or_raise
        call: Callable[..., Any] = mapper

        def use_unchecked() -> None:
            nonlocal call
            call = mapper

        call = with_first_result_checked(mapper, use_unchecked)

        def process_record(key: Any, value: Any, timestamp_ms: int) -> None:
            try:
                new_key = call(key, value)
            except Exception as error:
                failed(error, key, value)
                return
            downstream(new_key, value, timestamp_ms)

        return process_record

    return bind_operator
