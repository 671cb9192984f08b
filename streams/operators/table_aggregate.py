"""Fold changes of a table's rows: subtract the row's old value, then add its new one.

Nothing is subtracted from a group that has no value (KTableAggregate, KTableReduce).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.common.changes import Change
from streams.graph.nodes import Binding, ForwardRecord, Operator
from streams.graph.views import TableView
from streams.operators.aggregate import AggregateFold, aggregate_records
from streams.operators.copies import CopyFunction, create_copier

ChangeFold = Callable[[CopyFunction], AggregateFold]
"""Takes a copy function and returns a fold of Changes. A row's value that became the aggregate
as it is is copied: other steps have it too."""


def aggregate_changes(view: TableView, change_fold: ChangeFold) -> Operator:
    """Return the operator that folds each Change of a group into the group's aggregate."""

    def bind_operator(binding: Binding) -> ForwardRecord:
        assert view.spec is not None
        return aggregate_records(view, change_fold(create_copier(view.spec.value)))(binding)

    return bind_operator


def create_aggregate_fold(
    initializer: Callable[[], Any],
    adder: Callable[[Any, Any, Any], Any],
    subtractor: Callable[[Any, Any, Any], Any],
) -> ChangeFold:
    """Return a fold of changes by functions that are handed key, value and aggregate."""

    def create_fold(copy_value: CopyFunction) -> AggregateFold:
        def fold_change(key: Any, change: Change[Any], aggregate: Any) -> Any:
            new, old, _ = change
            if old is not None and aggregate is not None:
                aggregate = subtractor(key, old, aggregate)
                if aggregate is old:
                    aggregate = copy_value(old)
            if new is None:
                return aggregate
            if aggregate is None:
                aggregate = initializer()
            aggregate = adder(key, new, aggregate)
            return copy_value(new) if aggregate is new else aggregate

        return fold_change

    return create_fold


def create_count_fold() -> ChangeFold:
    """Return a fold of changes that counts a group's rows."""
    return create_aggregate_fold(
        lambda: 0, lambda key, value, count: count + 1, lambda key, value, count: count - 1
    )


def create_reduce_fold(
    adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any]
) -> ChangeFold:
    """Return a fold of changes by functions that are handed the aggregate and a row's value.

    The first value of a group is its aggregate.
    """

    def add_value(key: Any, value: Any, aggregate: Any) -> Any:
        return value if aggregate is None else adder(aggregate, value)

    def subtract_value(key: Any, value: Any, aggregate: Any) -> Any:
        return subtractor(aggregate, value)

    return create_aggregate_fold(lambda: None, add_value, subtract_value)
