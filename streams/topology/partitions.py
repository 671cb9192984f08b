"""Derive how many partitions repartition topics have from the partition counts of inputs.

    topic                 its partitions
    input                 as the broker has it
    repartition           as declared, or the most of any topic read upstream of it
      co-partitioned      as the inputs that it is joined with or that share a store with it, or as
                          declared of one of them, or the most of all: keys that meet must be in
                          partitions of one number
    changelog             one for each task of its sub-topology: the most of any topic it reads

Upstream may lead back to the topic itself, as the responses of a foreign-key join do: then the
known counts decide. Source: RepartitionTopics and CopartitionedTopicsEnforcer of Kafka Streams 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streams.errors import TopologyError


class UnequalPartitionCounts(TopologyError):
    """Signals topics that meet by key, with their `counts`, which differ."""

    def __init__(self, partition_counts: Mapping[str, int]) -> None:
        self.counts = partition_counts
        super().__init__(
            "topics whose records meet by key must have the same number of partitions, so that all "
            "records of a key are in one task, and "
            + ", ".join(f"{topic!r} has {count}" for topic, count in partition_counts.items())
            + ": make them equal, or send one through repartition(partitions=...) before they meet"
            ". Where partitions were added to one since the application has run, only the latter "
            f"keeps the state: repartition(partitions={min(partition_counts.values(), default=1)})"
        )


@dataclass(frozen=True, slots=True)
class TopicFlow:
    """Holds the topics that a sub-topology reads, and the internal ones that it writes."""

    source_topics: frozenset[str]
    internal_sink_topics: frozenset[str]


def derive_partition_counts(
    flows: Iterable[TopicFlow],
    declared_counts: Mapping[str, int | None],
    copartitioned: Iterable[Iterable[str]],
    input_counts: Mapping[str, int],
) -> dict[str, int]:
    """Return `input_counts` with the partition counts of repartition topics, as far as derivable.

    `declared_counts` are the repartition topics, with None where no count is declared. Raises
    UnequalPartitionCounts for co-partitioned topics whose counts are given and differ.
    """
    flows = list(flows)
    counts = dict(input_counts) | {
        topic: count for topic, count in declared_counts.items() if count
    }
    fixed = frozenset(counts)
    while missing := [topic for topic in declared_counts if topic not in counts]:
        upstream = {t: _find_upstream_topics(t, flows) for t in missing}
        derived = {
            t: _find_largest_count(up, counts)
            for t, up in upstream.items()
            if up and up <= counts.keys()
        }
        if not derived:  # upstream is a cycle, or isn't known
            circling = [
                t
                for t in missing
                if _find_all_upstream_topics(t, flows, fixed) <= {*declared_counts, *fixed}
            ]
            known = [t for t in circling if upstream[t] & counts.keys()]
            derived = {t: _find_largest_count(upstream[t], counts) for t in known}
        if not derived:
            break
        counts |= derived
    for group in _merge_overlapping_groups(copartitioned):
        _set_equal_counts_or_refuse(group, counts, declared_counts, fixed)
    return counts


def find_topics_downstream(sources: Iterable[str], flows: Iterable[TopicFlow]) -> frozenset[str]:
    """Return the internal topics that are downstream of sources."""
    flows = list(flows)
    found = [topic for each in sources for topic in _find_written_topics(each, flows)]
    for each in found:  # the list grows while it is walked
        found += [below for below in _find_written_topics(each, flows) if below not in found]
    return frozenset(found)


def _find_written_topics(topic: str, flows: Iterable[TopicFlow]) -> list[str]:
    """Return the topics that the sub-topologies which read `topic` write."""
    return [t for flow in flows if topic in flow.source_topics for t in flow.internal_sink_topics]


def _find_upstream_topics(topic: str, flows: Iterable[TopicFlow]) -> frozenset[str]:
    """Return the topics that the sub-topologies which write `topic` read."""
    return frozenset[str]().union(
        *(flow.source_topics for flow in flows if topic in flow.internal_sink_topics)
    )


def _find_all_upstream_topics(
    topic: str, flows: Iterable[TopicFlow], given_topics: frozenset[str]
) -> set[str]:
    """Return a topic and all topics upstream of it, up to those whose counts are given."""
    upstream = [topic]
    for each in upstream:  # the list grows while it is walked
        if each not in given_topics:
            upstream += [
                above for above in _find_upstream_topics(each, flows) if above not in upstream
            ]
    return set(upstream)


def _find_largest_count(topics: Iterable[str], partition_counts: Mapping[str, int]) -> int:
    """Return the largest known count of `topics`."""
    return max(partition_counts[topic] for topic in topics if topic in partition_counts)


def _merge_overlapping_groups(groups: Iterable[Iterable[str]]) -> list[set[str]]:
    """Merge groups that have a topic in common."""
    merged: list[set[str]] = []
    for each in groups:
        group = set(each)
        for other in [other for other in merged if other & group]:
            group |= other
            merged.remove(other)
        merged.append(group)
    return merged


def _set_equal_counts_or_refuse(
    group: set[str],
    partition_counts: dict[str, int],
    declared_counts: Mapping[str, int | None],
    given_topics: frozenset[str],
) -> None:
    """Give all internal topics of a co-partitioned group one count.

    Raises UnequalPartitionCounts if the given counts of the group differ.
    """
    given = {topic: partition_counts[topic] for topic in sorted(group) if topic in given_topics}
    if len(set(given.values())) > 1:
        raise UnequalPartitionCounts(given)
    internal = group & declared_counts.keys()
    if given:
        partition_counts |= dict.fromkeys(internal, next(iter(given.values())))
    elif group == internal and group <= partition_counts.keys():
        partition_counts |= dict.fromkeys(internal, _find_largest_count(internal, partition_counts))
    else:  # their count is that of an input which isn't known
        for topic in internal:
            partition_counts.pop(topic, None)
