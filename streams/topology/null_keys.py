"""Find the steps whose records without a key must be kept, because a join behind them needs them.

Elsewhere null keys are dropped before a repartition topic. Left and outer joins of streams make a
result of a record without a key (KIP-962), so each topic on the way there has it, and with it
whatever else reads that topic. Source: InternalStreamsBuilder (rewriteRepartitionNodes),
NodesWithRelaxedNullKeyJoinDownstream.
"""

from __future__ import annotations

from streams.graph.nodes import Graph, Node, ProcessorNode
from streams.topology.stream_join_node import StreamJoinNode


def find_steps_above_joins_of_keyless_records(graph: Graph) -> frozenset[str]:
    """Return the names of all steps upstream of one that joins records without a key."""
    upstream: set[Node] = set()
    for node in reversed(graph.nodes):  # parents come before their children
        if node in upstream or _joins_without_key(node):
            upstream.update(node.parents)
    return frozenset(node.name for node in upstream)


def _joins_without_key(node: Node) -> bool:
    """Return whether a step makes results of records without a key."""
    match node:
        case StreamJoinNode():
            return node.outer is not None
        case ProcessorNode():
            return node.traits.joins_without_key
    return False
