"""Transform a table's values by a user's ValueTransformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.dsl.materialized import Store
from streams.dsl.processing import processor_stores
from streams.dsl.table import KINDS, Table
from streams.operators.transform_values import Factory, TransformedView, transform_values
from streams.processor.transformer import ValueTransformer
from streams.serdes import Serde


def transformed(
    table: Table[Any, Any],
    factory: Factory,
    stores: Sequence[str | Store],
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
) -> Table[Any, Any]:
    """Return a table whose values the transformers made by `factory` compute.

    Raises TopologyError naming the step.
    """
    builder = table._builder
    step = builder.graph.name("KTABLE-TRANSFORMVALUES", name)
    used = processor_stores(builder, step, factory, stores, kind=ValueTransformer)
    value = value or table._value
    spec = None
    if store is not None:
        spec = builder.own_store(store, step, table._key, value, kinds=KINDS)
    view = TransformedView(step, table._view, factory, used, spec)
    node = builder.step(
        "KTABLE-TRANSFORMVALUES",
        table._node,
        transform_values(view),
        name=step,
        stores=[*used, *([] if spec is None else [spec.name])],
        updates=True,
    )
    return Table(builder, node, table._key, value if spec is None else spec.value, view)
