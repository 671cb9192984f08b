"""Optimize a graph: each optimization keeps the results and needs fewer topics or stores.

`streams.settings.optimizations` lists them. Source: StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG
(KIP-295, KIP-862).
"""

from __future__ import annotations

from dataclasses import replace

from streams.graph.nodes import Graph, Node, ProcessorNode, RepartitionNode, SourceNode


def reuse_source_topics(graph: Graph) -> Graph:
    """Let the store of a table that is read from a topic be restored from that topic.

    The topic has the same rows, and a changelog would be a copy of it. A store that forgets rows by
    itself (`ttl=`) keeps its changelog, which says which, and so does one whose rows have other
    times than the topic's records, or that leaves records out by their times (Kafka Streams
    restores those with all records and their times). Source: TableSourceNode.
    """
    stores = dict(graph.stores)
    for node in graph.nodes:
        if isinstance(node, ProcessorNode) and node.traits.reads_table_topic:
            (source,) = node.parents
            assert isinstance(source, SourceNode)
            if not source.takes_each_record:
                continue
            for name in node.stores:
                if stores[name].ttl_ms is None:
                    stores[name] = replace(stores[name], source_topic=source.topic, logged=True)
    return replace(graph, stores=stores)


def merge_repartition_topics(graph: Graph) -> Graph:
    """Merge repartitions that get the records of one step into one behind that step.

    Between the step and each of them nothing makes other records. The merged one has the name of
    the first.

    Those with other serdes than the first stay as they are, since their records would be read
    differently. (Kafka Streams takes the first one's serdes for all.)

    The steps in between, and what else follows them, then come after the topic, which drops null
    keys for all of them (InternalStreamsBuilder).
    """
    paths: dict[Node, list[list[Node]]] = {}
    for node in graph.nodes:
        if isinstance(node, RepartitionNode) and _is_mergeable(node):
            origin, path = _find_origin(node)
            paths.setdefault(origin, []).append(path)
    paths = {
        origin: [path for path in group if _have_equal_serdes(path, group[0])]
        for origin, group in paths.items()
    }
    paths = {origin: group for origin, group in paths.items() if len(group) > 1}
    behind = {(path[0], origin) for origin, group in paths.items() for path in group}
    ends = {path[-1] for group in paths.values() for path in group}
    nodes: list[Node] = []
    replaced: dict[Node, Node] = {}
    shared: dict[Node, Node] = {}
    for node in graph.nodes:
        parents = tuple(
            shared[parent] if (node, parent) in behind else replaced[parent]
            for parent in node.parents
        )
        new_node: Node = replace(node, parents=parents)
        if isinstance(node, RepartitionNode) and node in ends:
            (replaced[node],) = parents
            continue
        nodes.append(new_node)
        replaced[node] = new_node
        if node in paths:
            first = paths[node][0][-1]
            assert isinstance(first, RepartitionNode)
            shared[node] = replace(first, parents=(new_node,))
            nodes.append(shared[node])
    groups = [tuple(replaced[node] for node in group) for group in graph.copartitioned]
    return replace(graph, nodes=nodes, copartitioned=groups)


def _is_mergeable(node: RepartitionNode) -> bool:
    """Return whether no user asked for this repartition, and it drops null keys."""
    return not node.is_explicit and not node.keeps_null_keys


def _have_equal_serdes(path: list[Node], other_path: list[Node]) -> bool:
    """Return whether the repartitions at the ends of two paths have equal serdes."""
    one, two = path[-1], other_path[-1]
    assert isinstance(one, RepartitionNode)
    assert isinstance(two, RepartitionNode)
    return one.key == two.key and one.value == two.value


def _find_origin(repartition: RepartitionNode) -> tuple[Node, list[Node]]:
    """Return the step whose records a repartition gets unchanged, and the path from it."""
    path: list[Node] = [repartition]
    while True:
        (parent,) = path[0].parents
        passes = isinstance(parent, ProcessorNode) and parent.traits.forwards_unchanged
        if not passes or len(parent.parents) != 1:
            return parent, path
        path.insert(0, parent)
