"""Tell for people how many partitions a topic may have that appears and matches a pattern.

what is behind the pattern     a topic that appears with more partitions than those that match now
a changelog                    ends the application: equal keys would be in other partitions
keys that meet                 ends the application, also with fewer partitions
a repartition topic            is read; the topic keeps its partitions, once it is created
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streams.common.counted import format_count
from streams.errors import TopologyError
from streams.topics import TopicPattern
from streams.topology.build import Topology
from streams.topology.partitions import TopicFlow, find_topics_downstream
from streams.topology.resolve import (
    match_patterns_without_overlap,
    replace_patterns,
    resolve_topology,
)


@dataclass(frozen=True, slots=True)
class PatternReview:
    """Says what a pattern matches now, and what a topic that appears would change."""

    pattern: TopicPattern
    topics: Mapping[str, int]
    """The topics that match, with their partitions."""
    required_count: int | None
    """How many partitions every topic must have, since keys meet; None: it is free."""
    changelogs: Mapping[str, int]
    """The changelogs behind it, with the partitions that they have, or would be created with."""
    repartitions: Mapping[str, int | None]
    """The repartition topics downstream that exist, with their partitions; None: to be created."""
    created_count: int | None
    """How many partitions those get that don't exist; None: it isn't known yet."""

    def describe_effects(self) -> str:
        """Return one sentence for people, without a full stop."""
        shown = ", ".join(
            f"{topic} has {format_count(count, 'partition')}"
            for topic, count in self.topics.items()
        )
        parts = [f"{self.pattern!r} matches {format_count(len(self.topics), 'topic')}"]
        parts[0] += f" ({shown})" if shown else ""
        if self.required_count is not None:
            required = format_count(self.required_count, "partition")
            parts.append(
                f"a topic that appears with other than {required} ends the application, as keys "
                "meet"
            )
        elif self.changelogs:
            name, count = min(self.changelogs.items(), key=lambda item: item[1])
            parts.append(
                f"a topic that appears with more than {format_count(count, 'partition')} ends the "
                f"application, as changelog {name} has no more"
            )
        else:
            parts.append("a topic that appears may have any number of partitions")
        kept = [f"{topic} keeps {n}" for topic, n in self.repartitions.items() if n is not None]
        if kept:
            parts.append(f"{', '.join(kept)} whatever appears")
        created = [topic for topic, count in self.repartitions.items() if count is None]
        if created:
            known = "the most of any topic that matches then"
            if self.created_count is not None:
                known = f"{self.created_count} now, or more if a wider topic appears before"
            parts.append(f"{', '.join(created)} will be created with {known}")
        return "; ".join(parts)


def review_patterns(
    topology: Topology, partition_counts: Mapping[str, int]
) -> Iterator[PatternReview]:
    """Yield a review of each pattern of an application; `partition_counts` are those of all topics.

    There is none where the topics that match can't be read as they are: what refuses them says so.
    """
    try:
        resolved = resolve_topology(topology, partition_counts)
        derived = resolved.derive_partition_counts(
            {
                topic: partition_counts[topic]
                for topic in resolved.input_topics
                if topic in partition_counts
            }
        )
        matches = match_patterns_without_overlap(
            [each.text for each in topology.patterns], partition_counts, topology.application_id
        )
    except TopologyError:
        return
    subs = topology.subtopologies
    flows = [
        TopicFlow(s.declared_sources, frozenset(k.topic_name for k in s.sinks if k.internal))
        for s in subs
    ]
    declared = {k.topic_name: k.partitions for s in subs for k in s.sinks if k.internal}
    for sub in subs:
        for pattern in sub.patterns:
            topics = {topic: partition_counts[topic] for topic in matches[pattern.text]}
            meets = [group for group in topology.copartitioned if pattern.text in group]
            met = {
                partition_counts[topic]
                for group in meets
                for topic in replace_patterns(group, matches)
                if topic in partition_counts
            }
            downstream = sorted(
                topic
                for topic in find_topics_downstream([pattern.text], flows)
                if declared.get(topic) is None
            )
            sources = replace_patterns(sub.declared_sources, matches)
            read = [derived[topic] for topic in sources if topic in derived]
            logged = [s.name for s in sub.stores if s.logged and s.source_topic is None]
            changelogs = map(topology.restore_topic_of, logged)
            yield PatternReview(
                pattern,
                topics,
                min(met) if met else None,
                {each: partition_counts.get(each, max(read, default=0)) for each in changelogs}
                if read
                else {},
                {topic: partition_counts.get(topic) for topic in downstream},
                max((derived[topic] for topic in downstream if topic in derived), default=None),
            )
