"""Define GlobalTable, a topic that every worker replicates as a whole, for look-ups by any key.

Streams join with it without being partitioned like it; processors read its store. It has no other
operations: every worker would do the work of all again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name
from streams.dsl.kafka_streams_names import DslBase
from streams.graph.materialized import Store
from streams.graph.nodes import GlobalTableSpec, StoreSpec
from streams.graph.views import GlobalTableView
from streams.serdes import Serde

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, repr=False)
class GlobalTable(DslBase, Generic[K, V]):
    """Represents a table that every worker replicates; see `App.global_table`.

    Kafka Streams' GlobalKTable.

    >>> app = App("shop")
    >>> rates = app.global_table("rates", key=serdes.string, value=serdes.float64)
    >>> prices = app.stream("prices", key=serdes.string, value=serdes.json)
    >>> paid = prices.join(
    ...     rates,
    ...     lambda price, rate: price["sum"] * rate,
    ...     key=lambda item, price: price["currency"],
    ... )
    >>> paid.to("in-euro", value=serdes.float64)
    >>> with TopologyTestDriver(app) as driver:
    ...     driver.topic("rates").pipe("USD", 0.5)
    ...     driver.topic("prices").pipe("pen", {"sum": 3, "currency": "USD"})
    ...     driver.topic("in-euro").read_pairs()
    [('pen', 1.5)]
    """

    _builder: InternalStreamsBuilder
    _view: GlobalTableView

    @property
    def store(self) -> StoreSpec:
        """Return the spec of its store, which a processor reads with `context.store(name)`."""
        return self._view.table.store


def create_global_table(
    builder: InternalStreamsBuilder,
    topic: str,
    key: Serde[Any],
    value: Serde[Any],
    store: str | Store | None,
    name: str | None,
) -> GlobalTable[Any, Any]:
    """Declare a global table and return it. Raises TopologyError for invalid serdes or store."""
    step = builder.graph.choose_step_name("KSTREAM-GLOBALTABLE", name)
    kept = builder.create_store_spec(get_store_or_default_name(store, step), step, key, value)
    table = GlobalTableSpec(name=step, topic=topic, store=kept)
    builder.graph.declare_global_table(table)
    return GlobalTable(builder, GlobalTableView(table))
