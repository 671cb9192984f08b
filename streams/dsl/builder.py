"""Build the graph of an application: add steps, declare stores and require serdes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from streams.dsl.materialized import Store
from streams.errors import TopologyError
from streams.serdes import Serde
from streams.topology.nodes import (
    Graph,
    Node,
    Operator,
    ProcessorNode,
    RepartitionNode,
    StoreKind,
    StoreSpec,
)
from streams.topology.rules import Rule

_MEANT: dict[type, str] = {
    bytes: "bytes",
    dict: "json",
    float: "float64",
    int: "int64",
    list: "json",
    str: "string",
}
"""The serde that is probably meant where a Python type is given."""


@dataclass(slots=True)
class Builder:
    """Collects the steps and stores of one application while it is described.

    Kafka Streams' InternalStreamsBuilder.
    """

    application_id: str
    graph: Graph = field(default_factory=Graph)

    def step(
        self,
        kind: str,
        parents: Node | tuple[Node, ...],
        operator: Operator,
        *,
        name: str | None,
        stores: Iterable[str] = (),
        updates: bool = False,
        keeps_records: bool = False,
        only_passes_on: bool = False,
        joins_without_key: bool = False,
        keeps_time: bool = False,
        grace_ms: int | None = None,
        rule: Rule | None = None,
    ) -> ProcessorNode:
        """Add a processor step behind `parents` and return it; see ProcessorNode."""
        node = ProcessorNode(
            name=self.graph.name(kind, name),
            parents=(parents,) if isinstance(parents, Node) else parents,
            operator=operator,
            kind=kind,
            stores=list(stores),
            updates=updates,
            keeps_records=keeps_records,
            only_passes_on=only_passes_on,
            joins_without_key=joins_without_key,
            keeps_time=keeps_time,
            grace_ms=grace_ms,
            rule=rule,
        )
        self.graph.add(node)
        return node

    def merged(
        self, kind: str, parents: Iterable[Node], operator: Operator, *, name: str | None
    ) -> ProcessorNode:
        """Add and return a step that forwards the updates of several steps as one table's."""
        node = ProcessorNode(
            name=self.graph.name(kind, name),
            parents=tuple(parents),
            operator=operator,
            stores=[],
            updates=True,
            only_passes_on=True,
        )
        self.graph.add(node)
        return node

    def repartitioned(
        self,
        parent: Node,
        base: str,
        step: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        keeps_null_keys: bool = False,
    ) -> RepartitionNode:
        """Return a step that sends a parent's records through a repartition topic.

        The topic is `<application.id>-<base>-repartition`. A second call with equal arguments
        returns the same step. `step` is the step that needs it, for messages. Raises TopologyError.
        """
        if not isinstance(base, str):
            raise TopologyError(f"step {step!r}: its group's name=... is {base!r}: it is text")
        node = RepartitionNode(
            name=f"{base}-repartition",
            parents=(parent,),
            base=base,
            key=known(key, "key", step),
            value=known(value, "value", step),
            keeps_null_keys=keeps_null_keys,
        )
        for existing in self.graph.nodes:
            if isinstance(existing, RepartitionNode) and (
                (existing.base, existing.parents, existing.key, existing.value)
                == (node.base, node.parents, node.key, node.value)
            ):
                return existing
        self.graph.add(node)
        return node

    def own_store(
        self,
        store: str | Store,
        step: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        kinds: Collection[StoreKind] = (StoreKind.KEY_VALUE,),
    ) -> StoreSpec:
        """Declare a store that only `step` writes, to keep its results in, and return its spec.

        Raises TopologyError.
        """
        spec = self.store_for(store, step, key, value, kinds=kinds)
        self.graph.declare(spec, owner=object())
        return spec

    def store_for(
        self,
        store: str | Store,
        step: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        kinds: Collection[StoreKind] = (StoreKind.KEY_VALUE,),
        windowed: bool = False,
    ) -> StoreSpec:
        """Return the spec of the store in which `step` would keep its results, undeclared.

        It must be of one of `kinds`. With `is_windowed` the step keeps windows, and `retention=`
        has a meaning. Raises TopologyError.
        """
        declared = Store.persistent(store) if isinstance(store, str) else store
        if not isinstance(declared, Store):
            raise TopologyError(f"step {step!r}: store={store!r} is neither a Store nor a name")
        return declared.spec(key, value, kinds=kinds, step=step, windowed=windowed)

    def shared_store(self, store: Store, step: str) -> str:
        """Declare a store that processors bring and return its name; several may bring the same."""
        self.graph.declare(store.spec(None, None, step=step), owner=store)
        return store.name


def known(serde: Serde[Any] | None, what: str, step: str) -> Serde[Any]:
    """Return `serde`, or raise TopologyError that names the step which needs it."""
    if serde is None:
        raise TopologyError(
            f"step {step!r} needs a {what} serde and none is known here: "
            f"pass {what}=serdes.... to the step that made the {what} (map and flat_map keep no "
            "serde), to group_by, or to to()"
        )
    if not isinstance(serde, Serde):
        raise TopologyError(f"step {step!r}: {what}={serde!r} is not a serde{_meant(serde, what)}")
    return serde


def _meant(serde: object, what: str) -> str:
    """Return a hint for a message: what was probably meant by a value that is no serde."""
    if isinstance(serde, type) and serde in _MEANT:
        return f": did you mean {what}=serdes.{_MEANT[serde]}?"
    if getattr(serde, "__module__", "").startswith("streams.serdes"):
        return ": it makes serdes, so call it"
    if callable(serde):
        return f": a {what} is computed by a step before, as select_key or map_values"
    return ""
