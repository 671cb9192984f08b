"""Optimisations of a topology, each for itself: the results are the same, the topics are fewer.

    merge.repartition.topics      repartition topics that get the same records become one
    reuse.ktable.source.topics    a table's store is restored from the topic that it is read from
    single.store.self.join        a stream joined with itself keeps its records once

An optimisation changes internal topics, so one that is switched on later leaves state behind:
`millrace plan` says what. Source: StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG (KIP-295, KIP-862).
"""

from __future__ import annotations

from dataclasses import replace

from streams.topology.nodes import Graph, Node, ProcessorNode, RepartitionNode, SourceNode

MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
ALL = frozenset({MERGE_REPARTITION_TOPICS, REUSE_SOURCE_TOPICS, SINGLE_STORE_SELF_JOIN})


def optimizations(setting: str) -> frozenset[str]:
    """What `topology_optimization` asks for: none, all, or names with commas between.

    Raises ValueError for a name that there is not.
    """
    if setting == "none":
        return frozenset()
    if setting == "all":
        return ALL
    names = frozenset(name.strip() for name in setting.split(","))
    if unknown := sorted(names - ALL):
        raise ValueError(f"{', '.join(unknown)!r} is none of none, all, {', '.join(sorted(ALL))}")
    return names


def reuse_source_topics(graph: Graph) -> Graph:
    """The store of a table that is read from a topic is restored from that topic: it has the same
    rows, and a changelog would be a copy of it.

    A store that forgets rows by itself (`ttl=`) keeps its changelog, which says which. Source:
    TableSourceNode.
    """
    stores = dict(graph.stores)
    for node in graph.nodes:
        if isinstance(node, ProcessorNode) and node.kind == "KTABLE-SOURCE":
            (source,) = node.parents
            assert isinstance(source, SourceNode)
            for name in node.stores:
                if stores[name].ttl_ms is None:
                    stores[name] = replace(stores[name], source_topic=source.topic, logged=True)
    return replace(graph, stores=stores)


def merge_repartition_topics(graph: Graph) -> Graph:
    """Where several repartitions get the records of one step, with nothing in between that makes
    other records of them: one repartition behind that step, by the name of the first.

    Those with other serdes than the first stay as they are: what is read of the topic would be
    another thing. (Kafka Streams takes the first one's serdes for all.)

    What lies in between, and what else follows it, then comes after the topic, which drops null
    keys for all of them (InternalStreamsBuilder).
    """
    ways: dict[Node, list[list[Node]]] = {}
    for node in graph.nodes:
        if isinstance(node, RepartitionNode) and _is_plain(node):
            origin, way = _way_to(node)
            ways.setdefault(origin, []).append(way)
    ways = {
        origin: [way for way in found if _alike(way, found[0])] for origin, found in ways.items()
    }
    ways = {origin: found for origin, found in ways.items() if len(found) > 1}
    behind = {(way[0], origin) for origin, found in ways.items() for way in found}
    ends = {way[-1] for found in ways.values() for way in found}
    nodes: list[Node] = []
    now: dict[Node, Node] = {}
    shared: dict[Node, Node] = {}
    for node in graph.nodes:
        parents = tuple(
            shared[parent] if (node, parent) in behind else now[parent] for parent in node.parents
        )
        made: Node = replace(node, parents=parents)
        if isinstance(node, RepartitionNode) and node in ends:
            (now[node],) = parents
            continue
        nodes.append(made)
        now[node] = made
        if node in ways:
            first = ways[node][0][-1]
            assert isinstance(first, RepartitionNode)
            shared[node] = replace(first, parents=(made,))
            nodes.append(shared[node])
    groups = [tuple(now[node] for node in group) for group in graph.copartitioned]
    return replace(graph, nodes=nodes, copartitioned=groups)


def _is_plain(node: RepartitionNode) -> bool:
    """Whether nobody has asked for this very topic."""
    return not node.asked_for and not node.keeps_null_keys


def _alike(way: list[Node], other: list[Node]) -> bool:
    """Whether both repartitions write the same bytes."""
    one, two = way[-1], other[-1]
    assert isinstance(one, RepartitionNode)
    assert isinstance(two, RepartitionNode)
    return one.key == two.key and one.value == two.value


def _way_to(repartition: RepartitionNode) -> tuple[Node, list[Node]]:
    """The step above whose records it gets as they are, and the steps from there to it."""
    way: list[Node] = [repartition]
    while True:
        (parent,) = way[0].parents
        passes = isinstance(parent, ProcessorNode) and parent.keeps_records
        if not passes or len(parent.parents) != 1:
            return parent, way
        way.insert(0, parent)
