"""Grouped: records by key, ready to be aggregated.

If the key was changed since the records were read, they first go through a repartition topic, so
that all records of a key are in one partition, and so in one task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams import serdes
from streams.dsl.builder import Builder, callable_for, known
from streams.dsl.materialized import Store
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.operators.aggregate import Fold, aggregate, aggregating, reducing
from streams.operators.count import count
from streams.operators.filter import drop
from streams.serdes import Serde
from streams.topology.nodes import Node, Operator, SinkNode, SourceNode

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Grouped(Generic[K, V]):
    """Records grouped by key."""

    _builder: Builder
    _node: Node
    _key: Serde[Any] | None
    _value: Serde[Any] | None
    _rekeyed: bool

    def count(self, *, store: str | Store | None = None, name: str | None = None) -> Table[K, int]:
        """How many records each key has, as a table.

        `store` names the store and, through it, its changelog and the repartition topic: names
        that stay when the code changes keep the state.
        """
        return self._table(
            "KSTREAM-AGGREGATE",
            lambda kept, _: count(kept.name, caching=kept.caching),
            serdes.int64,
            store,
            name,
        )

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """The values of each key combined: `reducer(old, new)`. A key's first value is taken as it
        is; None deletes the key."""
        step = self._builder.graph.name("KSTREAM-REDUCE", name)
        callable_for(step, reducer)
        value = known(self._value, "value", step)
        return self._folded("KSTREAM-REDUCE", reducing(reducer), value, store, name)

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value: Serde[A] | None = None,
        store: str | Store | None = None,
        name: str | None = None,
    ) -> Table[K, A]:
        """The values of each key folded: `aggregator(key, value, aggregate)` returns the next
        aggregate, and may change the one it is handed; the first is `initializer()`.

        `value` is the serde of the aggregate, unless the store has one. None deletes the key: its
        next record begins anew.
        """
        step = self._builder.graph.name("KSTREAM-AGGREGATE", name)
        for function in (initializer, aggregator):
            callable_for(step, function)
        if value is None and not (isinstance(store, Store) and store.value):
            raise TopologyError(f"step {step!r} needs the serde of its aggregate: value=serdes.…")
        fold = aggregating(initializer, aggregator)
        return self._folded("KSTREAM-AGGREGATE", fold, value, store, name)

    def _folded(
        self,
        kind: str,
        fold: Fold,
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
    ) -> Table[Any, Any]:
        def operator(kept: Store, serde: Serde[Any]) -> Operator:
            return aggregate(kept.name, serde, fold, caching=kept.caching)

        return self._table(kind, operator, value, store, name)

    def _table(
        self,
        kind: str,
        operator: Callable[[Store, Serde[Any]], Operator],
        value: Serde[Any] | None,
        store: str | Store | None,
        name: str | None,
    ) -> Table[Any, Any]:
        step = self._builder.graph.name(kind, name)
        key = known(self._key, "key", step)
        kept = self._builder.own_store(store or f"{step}-STATE-STORE", step, key, value)
        parent = self._repartition(kept.name, step) if self._rekeyed else self._node
        serde = self._builder.graph.stores[kept.name].value
        node = self._builder.step(
            kind, parent, operator(kept, serde), name=step, stores=[kept.name]
        )
        return Table(self._builder, node, key, serde)

    def _repartition(self, base: str, step: str) -> SourceNode:
        """Through `<application.id>-<base>-repartition`. Records without a key have no group."""
        graph = self._builder.graph
        topic = f"{self._builder.application_id}-{base}-repartition"
        key = known(self._key, "key", step)
        value = known(self._value, "value", step)
        with_key = self._builder.step(
            "KSTREAM-FILTER",
            self._node,
            drop(lambda key, _: key is None),
            name=f"{base}-repartition-filter",
        )
        sink = SinkNode(
            name=f"{base}-repartition-sink",
            parents=(with_key,),
            topic=topic,
            key=key,
            value=value,
            internal=True,
        )
        graph.add(sink)
        source = SourceNode(
            name=f"{base}-repartition-source", topic=topic, key=key, value=value, internal=True
        )
        graph.add(source)
        return source
