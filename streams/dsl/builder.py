"""What the steps of the DSL share: the graph they add to, and the rules of serdes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streams.dsl.materialized import Store
from streams.errors import TopologyError
from streams.serdes import Serde
from streams.topology.nodes import Graph, Node, Operator, ProcessorNode, StoreKind


@dataclass(slots=True)
class Builder:
    """The graph of one application while it is described."""

    application_id: str
    graph: Graph = field(default_factory=Graph)

    def step(
        self,
        kind: str,
        parent: Node,
        operator: Operator,
        *,
        name: str | None,
        stores: Iterable[str] = (),
    ) -> ProcessorNode:
        node = ProcessorNode(
            name=self.graph.name(kind, name),
            parents=(parent,),
            operator=operator,
            stores=tuple(stores),
        )
        self.graph.add(node)
        return node

    def own_store(
        self, store: str | Store, step: str, key: Serde[Any], value: Serde[Any] | None
    ) -> Store:
        """The key-value store that `step` keeps its results in, declared: its alone to write."""
        kept = Store.persistent(store) if isinstance(store, str) else store
        if not isinstance(kept, Store):
            raise TopologyError(f"step {step!r}: store={store!r} is neither a Store nor a name")
        spec = kept.spec(key, value, kind=StoreKind.KEY_VALUE, step=step)
        self.graph.declare(spec, owner=object())
        return kept

    def shared_store(self, store: Store, step: str) -> str:
        """The name of a store that processors bring, declared once however many of them do."""
        self.graph.declare(store.spec(None, None, step=step), owner=store)
        return store.name


def known(serde: Serde[Any] | None, what: str, step: str) -> Serde[Any]:
    """`serde`, or a TopologyError that names the step which needs it."""
    if serde is None:
        raise TopologyError(
            f"step {step!r} needs a {what} serde and none is known here: "
            f"pass {what}=serdes.... to the step that made the {what} (map and flat_map keep no "
            "serde), to group_by, or to to()"
        )
    if not isinstance(serde, Serde):
        raise TopologyError(f"step {step!r}: {what}={serde!r} is not a serde")
    return serde


def callable_for(step: str, function: object) -> None:
    """Raises TopologyError, naming the step, if `function` can't be called."""
    if not callable(function):
        raise TopologyError(f"step {step!r} needs a function, got {function!r}")
