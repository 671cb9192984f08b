"""Extract from a sub-topology those steps that some results need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streams.operators.routing import forward_unchanged
from streams.serdes import Serde
from streams.spark.books.derived.flows import ASIDE, above
from streams.topology.build import Subtopology
from streams.topology.nodes import (
    Binding,
    ForwardUpdate,
    Node,
    Operator,
    ProcessorNode,
    SinkNode,
    SourceNode,
)


def piece(
    subtopology: Subtopology,
    targets: Iterable[Node],
    *,
    instead: Mapping[Node, Operator] | None = None,
    given: Mapping[Node, Sequence[SourceNode]] | None = None,
) -> Subtopology:
    """Extract the steps before `targets`, which are the last, as a sub-topology.

    Those of `operators_by_node` have another operator and no stores. Of those of `known_sources`
    the results are known: they come from sources instead. Steps are copied. What steps only do
    beside (peek) is left out.
    """
    instead, given = instead or {}, given or {}
    needed = set().union(*(above(target, given) for target in targets))
    for node in subtopology.nodes:  # a branch names all the streams that it splits into
        if any(p.kind == "KSTREAM-BRANCH" and p in needed for p in _processors(node.parents)):
            needed.add(node)
    needed |= _sharing(subtopology, needed, instead)
    copies: dict[Node, Node] = {}
    nodes: list[Node] = []
    for node in subtopology.nodes:
        if node not in needed or _is_aside(node):
            continue
        if node in given:
            sources = tuple(given[node])
            updates = isinstance(node, ProcessorNode) and node.emits_updates
            operator = _rows if updates else forward_unchanged
            copies[node] = ProcessorNode(
                name=node.name, parents=sources, operator=operator, emits_updates=updates
            )
            nodes += [*sources, copies[node]]
            continue
        copies[node] = _copied(node, copies, instead)
        nodes.append(copies[node])
    named = {name for node in _processors(nodes) for name in node.stores}
    stores = tuple(spec for spec in subtopology.stores if spec.name in named)
    return Subtopology(subtopology.number, tuple(nodes), stores)


def _sharing(
    subtopology: Subtopology, needed: set[Node], instead: Mapping[Node, Operator]
) -> set[Node]:
    """Find the processors that write stores which these steps use, with all before them."""
    used = {name for node in _processors(needed) if node not in instead for name in node.stores}
    others = (
        node
        for node in _processors(subtopology.nodes)
        if node.kind == "KSTREAM-PROCESSOR" and used & set(node.stores)
    )
    return set().union(*map(above, others))


def _copied(node: Node, now: Mapping[Node, Node], instead: Mapping[Node, Operator]) -> Node:
    """Copy a step with the copies of its parents, and with another operator if it has one."""
    parents = tuple(now[parent] for parent in node.parents)
    if node in instead:
        return ProcessorNode(name=node.name, parents=parents, operator=instead[node])
    if isinstance(node, ProcessorNode) and node.kind == "KSTREAM-PEEK":
        return replace(node, parents=parents, operator=forward_unchanged)
    return replace(node, parents=parents)


def source_of(topic: str, key: Serde[Any], value: Serde[Any]) -> SourceNode:
    """Create a source for the results of a step that are known already."""
    return SourceNode(name=f"{topic}-rows", topic=topic, key=key, value=value)


def _rows(at: Binding) -> Any:
    """Create the operator that forwards a table's known rows as its updates."""
    downstream: ForwardUpdate = at.downstream

    def forward_row(key: Any, value: Any, timestamp_ms: int) -> None:
        downstream(key, value, None, timestamp_ms, True)

    return forward_row


def _processors(nodes: Iterable[Node]) -> list[ProcessorNode]:
    """Select the processors among nodes."""
    return [node for node in nodes if isinstance(node, ProcessorNode)]


def _is_aside(node: Node) -> bool:
    """Whether a step ends a branch and has nothing but side effects."""
    return isinstance(node, ProcessorNode) and node.kind in ASIDE


def sinks_by_topic(nodes: Collection[Node]) -> dict[str, list[SinkNode]]:
    """Group the sinks that write topics with fixed names by these names."""
    sinks: dict[str, list[SinkNode]] = {}
    for node in nodes:
        if isinstance(node, SinkNode) and isinstance(node.topic, str):
            sinks.setdefault(node.topic, []).append(node)
    return sinks
