"""Expand the graph as it was described to the one that runs: one step may become several.

Every pass makes new nodes and leaves the described ones alone, so that an application can be
described further, and built again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from streams.graph.global_store_spec import GlobalStoreSpec
from streams.graph.nodes import (
    GlobalTableSpec,
    Graph,
    Node,
    ProcessorNode,
    RepartitionNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.graph.step_traits import StepTraits
from streams.operators.filter import drop_records_without_key
from streams.settings.optimizations import (
    MERGE_REPARTITION_TOPICS,
    REUSE_SOURCE_TOPICS,
    SINGLE_STORE_SELF_JOIN,
)
from streams.settings.timestamp_extractors import TimestampExtractor
from streams.settings.topology_settings import StoreMedium
from streams.topics import is_pattern
from streams.topology.default_stores import keep_default_stores_in_memory
from streams.topology.null_keys import find_steps_above_joins_of_keyless_records
from streams.topology.optimize import merge_repartition_topics, reuse_source_topics
from streams.topology.stream_join_node import StreamJoinNode, expand_stream_join

B = TypeVar("B", bound=SourceNode | SinkNode | StoreSpec | GlobalStoreSpec)


def expand_graph(
    application_id: str,
    graph: Graph,
    optimizations: Collection[str] = (),
    default_timestamp_extractor: TimestampExtractor | None = None,
    *,
    wrap_steps: Callable[[Graph], Graph] | None = None,
    default_store: StoreMedium = "rocksdb",
) -> Graph:
    """Return the graph that runs, with the chosen optimizations applied.

    Each RepartitionNode becomes a filter, a sink and a source, each StreamJoinNode the steps of its
    two sides, and every serde is bound to the topic that it reads or writes: a store's to its
    changelog, if it has one or not, or to the topic that takes its place.
    `wrap_steps` is handed the steps that run, and may add stores.
    """
    graph = rewrite_graph(
        graph, lambda node: [_with_default_extractor(node, default_timestamp_extractor)]
    )
    if REUSE_SOURCE_TOPICS in optimizations:
        graph = reuse_source_topics(graph)
    if MERGE_REPARTITION_TOPICS in optimizations:
        graph = merge_repartition_topics(graph)
    if SINGLE_STORE_SELF_JOIN in optimizations:
        graph = rewrite_graph(graph, _use_single_store_for_self_join)
        for node in graph.nodes:
            if isinstance(node, StreamJoinNode) and node.single_store:
                del graph.stores[node.other_store]
    without_key = find_steps_above_joins_of_keyless_records(graph)
    whole = rewrite_graph(graph, lambda node: _expand_node(application_id, node, without_key))
    if wrap_steps is not None:
        whole = wrap_steps(whole)
    if default_store == "in_memory":
        whole = keep_default_stores_in_memory(whole)
    bound = rewrite_graph(whole, lambda node: [_bind_topic_serdes(node)])
    stores = bound.stores
    stores |= {name: bind_changelog_serdes(application_id, spec) for name, spec in stores.items()}
    for name, table in bound.global_tables.items():
        bound.global_tables[name] = _bind_global_table_serdes(table)
    return bound


def _bind_global_table_serdes(table: GlobalTableSpec) -> GlobalTableSpec:
    """Return a global table with its serdes bound to its topic."""
    table = replace(table, store=bind_serdes(table.topic, table.store))
    return bind_serdes(table.topic, table) if isinstance(table, GlobalStoreSpec) else table


def name_changelog_topic(application_id: str, store: str) -> str:
    """Return the name of a store's changelog topic."""
    return f"{application_id}-{store}-changelog"


def bind_changelog_serdes(application_id: str, spec: StoreSpec) -> StoreSpec:
    """Return a store's spec with its serdes bound to the changelog topic.

    For steps that use the serdes beside the store.
    """
    return bind_serdes(spec.source_topic or name_changelog_topic(application_id, spec.name), spec)


def rewrite_graph(graph: Graph, replace_node: Callable[[Node], Iterable[Node]]) -> Graph:
    """Return the graph with every node replaced by those that `replace_node` makes of it.

    `replace_node` is handed the node with its parents already replaced. The children follow the
    last of the new nodes.
    """
    nodes: list[Node] = []
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        new_nodes = list(replace_node(_replace_parents(node, replaced, graph.global_tables)))
        nodes += new_nodes
        replaced[node] = new_nodes[-1]
    groups = [tuple(replaced[node] for node in group) for group in graph.copartitioned]
    return Graph(
        nodes=nodes,
        stores=dict(graph.stores),
        global_tables=dict(graph.global_tables),
        copartitioned=groups,
    )


def _replace_parents(
    node: Node, replacements: Mapping[Node, Node], global_tables: Collection[str]
) -> Node:
    """Return a node with its parents replaced, and without the stores of global tables."""
    parents = tuple(replacements[parent] for parent in node.parents)
    if isinstance(node, ProcessorNode):
        # Every step can read the replica of a global table: it connects no steps into one task.
        stores = tuple(name for name in node.stores if name not in global_tables)
        return replace(node, parents=parents, stores=stores)
    return replace(node, parents=parents)


def _use_single_store_for_self_join(node: Node) -> list[Node]:
    """Let a stream joined with itself keep its records in a single store."""
    if isinstance(node, StreamJoinNode) and node.is_self_join:
        return [replace(node, single_store=True)]
    return [node]


def _with_default_extractor(node: Node, default: TimestampExtractor | None) -> Node:
    """Return a source of an input with the default extractor where it has none of its own."""
    if isinstance(node, SourceNode) and not node.internal and node.timestamp_extractor is None:
        return replace(node, timestamp_extractor=default)
    return node


def _bind_topic_serdes(node: Node) -> Node:
    """Bind the serdes of a source or a sink with a fixed topic.

    A sink whose topic a function chooses binds its serdes at each record.
    """
    if isinstance(node, SourceNode) and is_pattern(node.topic):
        return node  # bound to each topic that matches, when the topology is resolved
    if isinstance(node, SourceNode | SinkNode) and isinstance(node.topic, str):
        return bind_serdes(node.topic, node)
    return node


def bind_serdes(topic: str, target: B) -> B:
    """Return a source, a sink or a store with its serdes bound to `topic`."""
    key, value = target.key.for_topic(topic, "key"), target.value.for_topic(topic, "value")
    return replace(target, key=key, value=value)


def _expand_node(
    application_id: str, node: Node, steps_needing_null_keys: Collection[str]
) -> Iterable[Node]:
    """Return the nodes that a described node becomes in the graph that runs.

    `steps_needing_null_keys` names the repartitions whose records are needed though they have no
    key.
    """
    if isinstance(node, StreamJoinNode):
        return expand_stream_join(node)
    if not isinstance(node, RepartitionNode):
        return [node]
    base = f"{node.base_name}-repartition"
    topic = f"{application_id}-{base}"
    expanded: list[Node] = []
    parents = node.parents
    if not node.keeps_null_keys and node.name not in steps_needing_null_keys:
        expanded.append(
            ProcessorNode(
                name=f"{base}-filter",
                parents=parents,
                operator=drop_records_without_key,
                traits=StepTraits(is_stateless=True, forwards_unchanged=True, keeps_keys=True),
            )
        )
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
