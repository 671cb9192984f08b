"""Grouped: records by key, ready to be aggregated.

If the key was changed since the records were read, they first go through a repartition topic, so
that all records of a key are in one partition, and so in one task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams import serdes
from streams.dsl.builder import Builder, known
from streams.dsl.materialized import Store
from streams.dsl.table import Table
from streams.operators.count import count
from streams.operators.filter import drop
from streams.serdes import Serde
from streams.topology.nodes import Node, SinkNode, SourceNode

K = TypeVar("K")
V = TypeVar("V")


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
        graph = self._builder.graph
        step = graph.name("KSTREAM-AGGREGATE", name)
        key = known(self._key, "key", step)
        if store is None:
            store = f"{step}-STATE-STORE"
        kept = self._builder.own_store(store, step, key, serdes.int64)
        parent = self._repartition(kept.name, step) if self._rekeyed else self._node
        node = self._builder.step(
            "KSTREAM-AGGREGATE",
            parent,
            count(kept.name, caching=kept.caching),
            name=step,
            stores=[kept.name],
        )
        return Table(self._builder, node, key, serdes.int64)

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
