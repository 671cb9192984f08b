"""Expand the graph as it was described to the one that runs: one step may become several.

Every pass makes new nodes and leaves the described ones alone, so that an application can be
described further, and built again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from streams.operators.filter import drop
from streams.topology.nodes import (
    Graph,
    Node,
    ProcessorNode,
    RepartitionNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.topology.null_keys import before_joins_without_key
from streams.topology.optimize import (
    MERGE_REPARTITION_TOPICS,
    REUSE_SOURCE_TOPICS,
    SINGLE_STORE_SELF_JOIN,
    merge_repartition_topics,
    reuse_source_topics,
)
from streams.topology.stream_join import StreamJoinNode, join_steps

B = TypeVar("B", bound=SourceNode | SinkNode | StoreSpec)


def finished(application_id: str, graph: Graph, optimizations: Collection[str] = ()) -> Graph:
    """Return the graph that runs, with the chosen optimizations applied.

    Each RepartitionNode becomes a filter, a sink and a source, each StreamJoinNode the steps of its
    two sides, and every serde is bound to the topic that it reads or writes: a store's to its
    changelog, if it has one or not, or to the topic that takes its place.
    """
    if REUSE_SOURCE_TOPICS in optimizations:
        graph = reuse_source_topics(graph)
    if MERGE_REPARTITION_TOPICS in optimizations:
        graph = merge_repartition_topics(graph)
    if SINGLE_STORE_SELF_JOIN in optimizations:
        graph = rewritten(graph, _self_joined_once)
        for node in graph.nodes:
            if isinstance(node, StreamJoinNode) and node.single_store:
                del graph.stores[node.other_store]
    without_key = before_joins_without_key(graph)
    whole = rewritten(graph, lambda node: _expanded(application_id, node, without_key))
    bound = rewritten(whole, lambda node: [_bound(node)])
    stores = bound.stores
    stores |= {name: on_changelog(application_id, spec) for name, spec in stores.items()}
    for name, table in bound.global_tables.items():
        bound.global_tables[name] = replace(table, store=_on(table.topic, table.store))
    return bound


def changelog(application_id: str, store: str) -> str:
    """Return the name of a store's changelog topic."""
    return f"{application_id}-{store}-changelog"


def on_changelog(application_id: str, spec: StoreSpec) -> StoreSpec:
    """Return a store's spec with its serdes bound to the changelog topic.

    For steps that use the serdes beside the store.
    """
    return _on(spec.source_topic or changelog(application_id, spec.name), spec)


def rewritten(graph: Graph, change: Callable[[Node], Iterable[Node]]) -> Graph:
    """Return the graph with every node replaced by those that `replace_node` makes of it.

    `replace_node` is handed the node with its parents already replaced. The children follow the
    last of the new nodes.
    """
    nodes: list[Node] = []
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        new_nodes = list(change(_behind(node, replaced, graph.global_tables)))
        nodes += new_nodes
        replaced[node] = new_nodes[-1]
    groups = [tuple(replaced[node] for node in group) for group in graph.copartitioned]
    return Graph(
        nodes=nodes,
        stores=dict(graph.stores),
        global_tables=dict(graph.global_tables),
        copartitioned=groups,
    )


def _behind(node: Node, now: Mapping[Node, Node], global_tables: Collection[str]) -> Node:
    """Return a node with its parents replaced, and without the stores of global tables."""
    parents = tuple(now[parent] for parent in node.parents)
    if isinstance(node, ProcessorNode):
        # Every step can read the replica of a global table: it connects no steps into one task.
        stores = tuple(name for name in node.stores if name not in global_tables)
        return replace(node, parents=parents, stores=stores)
    return replace(node, parents=parents)


def _self_joined_once(node: Node) -> list[Node]:
    """Let a stream joined with itself keep its records in a single store."""
    if isinstance(node, StreamJoinNode) and node.is_self_join:
        return [replace(node, single_store=True)]
    return [node]


def _bound(node: Node) -> Node:
    """Bind the serdes of a source or a sink with a fixed topic.

    A sink whose topic a function chooses binds its serdes at each record.
    """
    if isinstance(node, SourceNode | SinkNode) and isinstance(node.topic, str):
        return _on(node.topic, node)
    return node


def _on(topic: str, of: B) -> B:
    """Return a source, a sink or a store with its serdes bound to `topic`."""
    key, value = of.key.for_topic(topic, "key"), of.value.for_topic(topic, "value")
    return replace(of, key=key, value=value)


def _expanded(application_id: str, node: Node, without_key: Collection[str]) -> Iterable[Node]:
    """Return the nodes that run for a described one.

    `steps_needing_null_keys` names the repartitions whose records are needed though they have no
    key.
    """
    if isinstance(node, StreamJoinNode):
        return join_steps(node)
    if not isinstance(node, RepartitionNode):
        return [node]
    base = f"{node.base}-repartition"
    topic = f"{application_id}-{base}"
    expanded: list[Node] = []
    parents = node.parents
    if not node.keeps_null_keys and node.name not in without_key:
        with_key = drop(lambda key, _: key is None)
        expanded.append(ProcessorNode(name=f"{base}-filter", parents=parents, operator=with_key))
        parents = (expanded[-1],)
    expanded.append(
        SinkNode(
            name=f"{base}-sink",
            parents=parents,
            topic=topic,
            key=node.key,
            value=node.value,
            internal=True,
            partitions=node.partitions,
            partitioner=node.partitioner,
        )
    )
    expanded.append(
        SourceNode(
            name=f"{base}-source", topic=topic, key=node.key, value=node.value, internal=True
        )
    )
    return expanded
