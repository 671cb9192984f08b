"""How many partitions internal topics have, so far as it can be told from what is known.

    topic          its partitions
    repartition    as declared; as the topics that it is co-partitioned with; or else the most of
                   any topic read upstream of it
    changelog      the most of any topic that its sub-topology reads: one for each task

Source: RepartitionTopics and CopartitionedTopicsEnforcer of Kafka Streams 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams.topology.description import TopologyDescription


def partition_counts(description: TopologyDescription, inputs: Mapping[str, int]) -> dict[str, int]:
    """The counts of `inputs`, of repartition topics and of changelogs: those that follow."""
    internal = {topic.name for topic in description.repartition_topics}
    declared = {t.name: t.partitions for t in description.repartition_topics if t.partitions}
    counts = {t: n for t, n in inputs.items() if t not in internal} | declared
    while derived := _derived(description, counts, internal - counts.keys()):
        counts |= derived
    for sub in description.subtopologies:
        if not sub.is_global and counts.keys() >= set(sub.sources):
            tasks = max(counts[topic] for topic in sub.sources)
            for store in sub.stores:
                if store.changelog and not store.source_is_changelog:
                    counts[store.changelog] = tasks
    return counts


def _derived(
    description: TopologyDescription, counts: Mapping[str, int], missing: set[str]
) -> dict[str, int]:
    """What follows directly for repartition topics without a count."""
    derived: dict[str, int] = {}
    for topic in missing:
        writers = [
            sub
            for sub in description.subtopologies
            if any(step.kind == "sink" and step.topic == topic for step in sub.steps)
        ]
        upstream = {source for sub in writers for source in sub.sources}
        if upstream and upstream <= counts.keys():
            derived[topic] = max(counts[source] for source in upstream)
    return derived
