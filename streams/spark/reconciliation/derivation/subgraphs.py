"""Extract from a sub-topology the steps that certain results depend on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streams.graph.nodes import (
    Binding,
    ForwardUpdate,
    Node,
    Operator,
    ProcessorNode,
    SinkNode,
    SourceNode,
)
from streams.graph.step_traits import MERGED_TABLES, StepTraits
from streams.operators.routing import forward_unchanged
from streams.serdes import Serde
from streams.spark.reconciliation.derivation.determinism import find_ancestors
from streams.topology.build import Subtopology

_FORWARDS_UNCHANGED = StepTraits(is_stateless=True, forwards_unchanged=True)


def extract_steps(
    subtopology: Subtopology,
    targets: Iterable[Node],
    *,
    operators_by_node: Mapping[Node, Operator] | None = None,
    known_sources: Mapping[Node, Sequence[SourceNode]] | None = None,
) -> Subtopology:
    """Extract `targets` and the steps upstream of them as a sub-topology of their own.

    Those of `operators_by_node` have another operator and no stores. Of those of `known_sources`
    the results are known: they come from sources instead. Steps are copied. What steps only do
    beside (peek) is left out.
    """
    operators_by_node, known_sources = operators_by_node or {}, known_sources or {}
    needed = set().union(*(find_ancestors(target, known_sources) for target in targets))
    found: set[Node] = set()
    while found != needed:  # what is added may name children, or write stores, in its turn
        found = set(needed)
        for node in _find_branch_targets(subtopology, found):
            needed |= find_ancestors(node, known_sources)
        needed |= _find_store_writers(subtopology, needed, operators_by_node)
    copies: dict[Node, Node] = {}
    nodes: list[Node] = []
    for node in subtopology.nodes:
        if node not in needed:
            continue
        if node in known_sources:
            sources = tuple(known_sources[node])
            updates = isinstance(node, ProcessorNode) and node.emits_updates
            operator = _create_table_row_forwarder if updates else forward_unchanged
            copies[node] = ProcessorNode(
                name=node.name,
                parents=sources,
                operator=operator,
                emits_updates=updates,
                traits=MERGED_TABLES if updates else _FORWARDS_UNCHANGED,
            )
            nodes += [*sources, copies[node]]
            continue
        copies[node] = _copy_node(node, copies, operators_by_node)
        nodes.append(copies[node])
    named = {name for node in _select_processors(nodes) for name in node.stores}
    stores = tuple(spec for spec in subtopology.stores if spec.name in named)
    return replace(subtopology, nodes=tuple(nodes), stores=stores)


def _find_branch_targets(subtopology: Subtopology, needed_nodes: set[Node]) -> list[Node]:
    """Find the steps that `needed_nodes` name, as a branch does those that it splits into."""
    return [
        node
        for node in subtopology.nodes
        if any(
            parent.traits.names_children and parent in needed_nodes
            for parent in _select_processors(node.parents)
        )
    ]


def _find_store_writers(
    subtopology: Subtopology, needed_nodes: set[Node], operators_by_node: Mapping[Node, Operator]
) -> set[Node]:
    """Find the processors, and steps upstream of them, that write stores of `needed_nodes`."""
    used = {
        name
        for node in _select_processors(needed_nodes)
        if node not in operators_by_node
        for name in node.stores
    }
    others = (
        node
        for node in _select_processors(subtopology.nodes)
        if node.traits.runs_processor and used & set(node.stores)
    )
    return set().union(*map(find_ancestors, others))


def _copy_node(
    node: Node, copies: Mapping[Node, Node], operators_by_node: Mapping[Node, Operator]
) -> Node:
    """Copy a step onto its parents' copies, with a new operator if given; a peek does nothing."""
    parents = tuple(copies[parent] for parent in node.parents)
    if node in operators_by_node:
        return ProcessorNode(
            name=node.name,
            parents=parents,
            operator=operators_by_node[node],
            traits=StepTraits(is_stateless=True),
        )
    if isinstance(node, ProcessorNode) and node.traits.has_side_effects:
        return replace(node, parents=parents, operator=forward_unchanged)
    return replace(node, parents=parents)


def create_known_results_source(topic: str, key: Serde[Any], value: Serde[Any]) -> SourceNode:
    """Create a source node that stands for a step whose results are already known."""
    return SourceNode(name=f"{topic}-rows", topic=topic, key=key, value=value)


def _create_table_row_forwarder(binding: Binding) -> Any:
    """Create the operator that forwards a table's known rows as its updates."""
    downstream: ForwardUpdate = binding.downstream

    def forward_row(key: Any, value: Any, timestamp_ms: int) -> None:
        downstream(key, value, None, timestamp_ms, True)

    return forward_row


def _select_processors(nodes: Iterable[Node]) -> list[ProcessorNode]:
    """Select the processors among nodes."""
    return [node for node in nodes if isinstance(node, ProcessorNode)]


def group_sinks_by_topic(nodes: Collection[Node]) -> dict[str, list[SinkNode]]:
    """Group sinks by the fixed name of the topic that they write."""
    sinks: dict[str, list[SinkNode]] = {}
    for node in nodes:
        if isinstance(node, SinkNode) and isinstance(node.topic, str):
            sinks.setdefault(node.topic, []).append(node)
    return sinks
