"""Describe which partitions the endpoints of a group's members serve, for queries of their stores.

Source: EndpointToPartitionsManager of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.streams.configure import ConfiguredTopology
from coordinator.groups.streams.record_types import Endpoint
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import TaskId, group_by_subtopology

TopicIndexes: TypeAlias = list[tuple[str, list[int]]]  # topic name, partitions


@dataclass(frozen=True, slots=True)
class EndpointPartitions:
    """Represents an endpoint with the source partitions of its member's tasks."""

    endpoint: Endpoint
    active: TopicIndexes
    standby: TopicIndexes


def list_endpoints(
    group: StreamsGroup,
    updated: StreamsGroupMember,
    replaced_member_id: str | None,
    configured: ConfiguredTopology,
    topics: TopicList,
) -> list[EndpointPartitions]:
    """Return what each member that has an endpoint serves, the updated member last."""
    members = [
        member
        for member_id, member in group.members.items()
        if member_id not in (updated.member_id, replaced_member_id)
    ]
    return [
        EndpointPartitions(
            member.endpoint,
            _list_partitions(member.assigned.active, configured, topics),
            _list_partitions(member.assigned.standby | member.assigned.warmup, configured, topics),
        )
        for member in (*members, updated)
        if member.endpoint is not None
    ]


def _list_partitions(
    tasks: Iterable[TaskId], configured: ConfiguredTopology, topics: TopicList
) -> TopicIndexes:
    """Return the partitions of the source topics of tasks."""
    listed: TopicIndexes = []
    for subtopology_id, indexes in group_by_subtopology(tasks).items():
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        repartition_names = [topic.name for topic in subtopology.repartition_source_topics]
        for name in (*subtopology.source_topics, *repartition_names):
            topic = topics.get(name)
            partition_count = 0 if topic is None else len(topic.partitions)
            served = [index for index in indexes if index < partition_count]
            if served:
                listed.append((name, served))
    return listed
