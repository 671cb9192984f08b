"""Encode and decode the record of a streams group's topology, as Kafka 4.4 writes it."""

from __future__ import annotations

from coordinator.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)
from coordinator.shard.record_fields import FieldReader, FieldWriter


def write_topology(value: FieldWriter, topology: StreamsTopology) -> None:
    """Append the fields of a topology's record."""
    value.write_int32(topology.epoch)
    value.write_array_length(len(topology.subtopologies))
    for each in topology.subtopologies:
        value.write_nullable_string(each.subtopology_id)
        value.write_string_array(each.source_topics)
        value.write_string_array(each.source_regexes)
        _write_internal_topics(value, each.changelog_topics)
        value.write_string_array(each.repartition_sink_topics)
        _write_internal_topics(value, each.repartition_source_topics)
        value.write_array_length(len(each.copartition_groups))
        for group in each.copartition_groups:
            for indexes in (
                group.source_topics,
                group.source_regexes,
                group.repartition_source_topics,
            ):
                value.write_array_length(len(indexes))
                value.write_packed(f">{len(indexes)}h", *indexes)
            value.write_tagged_fields()
        value.write_tagged_fields()
    value.write_tagged_fields()


def _write_internal_topics(value: FieldWriter, topics: tuple[InternalTopic, ...]) -> None:
    value.write_array_length(len(topics))
    for topic in topics:
        value.write_nullable_string(topic.name)
        value.write_packed(">ih", topic.partition_count, topic.replication_factor)
        value.write_array_length(len(topic.configs))
        for name, text in topic.configs:
            value.write_nullable_string(name)
            value.write_nullable_string(text)
            value.write_tagged_fields()
        value.write_tagged_fields()


def read_topology(value: FieldReader) -> StreamsTopology:
    """Read the fields that `write_topology` has written."""
    epoch = value.read_int32()
    subtopologies = tuple(_read_subtopology(value) for _ in range(value.read_array_length()))
    value.read_tagged_fields()
    return StreamsTopology(epoch, subtopologies)


def _read_subtopology(value: FieldReader) -> StreamsSubtopology:
    subtopology = StreamsSubtopology(
        subtopology_id=value.read_string(),
        source_topics=value.read_string_array(),
        source_regexes=value.read_string_array(),
        changelog_topics=_read_internal_topics(value),
        repartition_sink_topics=value.read_string_array(),
        repartition_source_topics=_read_internal_topics(value),
        copartition_groups=tuple(
            _read_copartition_group(value) for _ in range(value.read_array_length())
        ),
    )
    value.read_tagged_fields()
    return subtopology


def _read_internal_topics(value: FieldReader) -> tuple[InternalTopic, ...]:
    topics = []
    for _ in range(value.read_array_length()):
        name = value.read_string()
        partition_count, replication_factor = value.read_packed(">ih")
        configs = []
        for _ in range(value.read_array_length()):
            configs.append((value.read_string(), value.read_string()))
            value.read_tagged_fields()
        value.read_tagged_fields()
        topics.append(InternalTopic(name, partition_count, replication_factor, tuple(configs)))
    return tuple(topics)


def _read_copartition_group(value: FieldReader) -> CopartitionGroup:
    group = CopartitionGroup(*(_read_indexes(value) for _ in range(3)))
    value.read_tagged_fields()
    return group


def _read_indexes(value: FieldReader) -> tuple[int, ...]:
    return value.read_packed(f">{value.read_array_length()}h")
