"""Null keys before a repartition topic: dropped, unless somewhere behind it a join needs them.

Left and outer joins of streams make a result of a record without a key (KIP-962), so each topic on
the way there has it, and with it whatever else reads that topic. Source: InternalStreamsBuilder
(rewriteRepartitionNodes), NodesWithRelaxedNullKeyJoinDownstream.
"""

from __future__ import annotations

from streams.topology.nodes import Graph, Node, ProcessorNode
from streams.topology.stream_join import StreamJoinNode


def before_joins_without_key(graph: Graph) -> frozenset[str]:
    """The names of all steps before one that joins without a key."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):  # parents come before their children
        if node in found or _joins_without_key(node):
            found.update(node.parents)
    return frozenset(node.name for node in found)


def _joins_without_key(node: Node) -> bool:
    match node:
        case StreamJoinNode():
            return node.outer is not None
        case ProcessorNode():
            return node.joins_without_key
    return False
