"""Compute each value of a table from its parent's value, or none (filter, map_values).

A materialized table reads its old value from its own store, another computes it anew. A filter
forwards nothing where there was nothing, as far as it knows; a mapping always forwards what it gets
(KTableFilter, KTableMapValues).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.graph.nodes import Binding, ForwardUpdate, Operator
from streams.graph.views import DerivedView, TableView
from streams.operators.copies import create_copier_into
from streams.operators.materialize import create_value_materializer
from streams.operators.unfinished_calls import refuse_unfinished_call, with_first_result_checked

ComputeValue = Callable[[Any, Any], Any]
"""Takes key and value of a row; returns this table's value or None. The value is never None."""


def create_filter_computation(predicate: Callable[[Any, Any], object]) -> ComputeValue:
    """Return a function that returns a row's value if the predicate is true, else None."""

    def filter_value(key: Any, value: Any) -> Any:
        kept = predicate(key, value)
        if kept is not True and kept is not False:
            refuse_unfinished_call(kept)
        return value if kept else None

    return filter_value


def create_filter_not_computation(predicate: Callable[[Any, Any], object]) -> ComputeValue:
    """Return a function that returns a row's value if the predicate is false, else None."""

    def filter_not_value(key: Any, value: Any) -> Any:
        dropped = predicate(key, value)
        if dropped is not True and dropped is not False:
            refuse_unfinished_call(dropped)
        return None if dropped else value

    return filter_not_value


def create_map_computation(mapper: Callable[[Any], Any]) -> ComputeValue:
    """Return a function that returns the mapper's result for a row's value."""
    call: Callable[..., Any] = mapper

    def use_unchecked() -> None:
        nonlocal call
        call = mapper

    call = with_first_result_checked(mapper, use_unchecked)

    def map_value(key: Any, value: Any) -> Any:
        return call(value)

    return map_value


def compute_table_values(view: DerivedView, parent: TableView, *, is_filter: bool) -> Operator:
    """Return the operator that computes a table's values from its parent's updates."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        skips_empty = is_filter and not parent.is_versioned
        if view.spec is None:
            return _create_computation_without_store(binding, view, skips_empty=skips_empty)
        compute_value, failed = view.compute_value, binding.skip_record_or_raise
        write_value = create_value_materializer(binding, view, skips_empty=skips_empty)
        copy_value = create_copier_into(view.spec)

        def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            try:
                value = None if new is None else copy_value(compute_value(key, new))
            except Exception as error:
                failed(error, key, new)
                return
            write_value(key, value, timestamp_ms)

        return process_update

    return bind_operator


def _create_computation_without_store(
    binding: Binding, view: DerivedView, *, skips_empty: bool
) -> ForwardUpdate:
    """Return a function that computes and forwards values of a table without a store."""
    compute_value, failed, downstream = (
        view.compute_value,
        binding.skip_record_or_raise,
        binding.downstream,
    )
    sends_old = view.sends_old_values
    skips_empty = skips_empty and sends_old

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            new_result = None if new is None else compute_value(key, new)
            old_result = compute_value(key, old) if sends_old and old is not None else None
        except Exception as error:
            failed(error, key, new)
            return
        if not (skips_empty and new_result is None and old_result is None):
            downstream(key, new_result, old_result, timestamp_ms, latest)

    return process_update
