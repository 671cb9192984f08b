"""Transform values: each value of a table becomes what a user's transformer makes of it.

Also no value: a deletion is transformed like any other update. A table that is kept reads its old
value from its own store; another has it transformed anew, and so has a step that asks for a value
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
"""Key, value or None, the value's timestamp in ms -> the new value or None."""


class TransformedView(ComputedView):
    """What a transformer makes of `parent`: kept in `spec`, or transformed for who asks by a
    transformer of his own."""

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
        """Transforms what was read while another record is processed, which is none of its."""
        context = at.context
        transform = transforming(replace(at, step=self._step), self.factory, self.stores)

        def transformed(key: Any, found: Found) -> Found:
            message, record_ms = context.message, context.record_ms
            value, timestamp_ms = (None, -1) if found is None else found
            context.message = None
            try:
                # Without a time of its own, what it writes has that of the record.
                new = transform(key, value, timestamp_ms)
            finally:
                context.message, context.record_ms = message, record_ms
            return None if new is None else ValueAndTimestamp(new, timestamp_ms)

        return transformed


def transforming(at: Binding, factory: Factory, stores: Sequence[str]) -> Transform:
    """A transformer of this place: started with the task, closed with it."""
    context, own = at.context, TransformerContext(at, stores)
    transformer = factory()
    attach(transformer, own, at)
    transform = transformer.transform

    def transformed(key: Any, value: Any, timestamp_ms: int) -> Any:
        own.timestamp_ms = timestamp_ms
        if timestamp_ms >= 0:
            context.record_ms = timestamp_ms
        return transform(key, value)

    return transformed


def transform_values(view: TransformedView) -> Operator:
    def bind(at: Binding) -> Update:
        transform = transforming(at, view.factory, view.stores)
        return _on_the_way(at, view, transform) if view.spec is None else _kept(at, view, transform)

    return bind


def _kept(at: Binding, view: TransformedView, transform: Transform) -> Update:
    assert view.spec is not None
    failed = at.failed
    keep = keeper(at, view)
    own = copier_into(view.spec)

    def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            value = own(transform(key, new, timestamp_ms))
        except Exception as error:
            failed(error, key, new)
            return
        keep(key, value, timestamp_ms)

    return process


def _on_the_way(at: Binding, view: TransformedView, transform: Transform) -> Update:
    downstream, failed, sends_old = at.downstream, at.failed, view.sends_old

    def process(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            value = transform(key, new, timestamp_ms)
            was = transform(key, old, timestamp_ms) if sends_old else None
        except Exception as error:
            failed(error, key, new)
            return
        downstream(key, value, was, timestamp_ms, latest)

    return process
