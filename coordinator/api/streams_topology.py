"""Convert the topology of a StreamsGroupHeartbeat request, and refuse one that can't be served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from coordinator.errors import Code, Refused
from coordinator.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)
from coordinator.log.topic_names import check_topic_name
from coordinator.log.topics import INTERNAL_TOPICS

if TYPE_CHECKING:
    from kio.schema.streams_group_heartbeat.v0.request import Subtopology, TopicInfo, Topology

_PROHIBITED_TOPICS = INTERNAL_TOPICS | {"__share_group_state"}


def to_topology(topology: Topology) -> StreamsTopology:
    """Return the topology of a request.

    Raises Refused: STREAMS_INVALID_TOPOLOGY; INVALID_REQUEST for regular expressions, which Kafka
    doesn't have either; UNKNOWN_SERVER_ERROR, as in Kafka, for what no client sends.
    """
    names = list(dict.fromkeys(_iterate_topic_names(topology)))
    prohibited = [name for name in names if name in _PROHIBITED_TOPICS]
    if prohibited:
        raise Refused(
            Code.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is "
            "prohibited.",
        )
    invalid = [name for name in names if not _is_valid_name(name)]
    if invalid:
        raise Refused(
            Code.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(invalid)} are not valid topic names.",
        )
    for subtopology in topology.subtopologies:
        if subtopology.source_topic_regex:
            raise Refused(
                Code.INVALID_REQUEST,
                "Regular expressions for source topics are not supported yet.",
            )
    subtopology_ids = {subtopology.subtopology_id for subtopology in topology.subtopologies}
    if topology.epoch < 0 or len(subtopology_ids) < len(topology.subtopologies):
        raise Refused(Code.UNKNOWN_SERVER_ERROR, "a negative epoch, or a sub-topology sent twice")
    return StreamsTopology(topology.epoch, tuple(map(_to_subtopology, topology.subtopologies)))


def refuse_changelog_partition_counts(topology: Topology) -> None:
    """Raise Refused (STREAMS_INVALID_TOPOLOGY) if a changelog says how many partitions it has."""
    for subtopology in topology.subtopologies:
        for changelog in subtopology.state_changelog_topics:
            if changelog.partitions:
                raise Refused(
                    Code.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {changelog.name} must have an undefined partition count, "
                    f"but it is set to {changelog.partitions}.",
                )


def _iterate_topic_names(topology: Topology) -> Iterator[str]:
    for each in topology.subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.repartition_source_topics)
        yield from (topic.name for topic in each.state_changelog_topics)


def _is_valid_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except Refused:
        return False
    return True


def _to_subtopology(subtopology: Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=tuple(subtopology.source_topics),
        source_regexes=tuple(subtopology.source_topic_regex),
        changelog_topics=_to_internal_topics(subtopology.state_changelog_topics),
        repartition_sink_topics=tuple(subtopology.repartition_sink_topics),
        repartition_source_topics=_to_internal_topics(subtopology.repartition_source_topics),
        copartition_groups=tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in subtopology.copartition_groups
        ),
    )


def _to_internal_topics(topics: Iterable[TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )
