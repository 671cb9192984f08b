"""Describe a streams group for StreamsGroupDescribe, in Kafka's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.groups.streams.command import TransientStreamsState
from coordinator.groups.streams.configure import ConfiguredSubtopology, ConfiguredTopology
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import NO_ROLES, TaskId, TaskRoles
from coordinator.groups.streams.topology import StreamsSubtopology
from coordinator.shard.map_order import sort_like_timeline_map


@dataclass(frozen=True, slots=True)
class DescribedStreamsMember:
    """Represents one member in the answer to StreamsGroupDescribe."""

    member: StreamsGroupMember
    target: TaskRoles
    task_offsets: Mapping[TaskId, int]
    task_end_offsets: Mapping[TaskId, int]


@dataclass(frozen=True, slots=True)
class DescribedStreamsGroup:
    """Represents one group in the answer to StreamsGroupDescribe.

    `subtopologies`: as the topics that exist allow them, if the topology is ready, else as the
    application has sent them.
    """

    phase: str
    epoch: int
    target_epoch: int
    topology_epoch: int
    subtopologies: dict[str, StreamsSubtopology | ConfiguredSubtopology]
    members: list[DescribedStreamsMember]


def describe_streams_group(
    group: StreamsGroup,
    transient_state: TransientStreamsState,
    configured: ConfiguredTopology | None,
) -> DescribedStreamsGroup:
    """Describe a streams group; `configured`: what its topology comes to, if that is known."""
    subtopologies: dict[str, StreamsSubtopology | ConfiguredSubtopology] = {}
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        subtopologies.update(configured.subtopologies)
    elif group.topology is not None:
        subtopologies.update({each.subtopology_id: each for each in group.topology.subtopologies})
    return DescribedStreamsGroup(
        phase=group.phase.value,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        topology_epoch=-1 if group.topology is None else group.topology.epoch,
        subtopologies=dict(sorted(subtopologies.items())),
        members=[
            DescribedStreamsMember(
                group.members[member_id],
                group.target_assignment.get(member_id, NO_ROLES),
                transient_state.task_offsets.get(member_id, {}),
                transient_state.task_end_offsets.get(member_id, {}),
            )
            for member_id in sort_like_timeline_map(group.members)
        ],
    )
