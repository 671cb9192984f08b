"""From the graph as it was described to the one that runs: a step to a user may be several.

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
    """`graph` with each RepartitionNode as a filter, a sink and a source, each StreamJoinNode as
    the steps of its two sides, and every serde bound to the topic that it reads or writes: a
    store's to its changelog, if it has one or not, or to the topic that takes its place."""
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
    """The changelog topic of a store."""
    return f"{application_id}-{store}-changelog"


def on_changelog(application_id: str, spec: StoreSpec) -> StoreSpec:
    """A store with its serdes bound: for steps that use them beside the store."""
    return _on(spec.source_topic or changelog(application_id, spec.name), spec)


def rewritten(graph: Graph, change: Callable[[Node], Iterable[Node]]) -> Graph:
    """Every node replaced by those that `change` makes of it, which is handed the node with its
    parents already replaced. The children follow the last of them."""
    nodes: list[Node] = []
    now: dict[Node, Node] = {}
    for node in graph.nodes:
        made = list(change(_behind(node, now, graph.global_tables)))
        nodes += made
        now[node] = made[-1]
    groups = [tuple(now[node] for node in group) for group in graph.copartitioned]
    return Graph(
        nodes=nodes,
        stores=dict(graph.stores),
        global_tables=dict(graph.global_tables),
        copartitioned=groups,
    )


def _behind(node: Node, now: Mapping[Node, Node], global_tables: Collection[str]) -> Node:
    parents = tuple(now[parent] for parent in node.parents)
    if isinstance(node, ProcessorNode):
        # The copy of a global table is there for every step, and connects none with another.
        stores = tuple(name for name in node.stores if name not in global_tables)
        return replace(node, parents=parents, stores=stores)
    return replace(node, parents=parents)


def _self_joined_once(node: Node) -> list[Node]:
    if isinstance(node, StreamJoinNode) and node.is_self_join:
        return [replace(node, single_store=True)]
    return [node]


def _bound(node: Node) -> Node:
    """Where a function chooses the topic, the sink binds its serdes."""
    if isinstance(node, SourceNode | SinkNode) and isinstance(node.topic, str):
        return _on(node.topic, node)
    return node


def _on(topic: str, of: B) -> B:
    key, value = of.key.for_topic(topic, "key"), of.value.for_topic(topic, "value")
    return replace(of, key=key, value=value)


def _expanded(application_id: str, node: Node, without_key: Collection[str]) -> Iterable[Node]:
    """`without_key` names the steps whose records are needed though they have no key."""
    if isinstance(node, StreamJoinNode):
        return join_steps(node)
    if not isinstance(node, RepartitionNode):
        return [node]
    base = f"{node.base}-repartition"
    topic = f"{application_id}-{base}"
    made: list[Node] = []
    parents = node.parents
    if not node.keeps_null_keys and node.name not in without_key:
        with_key = drop(lambda key, _: key is None)
        made.append(ProcessorNode(name=f"{base}-filter", parents=parents, operator=with_key))
        parents = (made[-1],)
    made.append(
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
    made.append(
        SourceNode(
            name=f"{base}-source", topic=topic, key=node.key, value=node.value, internal=True
        )
    )
    return made
