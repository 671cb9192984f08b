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
from streams.graph.nodes import Binding, ForwardUpdate, Operator, StoreSpec
from streams.graph.views import ComputedView, OptionalRow, TableView
from streams.operators.copies import create_copier_into
from streams.operators.materialize import create_value_materializer
from streams.operators.process import register_init_and_close
from streams.processor.transformer import TransformerContext, ValueTransformer

TransformerFactory = Callable[[], ValueTransformer[Any, Any, Any]]
Transform = Callable[[Any, Any, int], Any]
"""Takes key, value or None, and the value's timestamp in ms; returns the new value or None."""


class TransformedView(ComputedView):
    """Presents a transformed table to later steps, which read it from its store if it has one.

    Else the value of `parent` is transformed anew: each reading step has a transformer of its own.
    """

    def __init__(
        self,
        step: str,
        parent: TableView,
        create_transformer: TransformerFactory,
        store_names: Sequence[str],
        spec: StoreSpec | None,
    ) -> None:
        super().__init__(parent, spec)
        self.create_transformer = create_transformer
        self.store_names = store_names
        self._step = step

    def require_readable_stores(self) -> list[str]:
        """Return the names of the stores that a look-up of a row of this table reads.

        These are the table's own, or without one the parent's and the transformer's.
        """
        mine = self.store_names if self.spec is None else ()
        return list(dict.fromkeys([*super().require_readable_stores(), *mine]))

    def create_row_function(self, binding: Binding) -> Callable[[Any, OptionalRow], OptionalRow]:
        """Return a function that transforms a value read while another record is processed."""
        context = binding.context
        transform = create_transform(
            replace(binding, step=self._step), self.create_transformer, self.store_names
        )

        def transform_found(key: Any, found: OptionalRow) -> OptionalRow:
            message, record_ms = context.message, context.record_timestamp_ms
            value, timestamp_ms = (None, -1) if found is None else found
            context.message = None
            try:
                # Without a time of its own, what it writes has that of the record.
                new = transform(key, value, timestamp_ms)
            finally:
                context.message, context.record_timestamp_ms = message, record_ms
            return None if new is None else ValueAndTimestamp(new, timestamp_ms)

        return transform_found


def create_transform(
    binding: Binding, create_transformer: TransformerFactory, store_names: Sequence[str]
) -> Transform:
    """Return the transform function of a new transformer, which starts and closes with the task."""
    context, transformer_context = binding.context, TransformerContext(binding, store_names)
    transformer = create_transformer()
    register_init_and_close(transformer, transformer_context, binding)
    transform = transformer.transform

    def transform_value(key: Any, value: Any, timestamp_ms: int) -> Any:
        transformer_context.timestamp_ms = timestamp_ms
        if timestamp_ms >= 0:
            context.record_timestamp_ms = timestamp_ms
        return transform(key, value)

    return transform_value


def transform_row_values(view: TransformedView) -> Operator:
    """Return the operator that transforms a table's values and may store them."""

    def bind_operator(binding: Binding) -> ForwardUpdate:
        transform = create_transform(binding, view.create_transformer, view.store_names)
        return (
            _create_transformation_without_store(binding, view, transform)
            if view.spec is None
            else _create_transformation_into_store(binding, view, transform)
        )

    return bind_operator


def _create_transformation_into_store(
    binding: Binding, view: TransformedView, transform: Transform
) -> ForwardUpdate:
    assert view.spec is not None
    failed = binding.skip_record_or_raise
    write_value = create_value_materializer(binding, view)
    copy_value = create_copier_into(view.spec)

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            value = copy_value(transform(key, new, timestamp_ms))
        except Exception as error:
            failed(error, key, new)
            return
        write_value(key, value, timestamp_ms)

    return process_update


def _create_transformation_without_store(
    binding: Binding, view: TransformedView, transform: Transform
) -> ForwardUpdate:
    downstream, failed, sends_old = (
        binding.downstream,
        binding.skip_record_or_raise,
        view.sends_old_values,
    )

    def process_update(key: Any, new: Any, old: Any, timestamp_ms: int, latest: bool) -> None:
        try:
            new_result = transform(key, new, timestamp_ms)
            old_result = transform(key, old, timestamp_ms) if sends_old else None
        except Exception as error:
            failed(error, key, new)
            return
        downstream(key, new_result, old_result, timestamp_ms, latest)

    return process_update
