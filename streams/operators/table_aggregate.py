"""Folds over the changes of a table's rows: what a row was is subtracted, what it is now is added.

Nothing is subtracted from a group that has no value (KTableAggregate, KTableReduce).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.operators.aggregate import Fold, aggregate
from streams.operators.copies import Copied, copier
from streams.topology.changes import Change
from streams.topology.nodes import Binding, Emit, Operator
from streams.topology.views import View

ChangeFold = Callable[[Copied], Fold]
"""Given what copies a value, a fold of Changes. A row's value that became the aggregate as it is is
copied: other steps have it too."""


def aggregate_changes(view: View, folding: ChangeFold) -> Operator:
    def bind(at: Binding) -> Emit:
        assert view.spec is not None
        return aggregate(view, folding(copier(view.spec.value)))(at)

    return bind


def adding(
    initializer: Callable[[], Any],
    adder: Callable[[Any, Any, Any], Any],
    subtractor: Callable[[Any, Any, Any], Any],
) -> ChangeFold:
    """Both functions are handed key, value and aggregate."""

    def folding(copied: Copied) -> Fold:
        def fold(key: Any, change: Change[Any], aggregated: Any) -> Any:
            new, old, _ = change
            if old is not None and aggregated is not None:
                aggregated = subtractor(key, old, aggregated)
                if aggregated is old:
                    aggregated = copied(old)
            if new is None:
                return aggregated
            if aggregated is None:
                aggregated = initializer()
            aggregated = adder(key, new, aggregated)
            return copied(new) if aggregated is new else aggregated

        return fold

    return folding


def counting() -> ChangeFold:
    return adding(
        lambda: 0, lambda key, value, count: count + 1, lambda key, value, count: count - 1
    )


def combining(
    adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any]
) -> ChangeFold:
    """Both functions are handed the aggregate and a row's value; the first value is taken as it
    is."""

    def add(key: Any, value: Any, aggregated: Any) -> Any:
        return value if aggregated is None else adder(aggregated, value)

    def subtract(key: Any, value: Any, aggregated: Any) -> Any:
        return subtractor(aggregated, value)

    return adding(lambda: None, add, subtract)
