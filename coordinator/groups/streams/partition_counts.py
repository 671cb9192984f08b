"""Derive how many partitions the internal topics of a topology are to have.

- A repartition topic has as many as the application has said, or else as the largest source of a
  sub-topology that writes to it; such sources may be repartition topics themselves.
- Topics of a copartition group have equally many. Repartition topics follow the other topics.
- A changelog has as many as the largest source of its sub-topology.

Source: RepartitionTopics, CopartitionedTopicsEnforcer and ChangelogTopics of Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from coordinator.errors import Code, Refused
from coordinator.groups.streams.topology import StreamsSubtopology, StreamsTopology

# Returns how many partitions an existing topic has; None if there is no such topic.
CountPartitions = Callable[[str], int | None]


class WrongPartitionCounts(Exception):
    """Signals that topics that have to be copartitioned are not; the message says which."""


def decide_partition_counts(
    topology: StreamsTopology, count_partitions: CountPartitions
) -> dict[str, int]:
    """Return the number of partitions of each internal topic, by name.

    Every source topic that is not internal exists.

    Raises: WrongPartitionCounts; Refused (STREAMS_INVALID_TOPOLOGY) if a number can't be computed.
    """
    decided = _decide_repartition_counts(topology, count_partitions)

    def count(topic: str) -> int:
        existing_count = count_partitions(topic)
        return decided[topic] if existing_count is None else existing_count

    for subtopology in topology.subtopologies:
        for topics in find_copartition_groups(subtopology):
            decided |= _count_copartitioned_partitions(topology, topics, count)
    for subtopology in topology.subtopologies:
        if not subtopology.all_source_topics:
            raise Refused(
                Code.STREAMS_INVALID_TOPOLOGY,
                f"No source topics found for subtopology {subtopology.subtopology_id}",
            )
        largest_count = max(map(count, subtopology.all_source_topics))
        for changelog in subtopology.changelog_topics:
            decided[changelog.name] = largest_count
    return decided


def find_copartition_groups(subtopology: StreamsSubtopology) -> list[frozenset[str]]:
    """Return the names of the topics of each copartition group of a sub-topology.

    Raises Refused: UNKNOWN_SERVER_ERROR for an index that is no topic's, as in Kafka.
    """
    try:
        return [
            frozenset(
                (
                    *(subtopology.source_topics[index] for index in group.source_topics),
                    *(
                        subtopology.repartition_source_topics[index].name
                        for index in group.repartition_source_topics
                    ),
                )
            )
            for group in subtopology.copartition_groups
        ]
    except IndexError:
        raise Refused(
            Code.UNKNOWN_SERVER_ERROR,
            f"a copartition group of {subtopology.subtopology_id} names a topic that it lacks",
        ) from None


# Repartition topics


def _decide_repartition_counts(
    topology: StreamsTopology, count_partitions: CountPartitions
) -> dict[str, int]:
    """Return the number of partitions of each repartition topic.

    Raises Refused: STREAMS_INVALID_TOPOLOGY.
    """
    decided = {
        topic.name: topic.partition_count
        for subtopology in topology.subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partition_count
    }
    while True:
        undecided_count, decided_count = 0, len(decided)
        for subtopology in topology.subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink in decided:
                    continue
                count = _find_largest_source_count(subtopology, decided, count_partitions)
                if count is None:
                    undecided_count += 1
                else:
                    decided[sink] = count
        if not undecided_count:
            break
        if len(decided) == decided_count:
            raise Refused(
                Code.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved.",
            )
    for subtopology in topology.subtopologies:
        if any(topic.name not in decided for topic in subtopology.repartition_source_topics):
            raise Refused(
                Code.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics, "
                "because a repartition source topic is never used as a sink topic.",
            )
    return decided


def _find_largest_source_count(
    subtopology: StreamsSubtopology, decided: Mapping[str, int], count_partitions: CountPartitions
) -> int | None:
    """Return how many partitions the largest known source has; None if none is known yet."""
    repartition_names = [topic.name for topic in subtopology.repartition_source_topics]
    counts = [
        *map(decided.get, repartition_names),
        *map(count_partitions, subtopology.source_topics),
    ]
    return max((count for count in counts if count is not None), default=None)


# Copartitioning


def _count_copartitioned_partitions(
    topology: StreamsTopology, topics: frozenset[str], count: Callable[[str], int]
) -> dict[str, int]:
    """Return the number of partitions of the repartition topics of one copartition group.

    Raises: WrongPartitionCounts; Refused (STREAMS_INVALID_TOPOLOGY).
    """
    internal_topics = [
        topic for each in topology.subtopologies for topic in each.repartition_source_topics
    ]
    fixed = {topic.name for topic in internal_topics if topic.partition_count}
    repartition_counts = {
        topic.name: count(topic.name) for topic in internal_topics if topic.name in topics
    }
    source_counts = {name: count(name) for name in topics if name not in repartition_counts}
    if not topics:
        return {}
    if source_counts:
        wanted = _require_equal_counts(source_counts.values(), source_counts)
    elif fixed:
        wanted = _require_equal_counts(map(count, fixed), repartition_counts)
    else:
        wanted = max(repartition_counts.values())
    for name, found in repartition_counts.items():
        if name in fixed and found != wanted:
            raise WrongPartitionCounts(
                f"Number of partitions [{found}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{wanted}] of the source topic."
            )
    return dict.fromkeys(repartition_counts, wanted)


def _require_equal_counts(counts: Iterable[int], counts_by_topic: Mapping[str, int]) -> int:
    """Return the one number of partitions; raise WrongPartitionCounts if there are several."""
    found = set(counts)
    if len(found) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(counts_by_topic.items()))
        raise WrongPartitionCounts(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    return found.pop()
