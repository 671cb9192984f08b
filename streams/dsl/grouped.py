"""Grouped: aggregate records by key.

If the key was changed since the records were read, they first go through a repartition topic, so
that all records of a key are in one partition, and so in one task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams import serdes
from streams.dsl.builder import Builder, known
from streams.dsl.cogrouped import Cogrouped, cogrouping
from streams.dsl.functions import callable_for
from streams.dsl.instead import Instead
from streams.dsl.materialized import Store
from streams.dsl.table import KINDS, Table
from streams.dsl.windowed import WindowedGroup
from streams.errors import TopologyError
from streams.operators import folding
from streams.operators.aggregate import Fold, aggregate, aggregating, reducing
from streams.operators.count import count
from streams.operators.folding import Folding
from streams.serdes import Serde
from streams.topology.nodes import Node, Operator
from streams.topology.rules import Aggregated
from streams.topology.views import StoredView, View
from streams.windows import Windows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, repr=False)
class Grouped(Instead, Generic[K, V]):
    """Represents records grouped by key (Kafka Streams' KGroupedStream)."""

    _builder: Builder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _rekeyed: bool
    _name: str | None = None
    """The name of the one repartition topic for all aggregations; None: each has its own."""

    def count(self, *, store: str | Store | None = None, name: str | None = None) -> Table[K, int]:
        """Count the records of each key into a table.

        `store` names the store and, through it, its changelog and the repartition topic: names
        that stay when the code changes keep the state.
        """
        rule = Aggregated(folding=folding.counting(), commutative=True)
        return self._table("KSTREAM-AGGREGATE", count, serdes.int64, store, name, rule)

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
        """
        step = self._builder.graph.name("KSTREAM-REDUCE", name)
        callable_for(step, reducer, ("old", "new"))
        value = known(self._value, "value", step)
        rule = Aggregated(folding=folding.reducing(reducer), commutative=commutative)
        return self._folded("KSTREAM-REDUCE", reducing(reducer), value, store, name, rule)

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
        """
        step = self._builder.graph.name("KSTREAM-AGGREGATE", name)
        callable_for(step, initializer, ())
        callable_for(step, aggregator, ("key", "value", "aggregate"))
        if value is None and not (isinstance(store, Store) and store.value):
            raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")
        fold = aggregating(initializer, aggregator)
        rule = Aggregated(folding=Folding(initializer, aggregator), commutative=commutative)
        return self._folded("KSTREAM-AGGREGATE", fold, value, store, name, rule)

    def windowed_by(self, windows: Windows) -> WindowedGroup[K, V]:
        """Divide each key's records into windows of time: one of `streams.windows`."""
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
        """Begin to fold this group's records and those of others into one table.

        `grouped.cogroup(fn).cogroup(other, fn).aggregate(initializer)`: each function takes `(key,
        value, aggregate)` of its own group.
        """
        return Cogrouped(self._builder, (cogrouping(self, self, aggregator),))

    def _folded(
        self,
        kind: str,
        fold: Fold,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        rule: Aggregated,
    ) -> Table[Any, Any]:
        """Add an aggregation by `fold` and return its table."""
        return self._table(kind, lambda view: aggregate(view, fold), value, store, name, rule)

    def _table(
        self,
        kind: str,
        operator: Callable[[View], Operator],
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
        rule: Aggregated,
    ) -> Table[Any, Any]:
        """Add an aggregation, repartitioned if re-keyed, and return its table."""
        builder = self._builder
        step = builder.graph.name(kind, name)
        key = known(self._key, "key", step)
        store_or_name = store or f"{step}-STATE-STORE"
        spec = builder.own_store(store_or_name, step, key, value, kinds=KINDS)
        parent = self._node
        if self._rekeyed:
            parent = builder.repartitioned(parent, self._name or spec.name, step, key, self._value)
        view = StoredView(spec)
        node = builder.step(
            kind, parent, operator(view), name=step, stores=[spec.name], updates=True, rule=rule
        )
        return Table(builder, node, key, spec.value, view)
