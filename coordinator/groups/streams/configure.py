"""Compare a topology with the topics that exist: which tasks it has, and what is missing.

Source: InternalTopicManager of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from coordinator.assignors.java_order import sort_like_hash_map
from coordinator.errors import Code, Refused
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.streams.partition_counts import (
    WrongPartitionCounts,
    decide_partition_counts,
    find_copartition_groups,
)
from coordinator.groups.streams.tasks import TaskRoles
from coordinator.groups.streams.topology import InternalTopic, StreamsTopology

_NAMES_SHOWN = 3


class StreamsStatusCode(IntEnum):
    """Lists the statuses that an answer to a heartbeat may have, by their number on the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class StreamsStatus:
    """Represents one status of a group, with the text that a member logs."""

    code: StreamsStatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """Represents a sub-topology whose number of tasks, and internal topics, are known."""

    task_count: int
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    changelog_topics: tuple[InternalTopic, ...]


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """Represents a topology as the topics that exist allow it.

    `problem` None: it is ready, and has tasks. Else the problem is told to the members, and
    `missing_topics` are to be created.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None = None
    missing_topics: tuple[InternalTopic, ...] = ()
    problem: StreamsStatus | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether all topics are there, with the partitions that they need."""
        return self.problem is None


class RefusedAfterConfiguring(Refused):
    """Signals a heartbeat that is refused once the topology has been compared with the topics.

    Kafka keeps what that came to, and describes the group by it as soon as anything else has been
    written to the coordinator's partition.
    """

    def __init__(self, message: str, configured: ConfiguredTopology) -> None:
        super().__init__(Code.INVALID_REQUEST, message)
        self.configured = configured


def configure_topology(topology: StreamsTopology, topics: TopicList) -> ConfiguredTopology:
    """Derive a topology's partition counts and missing topics from the topics that exist.

    Raises Refused: STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
    """
    for subtopology in topology.subtopologies:
        find_copartition_groups(subtopology)

    def count_partitions(name: str) -> int | None:
        topic = topics.get(name)
        return None if topic is None else len(topic.partitions)

    missing_sources = {
        name
        for subtopology in topology.subtopologies
        for name in subtopology.source_topics
        if topics.get(name) is None
    }
    if missing_sources:
        detail = f"Source topics {summarize_topics(sorted(missing_sources))} are missing."
        status = StreamsStatus(StreamsStatusCode.MISSING_SOURCE_TOPICS, detail)
        return ConfiguredTopology(topology.epoch, problem=status)
    try:
        counts = decide_partition_counts(topology, count_partitions)
        subtopologies = _configure_subtopologies(topology, counts, topics)
        missing_topics = _find_missing_topics(topology, subtopologies, topics)
    except WrongPartitionCounts as wrong:
        status = StreamsStatus(StreamsStatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(wrong))
        return ConfiguredTopology(topology.epoch, problem=status)
    problem = None
    if missing_topics:
        names = summarize_topics(topic.name for topic in missing_topics)
        problem = StreamsStatus(
            StreamsStatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, missing_topics, problem)


def _configure_subtopologies(
    topology: StreamsTopology, partition_counts: Mapping[str, int], topics: TopicList
) -> dict[str, ConfiguredSubtopology]:
    def count(name: str) -> int:
        topic = topics.get(name)
        return partition_counts[name] if topic is None else len(topic.partitions)

    def set_count(topic: InternalTopic) -> InternalTopic:
        return replace(topic, partition_count=topic.partition_count or partition_counts[topic.name])

    return {
        each.subtopology_id: ConfiguredSubtopology(
            task_count=max(map(count, each.all_source_topics)),
            source_topics=each.source_topics,
            repartition_sink_topics=each.repartition_sink_topics,
            repartition_source_topics=tuple(map(set_count, each.repartition_source_topics)),
            changelog_topics=tuple(map(set_count, each.changelog_topics)),
        )
        for each in sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
    }


def _find_missing_topics(
    topology: StreamsTopology,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topics: TopicList,
) -> tuple[InternalTopic, ...]:
    """Return the internal topics that don't exist, in Kafka's order.

    Raises WrongPartitionCounts for one that exists with another number of partitions.
    """
    wanted = {
        topic.name: topic
        for subtopology in subtopologies.values()
        for topic in (*subtopology.repartition_source_topics, *subtopology.changelog_topics)
    }
    missing = dict(wanted)
    for name in sort_like_hash_map(topology.required_topics):
        existing_topic = topics.get(name)
        expected = None if existing_topic is None else missing.pop(name, None)
        if existing_topic is not None and expected is not None:
            found_count = len(existing_topic.partitions)
            if found_count != expected.partition_count:
                raise WrongPartitionCounts(
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {expected.partition_count}, found {found_count}"
                )
    return tuple(missing[name] for name in sort_like_hash_map(wanted) if name in missing)


def check_owned_tasks(configured: ConfiguredTopology, owned: TaskRoles | None) -> None:
    """Refuse a heartbeat that reports a task which the topology doesn't have.

    Raises RefusedAfterConfiguring: INVALID_REQUEST.
    """
    if owned is None or not configured.is_ready or configured.subtopologies is None:
        return
    for role in (owned.active, owned.standby, owned.warmup):
        for subtopology_id, partition in sorted(role):
            subtopology = configured.subtopologies.get(subtopology_id)
            if subtopology is None:
                raise RefusedAfterConfiguring(
                    f"Subtopology {subtopology_id} does not exist in the topology.", configured
                )
            if not 0 <= partition < subtopology.task_count:
                raise RefusedAfterConfiguring(
                    f"Task {partition} for subtopology {subtopology_id} is invalid. Number of "
                    f"tasks for this subtopology: {subtopology.task_count}",
                    configured,
                )


def summarize_topics(names: Iterable[str]) -> str:
    """Return the first names of topics, and how many there are besides, for messages."""
    listed = list(names)
    more_count = len(listed) - _NAMES_SHOWN
    more = f" and {more_count} additional topics" if more_count > 0 else ""
    return ", ".join(listed[:_NAMES_SHOWN]) + more
