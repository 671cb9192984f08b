"""Build the graph of an application: add steps, declare stores and require serdes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from streams.common.names import check_step_name
from streams.errors import TopologyError
from streams.graph.materialized import Store
from streams.graph.nodes import (
    Graph,
    Node,
    Operator,
    ProcessorNode,
    RepartitionNode,
    StoreKind,
    StoreSpec,
)
from streams.graph.step_traits import MERGED_TABLES, UNKNOWN_STEP, StepTraits
from streams.processor.processor_supplier import is_supplier
from streams.serdes import Serde
from streams.settings.topology_settings import ProcessorWrapper
from streams.topology.rules import StepRule

_SERDE_OF_TYPE: dict[type, str] = {
    bytes: "bytes",
    dict: "json",
    float: "float64",
    int: "int64",
    list: "json",
    str: "string",
}
"""The serde that is probably meant where a Python type is given."""


@dataclass(slots=True)
class InternalStreamsBuilder:
    """Collects the steps and stores of one application while it is described.

    Kafka Streams' InternalStreamsBuilder.
    """

    application_id: str
    graph: Graph = field(default_factory=Graph)
    processor_wrapper: ProcessorWrapper | None = None
    """Wraps the processors of the user's and the steps of the DSL (the setting of that name)."""
    wrapped_steps: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = field(
        default_factory=dict
    )
    """By step of the DSL the function that makes its wrapped processors, and their stores."""

    def wrap_processor(self, step: str, create_processor: Callable[[], Any]) -> Any:
        """Return the function that makes the processors of `step`, in the application's wrapper.

        Raises TopologyError if the wrapper returns nothing that does.
        """
        if self.processor_wrapper is None:
            return create_processor
        wrapped = self.processor_wrapper(step, create_processor)
        if not callable(wrapped) and not is_supplier(wrapped):
            raise TopologyError(
                f"step {step!r}: processor_wrapper returned {wrapped!r}, and not a function that "
                "makes the processor"
            )
        return wrapped

    def add_step(
        self,
        kind: str,
        parents: Node | tuple[Node, ...],
        operator: Operator,
        *,
        name: str | None,
        stores: Iterable[str] = (),
        emits_updates: bool = False,
        traits: StepTraits = UNKNOWN_STEP,
        has_stream_time: bool = False,
        grace_ms: int | None = None,
        rule: StepRule | None = None,
        co_partitioned: bool = True,
    ) -> ProcessorNode:
        """Add a processor step behind `parents` and return it; see ProcessorNode."""
        node = ProcessorNode(
            name=self.graph.choose_step_name(kind, name),
            parents=(parents,) if isinstance(parents, Node) else parents,
            operator=operator,
            kind=kind,
            stores=list(stores),
            emits_updates=emits_updates,
            traits=traits,
            has_stream_time=has_stream_time,
            grace_ms=grace_ms,
            rule=rule,
            co_partitioned=co_partitioned,
        )
        self.graph.add_node(node)
        return node

    def add_merge_step(
        self, kind: str, parents: Iterable[Node], operator: Operator, *, name: str | None
    ) -> ProcessorNode:
        """Add and return a step that forwards the updates of several steps as one table's."""
        node = ProcessorNode(
            name=self.graph.choose_step_name(kind, name),
            parents=tuple(parents),
            operator=operator,
            stores=[],
            emits_updates=True,
            traits=MERGED_TABLES,
        )
        self.graph.add_node(node)
        return node

    def add_repartition(
        self,
        parent: Node,
        base_name: str,
        step: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        keeps_null_keys: bool = False,
    ) -> RepartitionNode:
        """Add a step that sends a parent's records through a repartition topic, and return it.

        The topic is `<application.id>-<base>-repartition`. A second call with equal arguments
        returns the same step. `step` is the step that needs it, for messages. Raises TopologyError.
        """
        check_step_name(base_name, f"step {step!r}: its group")
        node = RepartitionNode(
            name=f"{base_name}-repartition",
            parents=(parent,),
            base_name=base_name,
            key=require_serde(key, "key", step),
            value=require_serde(value, "value", step),
            keeps_null_keys=keeps_null_keys,
        )
        for existing in self.graph.nodes:
            if isinstance(existing, RepartitionNode) and (
                (existing.base_name, existing.parents, existing.key, existing.value)
                == (node.base_name, node.parents, node.key, node.value)
            ):
                return existing
        self.graph.add_node(node)
        return node

    def declare_own_store(
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
        spec = self.create_store_spec(store, step, key, value, kinds=kinds)
        self.graph.declare_store(spec, owner=object())
        return spec

    def create_store_spec(
        self,
        store: str | Store,
        step: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        *,
        kinds: Collection[StoreKind] = (StoreKind.KEY_VALUE,),
        is_windowed: bool = False,
    ) -> StoreSpec:
        """Return the spec of a store for the results of `step`, without declaring the store.

        It must be of one of `kinds`; without a name it is named after `step`. With `is_windowed`
        the step keeps windows, and `retention=` has a meaning. Raises TopologyError.
        """
        declared = (
            Store.default(store)
            if isinstance(store, str)
            else get_store_or_default_name(store, step)
        )
        if not isinstance(declared, Store):
            raise TopologyError(f"step {step!r}: store={store!r} is neither a Store nor a name")
        return declared.create_spec(key, value, kinds=kinds, step=step, is_windowed=is_windowed)

    def declare_shared_store(self, store: Store, step: str) -> str:
        """Declare a store that one or more processors use, and return its name."""
        self.graph.declare_store(store.create_spec(None, None, step=step), owner=store)
        return store.name


def get_store_or_default_name(store: str | Store | None, step: str) -> str | Store:
    """Return the store or its name as a user gave it; without one, the name after `step`.

    A name that is empty is no missing one: it is refused where the store is declared.
    """
    if isinstance(store, Store) and not store.name:
        return replace(store, name=f"{step}-STATE-STORE")
    return f"{step}-STATE-STORE" if store is None else store


def require_serde(serde: Serde[Any] | None, role: str, step: str) -> Serde[Any]:
    """Return `serde`, or raise TopologyError that names the step which needs it."""
    if serde is None:
        raise TopologyError(
            f"step {step!r} needs a {role} serde and none is known here: "
            f"pass {role}=serdes.... to the step that made the {role} (map and flat_map keep no "
            "serde), to group_by, or to to()"
        )
    if not isinstance(serde, Serde):
        raise TopologyError(
            f"step {step!r}: {role}={serde!r} is not a serde{_compose_serde_hint(serde, role)}"
        )
    return serde


def _compose_serde_hint(serde: object, role: str) -> str:
    """Return a hint for a message: what was probably meant by a value that is no serde."""
    if isinstance(serde, type) and serde in _SERDE_OF_TYPE:
        return f": did you mean {role}=serdes.{_SERDE_OF_TYPE[serde]}?"
    if getattr(serde, "__module__", "").startswith("streams.serdes"):
        return ": it makes serdes, so call it"
    if callable(serde):
        return f": a {role} is computed by a step before, as select_key or map_values"
    return ""
