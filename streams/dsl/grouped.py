"""Define Grouped, which aggregates records by key.

If the key was changed since the records were read, they first go through a repartition topic, so
that all records of a key are in one partition, and so in one task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams import serdes
from streams.dsl.aggregate_checks import check_returns_aggregate
from streams.dsl.aggregation_arguments import refuse_wrong_arguments
from streams.dsl.builder import InternalStreamsBuilder, get_store_or_default_name, require_serde
from streams.dsl.cogrouped import Cogrouped, check_cogroup
from streams.dsl.function_checks import check_callable
from streams.dsl.kafka_streams_names import DslBase
from streams.dsl.table import TABLE_STORE_KINDS, Table
from streams.dsl.windowed import WindowedGroup
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import Node, Operator
from streams.graph.views import StoredView, TableView
from streams.operators import folding
from streams.operators.aggregate import (
    AggregateFold,
    aggregate_records,
    create_aggregate_fold,
    create_reduce_fold,
)
from streams.operators.count import count_records
from streams.operators.folding import WindowFold
from streams.serdes import Serde
from streams.topology.rules import AggregationRule
from streams.windows import Windows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, repr=False)
class Grouped(DslBase, Generic[K, V]):
    """Represents records grouped by key (Kafka Streams' KGroupedStream).

    Records without a key are dropped, and those without a value too, except in windows, where they
    count. All methods raise TopologyError, naming the step, for a function that can't be called
    with the step's arguments, a store of the wrong kind, or a serde that is needed and unknown.

    The examples of its methods go on from this one:

    >>> app = App("shop")
    >>> orders = app.stream("orders", key=serdes.string, value=serdes.int64)
    >>> by_name = orders.group_by_key()
    >>> def run(table):
    ...     table.to_stream().to("result", value=serdes.json)
    ...     with TopologyTestDriver(app) as driver:
    ...         driver.topic("orders").pipe_many([("ann", 5), ("bob", 50), ("ann", 7)])
    ...         return driver.topic("result").read_pairs()
    """

    _builder: InternalStreamsBuilder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _rekeyed: bool
    _name: str | None = None
    """The name of the one repartition topic for all aggregations; None: each has its own."""

    @refuse_wrong_arguments
    def count(self, *, store: str | Store | None = None, name: str | None = None) -> Table[K, int]:
        """Count the records of each key into a table.

        `store` names the store and, through it, its changelog and the repartition topic: names
        that stay when the code changes keep the state.

        >>> run(by_name.count(store="counts"))
        [('ann', 1), ('bob', 1), ('ann', 2)]
        """
        rule = AggregationRule(folding=folding.create_count_fold(), commutative=True)
        return self._add_aggregation(
            "KSTREAM-AGGREGATE", count_records, serdes.int64, store, name, rule
        )

    @refuse_wrong_arguments
    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        commutative: bool = False,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Combine the values of each key by `reducer(old, new)` into a table.

        A key's first value is taken as it is; None deletes the key.

        `commutative` says that the values of a key may be combined in any order, with the same
        result and no None on the way: then Spark can check it (docs/spark.md).

        >>> run(by_name.reduce(lambda old, new: old + new, store="totals"))
        [('ann', 5), ('bob', 50), ('ann', 12)]
        """
        step = self._builder.graph.choose_step_name("KSTREAM-REDUCE", name)
        check_callable(step, reducer, ("old", "new"))
        value = require_serde(self._value, "value", step)
        rule = AggregationRule(folding=folding.create_reduce_fold(reducer), commutative=commutative)
        return self._add_fold(
            "KSTREAM-REDUCE", create_reduce_fold(reducer), value, store, name, rule
        )

    @refuse_wrong_arguments
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        commutative: bool = False,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, A]:
        """Fold the values of each key by `aggregator(key, value, aggregate)` into a table.

        The function returns the next aggregate, and may change the one it is handed; the first is
        `initializer()`. `value` is the serde of the aggregate, unless the store has one. None
        deletes the key: its next record begins anew. `commutative` says that a key's values may be
        folded in any order, with the same result and no None on the way: then Spark can check it
        (docs/spark.md).

        >>> run(by_name.aggregate(list, lambda name, total, old: [*old, total], value=serdes.json))
        [('ann', [5]), ('bob', [50]), ('ann', [5, 7])]
        """
        step = self._builder.graph.choose_step_name("KSTREAM-AGGREGATE", name)
        check_callable(step, initializer, ())
        check_callable(step, aggregator, ("key", "value", "aggregate"))
        check_returns_aggregate(step, initializer, aggregator)
        if value is None and not (isinstance(store, Store) and store.value):
            raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")
        fold = create_aggregate_fold(initializer, aggregator)
        rule = AggregationRule(folding=WindowFold(initializer, aggregator), commutative=commutative)
        return self._add_fold("KSTREAM-AGGREGATE", fold, value, store, name, rule)

    def windowed_by(self, windows: Windows) -> WindowedGroup[K, V]:
        """Divide each key's records into windows of time: one of `streams.windows`.

        >>> by_hour = by_name.windowed_by(windows.tumbling(timedelta(hours=1)))
        >>> by_hour.count(store="hourly").to_stream().to("hourly")
        >>> with TopologyTestDriver(app) as driver:
        ...     driver.topic("orders").pipe("ann", 5, timestamp_ms=3_600_001)
        ...     driver.topic("hourly").read_pairs()
        [(Windowed(key='ann', start_ms=3600000, end_ms=7200000), 1)]
        """
        if not isinstance(windows, Windows):
            raise TopologyError(
                f"windowed_by({windows!r}): take windows.tumbling, hopping, sliding, session or "
                "unlimited"
            )
        return WindowedGroup(
            self._builder,
            self._node,
            self._key,
            self._value,
            self._rekeyed,
            windows,
            self._name,
        )

    def cogroup(self, aggregator: Callable[[K, V, A], A]) -> Cogrouped[K, A]:
        """Return a Cogrouped of this group, to which others that share its key can be added.

        `grouped.cogroup(fn).cogroup(other, fn).aggregate(initializer)`: each function takes `(key,
        value, aggregate)` of its own group.

        >>> returns = app.stream("returns", key=serdes.string, value=serdes.int64).group_by_key()
        >>> both = by_name.cogroup(lambda name, total, sum: sum + total)
        >>> both = both.cogroup(returns, lambda name, total, sum: sum - total)
        >>> run(both.aggregate(int, value=serdes.int64))
        [('ann', 5), ('bob', 50), ('ann', 12)]
        """
        return Cogrouped(self._builder, (check_cogroup(self, self, aggregator),))

    def _add_fold(
        self,
        kind: str,
        fold: AggregateFold,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        rule: AggregationRule,
    ) -> Table[Any, Any]:
        """Add an aggregation by `fold` and return its table."""
        return self._add_aggregation(
            kind, lambda view: aggregate_records(view, fold), value, store, name, rule
        )

    def _add_aggregation(
        self,
        kind: str,
        create_operator: Callable[[TableView], Operator],
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        rule: AggregationRule,
    ) -> Table[Any, Any]:
        """Add an aggregation, repartitioned if re-keyed, and return its table."""
        builder = self._builder
        step = builder.graph.choose_step_name(kind, name)
        key = require_serde(self._key, "key", step)
        store_or_name = get_store_or_default_name(store, step)
        spec = builder.declare_own_store(store_or_name, step, key, value, kinds=TABLE_STORE_KINDS)
        parent = self._node
        if self._rekeyed:
            parent = builder.add_repartition(
                parent, self._name or spec.name, step, key, self._value
            )
        view = StoredView(spec)
        node = builder.add_step(
            kind,
            parent,
            create_operator(view),
            name=step,
            stores=[spec.name],
            emits_updates=True,
            rule=rule,
        )
        return Table(builder, node, key, spec.value, view)
