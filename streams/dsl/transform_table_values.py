"""Transform a table's values by a user's ValueTransformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.dsl.processor_stores import connect_processor_stores
from streams.dsl.table import TABLE_STORE_KINDS, Table
from streams.graph.materialized import Store
from streams.operators.transform_values import (
    TransformedView,
    TransformerFactory,
    transform_row_values,
)
from streams.processor.processor_supplier import ValueTransformerSupplier
from streams.processor.transformer import ValueTransformer
from streams.serdes import Serde


def transform_table_values(
    table: Table[Any, Any],
    supplier: TransformerFactory | ValueTransformerSupplier,
    stores: Sequence[str | Store],
    value: Serde[Any] | None,
    store: str | Store | None,
    name: str | None,
    *,
    co_partitioned: bool,
) -> Table[Any, Any]:
    """Return a table whose values the transformers of `supplier` compute.

    Raises TopologyError naming the step.
    """
    builder = table._builder
    step = builder.graph.choose_step_name("KTABLE-TRANSFORMVALUES", name)
    factory, used = connect_processor_stores(builder, step, supplier, stores, kind=ValueTransformer)
    value = value or table._value
    spec = None
    if store is not None:
        spec = builder.declare_own_store(store, step, table._key, value, kinds=TABLE_STORE_KINDS)
    view = TransformedView(step, table._view, factory, used, spec)
    node = builder.add_step(
        "KTABLE-TRANSFORMVALUES",
        table._node,
        transform_row_values(view),
        name=step,
        stores=[*used, *([] if spec is None else [spec.name])],
        emits_updates=True,
        co_partitioned=co_partitioned,
    )
    return Table(builder, node, table._key, value if spec is None else spec.value, view)
