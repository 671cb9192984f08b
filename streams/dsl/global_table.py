"""GlobalTable: a topic that every worker has the whole of, for look-ups by any key.

Streams join with it without being partitioned like it; processors read its store. Nothing else is
made of it: what all workers would do, all would do again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams.dsl.builder import Builder
from streams.dsl.instead import Instead
from streams.dsl.materialized import Store
from streams.serdes import Serde
from streams.topology.nodes import GlobalTableSpec, StoreSpec
from streams.topology.views import GlobalView

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, repr=False)
class GlobalTable(Instead, Generic[K, V]):
    """See `App.global_table`."""

    _builder: Builder
    _view: GlobalView

    @property
    def store(self) -> StoreSpec:
        """Where it is kept; a processor reads it with `context.store(name)`."""
        return self._view.table.store


def global_table_of(
    builder: Builder,
    topic: str,
    key: Serde[Any],
    value: Serde[Any],
    store: str | Store | None,
    name: str | None,
) -> GlobalTable[Any, Any]:
    """Declares it. Raises TopologyError for serdes or a store that can't be."""
    step = builder.graph.name("KSTREAM-GLOBALTABLE", name)
    kept = builder.store_for(store or f"{step}-STATE-STORE", step, key, value)
    table = GlobalTableSpec(name=step, topic=topic, store=kept)
    builder.graph.declare_global(table)
    return GlobalTable(builder, GlobalView(table))
