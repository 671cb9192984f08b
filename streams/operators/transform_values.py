"""Replace each value of a table by the result of a user's transformer.

A deletion is transformed like any other update, and may get a value. A materialized table reads its
old value from its own store; another transforms it anew, and so does a step that reads a value
(KTableTransformValues).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from state.entry import ValueAndTimestamp
from streams.operators.copies import copier_into
from streams.operators.keeping import keeper
from streams.operators.process import attach
from streams.processor.transformer import TransformerContext, ValueTransformer
from streams.topology.nodes import Binding, Operator, StoreSpec, Update
from streams.topology.views import ComputedView, Found, View

Factory = Callable[[], ValueTransformer[Any, Any, Any]]
Transform = Callable[[Any, Any, int], Any]
"""Takes key, value or None, and the value's timestamp in ms; returns the new value or None."""


class TransformedView(ComputedView):
    """Presents a transformed table to later steps, which read it from its store if it has one.

    Else the value of `parent` is transformed anew: each reading step has a transformer of its own.
    """

    def __init__(
        self,
        step: str,
        parent: View,
        factory: Factory,
        stores: Sequence[str],
        spec: StoreSpec | None,
    ) -> None:
        super().__init__(parent, spec)
        self.factory = factory
        self.stores = stores
        self._step = step

    def read_from(self) -> list[str]:
        mine = self.stores if self.spec is None else ()
        return list(dict.fromkeys([*super().read_from(), *mine]))

    def computing(self, at: Binding) -> Callable[[Any, Found], Found]:
        """Return a function that transforms a value read while another record is processed."""
        context = at.context
        transform = transforming(replace(at, step=self._step), self.factory, self.stores)

        def transform_found(key: Any, found: Found) -> Found:
            message, record_ms = context.message, context.record_ms
            value, timestamp_ms = (None, -1) if found is None else found
            context.message = None
            try:
                # Without a time of its own, what it writes has that of the record.
                new = transform(key, value, timestamp_ms)
            finally:
                context.message, context.record_ms = message, record_ms
            return None if new is None else ValueAndTimestamp(new, timestamp_ms)

        return transform_found


def transforming(at: Binding, factory: Factory, stores: Sequence[str]) -> Transform:
    """Return the transform function of a new transformer, which starts and closes with the task."""
    context, transformer_context = at.context, TransformerContext(at, stores)
    transformer = factory()
    attach(transformer, transformer_context, at)
    transform = transformer.transform

    def transform_value(key: Any, value: Any, timestamp_ms: int) -> Any:
        transformer_context.timestamp_ms = timestamp_ms
        if timestamp_ms >= 0:
            context.record_ms = timestamp_ms
        return transform(key, value)

    return transform_value


def transform_values(view: TransformedView) -> Operator:
    """Return the operator that transforms a table's values and may store them."""

    def bind_operator(binding: Binding) -> Update:
        transform = transforming(binding, view.factory, view.stores)
        return (
            _on_the_way(binding, view, transform)
            if view.spec is None
            else _kept(binding, view, transform)
        )

    return bind_operator


def _kept(at: Binding, view: TransformedView, transform: Transform) -> Update:
    assert view.spec is not None
    failed = at.failed
    write_value = keeper(at, view)
    copy_value = copier_into(view.spec)

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            value = copy_value(transform(key, new, timestamp_ms))
        except Exception as error:
            failed(error, key, new)
            return
        write_value(key, value, timestamp_ms)

    return process_update


def _on_the_way(at: Binding, view: TransformedView, transform: Transform) -> Update:
    downstream, failed, sends_old = at.downstream, at.failed, view.sends_old

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            new_result = transform(key, new, timestamp_ms)
            old_result = transform(key, old, timestamp_ms) if sends_old else None
        except Exception as error:
            failed(error, key, new)
            return
        downstream(key, new_result, old_result, timestamp_ms, latest)

    return process_update
