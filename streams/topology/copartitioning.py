"""Find the topics whose partition counts must be equal, because steps keep state by key.

Records of one key are in partitions of one number only if the topics have equally many partitions.
Steps that use one store must see all records of a key in one task: behind a merge, in a store that
several steps share, and in a join. Steps without a store may read any topics. Kafka Streams demands
equal counts of joined and cogrouped topics only (CopartitionedTopicsEnforcer), and keeps two
results for one key behind a merge of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from streams.graph.nodes import Node, ProcessorNode, SourceNode
from streams.topics import is_pattern


def find_topics_by_store(
    nodes: Iterable[Node], joined: Collection[frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return by store the topics whose records reach a step that uses it: two or more, or patterns.

    Topics of one group of `joined` ones, which must have equal counts anyway, are left out. A step,
    or a merge upstream of it, that is declared with `co_partitioned=False` adds none.
    """
    topics: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ProcessorNode) and node.stores and node.co_partitioned:
            upstream = set(find_upstream_topics([node], through_any_merge=False))
            for store in node.stores:
                topics.setdefault(store, set()).update(upstream)
    return {
        store: frozenset(group)
        for store, group in topics.items()
        if (len(group) > 1 or any(map(is_pattern, group)))
        and not any(group <= other for other in joined)
    }


def find_upstream_topics(steps: Iterable[Node], *, through_any_merge: bool = True) -> Iterator[str]:
    """Yield the topics that the records of these steps come from.

    Without `through_any_merge` those are left out that come through a merge which is declared with
    `co_partitioned=False`.
    """
    upstream = list(steps)
    for node in upstream:  # the list grows while it is walked
        if isinstance(node, SourceNode) and (through_any_merge or node.co_partitioned):
            yield node.topic
        if through_any_merge or not _is_unequal_merge(node):
            upstream += [parent for parent in node.parents if parent not in upstream]


def _is_unequal_merge(node: Node) -> bool:
    """Return whether a step merges streams that need not be co-partitioned."""
    return isinstance(node, ProcessorNode) and len(node.parents) > 1 and not node.co_partitioned
