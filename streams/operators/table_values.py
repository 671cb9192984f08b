"""Table values: each value of a table becomes another, or none (filter).

A table that is kept reads its old value from its own store, another computes it anew. A filter
passes on nothing where there was nothing, as far as it knows; a mapping always passes on what it
gets (KTableFilter, KTableMapValues).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.operators.copies import copier_into
from streams.operators.keeping import keeper
from streams.topology.nodes import Binding, Operator, Update
from streams.topology.views import DerivedView, View

Computed = Callable[[Any, Any], Any]
"""Key, value -> this table's value; None: none. Never called without a value."""


def kept_if(predicate: Callable[[Any, Any], object]) -> Computed:
    def computed(key: Any, value: Any) -> Any:
        return value if predicate(key, value) else None

    return computed


def dropped_if(predicate: Callable[[Any, Any], object]) -> Computed:
    def computed(key: Any, value: Any) -> Any:
        return None if predicate(key, value) else value

    return computed


def mapped(mapper: Callable[[Any], Any]) -> Computed:
    def computed(key: Any, value: Any) -> Any:
        return mapper(value)

    return computed


def table_values(view: DerivedView, parent: View, *, filters: bool) -> Operator:
    def bind(at: Binding) -> Update:
        skips = filters and not parent.is_versioned
        if view.spec is None:
            return _on_the_way(at, view, skips=skips)
        computed, failed = view.computed, at.failed
        keep = keeper(at, view, without_nothing=skips)
        own = copier_into(view.spec)

        def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
            try:
                value = None if new is None else own(computed(key, new))
            except Exception as error:
                failed(error, key, new)
                return
            keep(key, value, timestamp_ms)

        return process

    return bind


def _on_the_way(at: Binding, view: DerivedView, *, skips: bool) -> Update:
    computed, failed, downstream = view.computed, at.failed, at.downstream
    sends_old = view.sends_old
    skips = skips and sends_old

    def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            value = None if new is None else computed(key, new)
            was = computed(key, old) if sends_old and old is not None else None
        except Exception as error:
            failed(error, key, new)
            return
        if not (skips and value is None and was is None):
            downstream(key, value, was, timestamp_ms, latest)

    return process
