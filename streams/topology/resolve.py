"""Resolve the patterns of a topology by the topics that exist (`streams.topics`).

A source that reads by a pattern becomes one source for each topic that matches, and a step of its
name that merges them. All else works on topics by their names. A topology is resolved for a moment:
by the group's leader each time it assigns or looks at the inputs, and for a task by the partitions
that are assigned. Kafka Streams' counterpart is the subscription of InternalTopologyBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from streams.errors import TopologyError
from streams.graph.nodes import Node, ProcessorNode, SinkNode, SourceNode
from streams.graph.step_traits import StepTraits
from streams.operators.routing import forward_unchanged
from streams.topics import is_pattern, parse_pattern
from streams.topology.build import Subtopology, Topology
from streams.topology.expand import bind_serdes
from streams.topology.partitions import TopicFlow, find_topics_downstream

_MERGE = StepTraits(is_stateless=True, drops_records=False, forwards_unchanged=True)


def match_patterns_without_overlap(
    patterns: Iterable[str], topics: Iterable[str], application_id: str
) -> dict[str, tuple[str, ...]]:
    """Return for the text of each pattern the topics that match, sorted.

    Topics of brokers and internal topics of the application never match; those of other
    applications do. Raises TopologyError for a topic that two patterns match.
    """
    candidates = tuple(topics)
    matches: dict[str, tuple[str, ...]] = {}
    pattern_of: dict[str, str] = {}
    for text in sorted(set(patterns)):
        pattern = parse_pattern(text, application_id)
        matches[text] = pattern.find_matching(candidates)
        for topic in matches[text]:
            if (other := pattern_of.setdefault(topic, text)) is not text:
                raise TopologyError(
                    f"topic {topic!r} matches {parse_pattern(other)!r} and {pattern!r}: a topic is "
                    "read once; let one of the expressions leave it out, or delete the topic"
                )
    return matches


def replace_patterns(
    sources: Iterable[str], matches: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Return the topics that are read, with each pattern replaced by its topics."""
    return frozenset(
        topic
        for source in sources
        for topic in (matches[source] if is_pattern(source) else [source])
    )


def replace_patterns_of_groups(
    groups: Iterable[frozenset[str]], matches: Mapping[str, tuple[str, ...]]
) -> tuple[frozenset[str], ...]:
    """Return groups of topics with their patterns replaced; those without a topic are left out."""
    return tuple(filter(None, (replace_patterns(group, matches) for group in groups)))


def resolve_topology(topology: Topology, existing_counts: Mapping[str, int]) -> Topology:
    """Return a topology with its patterns replaced by the existing topics that match.

    A repartition topic downstream of a pattern that exists keeps its partitions, whatever topics
    match. `existing_counts` are the partitions of all topics. Raises TopologyError for a topic that
    two patterns match.
    """
    subs = topology.subtopologies
    texts = {pattern.text for pattern in topology.patterns}
    if not texts:
        return topology
    matches = match_patterns_without_overlap(texts, existing_counts, topology.application_id)
    flows = [
        TopicFlow(s.declared_sources, frozenset(k.topic_name for k in s.sinks if k.internal))
        for s in subs
    ]
    downstream = find_topics_downstream(texts, flows)
    kept = {topic: existing_counts[topic] for topic in downstream & existing_counts.keys()}
    return replace(
        topology,
        subtopologies=tuple(resolve_subtopology(sub, matches, kept) for sub in subs),
        copartitioned=replace_patterns_of_groups(topology.copartitioned, matches),
        topics_by_store={
            store: replace_patterns(topics, matches)
            for store, topics in topology.topics_by_store.items()
        },
        topics_after_patterns=downstream,
    )


def resolve_subtopology_of_task(sub: Subtopology, topics: Collection[str]) -> Subtopology:
    """Return the sub-topology of one task, which reads partitions of some of these topics."""
    patterns = sub.patterns
    if not patterns:
        return sub
    return resolve_subtopology(sub, {each.text: each.find_matching(topics) for each in patterns})


def resolve_subtopology(
    sub: Subtopology,
    matches: Mapping[str, tuple[str, ...]],
    kept_counts: Mapping[str, int] | None = None,
) -> Subtopology:
    """Return a sub-topology whose patterns are replaced by the topics of `matches`.

    Sinks of the topics of `kept_counts` get these numbers of partitions.
    """
    kept = kept_counts or {}
    nodes: list[Node] = []
    replaced: dict[Node, Node] = {}
    for node in sub.nodes:
        new = _replace_node(node, replaced.__getitem__, matches, kept)
        nodes += new
        replaced[node] = new[-1]
    return replace(sub, nodes=tuple(nodes), reads_patterns=bool(sub.patterns))


def _replace_node(
    node: Node,
    replace_parent: Callable[[Node], Node],
    matches: Mapping[str, tuple[str, ...]],
    kept_counts: Mapping[str, int],
) -> list[Node]:
    """Return the nodes that a node becomes; the last of them is the parent of its children."""
    if isinstance(node, SourceNode) and is_pattern(node.topic):
        sources = [
            bind_serdes(topic, replace(node, name=f"{node.name}-{topic}", topic=topic))
            for topic in matches[node.topic]
        ]
        merge = ProcessorNode(
            name=node.name,
            parents=tuple(sources),
            operator=forward_unchanged,
            traits=_MERGE,
            co_partitioned=node.co_partitioned,
        )
        return [*sources, merge]
    parents = tuple(map(replace_parent, node.parents))
    if isinstance(node, SinkNode) and node.internal and node.partitions is None:
        return [replace(node, parents=parents, partitions=kept_counts.get(node.topic_name))]
    return [replace(node, parents=parents)]
