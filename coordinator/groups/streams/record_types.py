"""Define the records of a streams group: one fact in each, and its tombstone.

A group is spread over six kinds of record: the group's epoch; its topology; each member as it
described itself; the target assignment, an epoch for all and a record a member; and what each
member has at present.
Source: KIP-1071, and Kafka's `StreamsGroup*Key.json` and `StreamsGroup*Value.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from coordinator.groups.streams.tasks import AssignedTasks, TaskRoles
from coordinator.groups.streams.topology import StreamsTopology

NO_EPOCH = -1
Endpoint: TypeAlias = tuple[str, int]  # host, port
Tags: TypeAlias = tuple[tuple[str, str], ...]  # key and value, by key


class StreamsMemberState(IntEnum):
    """Lists the states of a member on its way to its target; the numbers are those of the log."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # it has to revoke some before it gets to the next epoch
    UNRELEASED_TASKS = 3  # it waits for tasks that others have yet to revoke
    UNKNOWN = 127  # one that only a newer broker knows

    @classmethod
    def _missing_(cls, value: object) -> StreamsMemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamsGroupSaved:
    """Represents the record of a group's epoch.

    `metadata_hash`: of the topics that its topology needs. `validated_topology_epoch`: the topology
    whose topics are all there and rightly partitioned, or -1. `assignment_configs`: the settings
    that the last target was computed with. The last two are a plugin's of Kafka, which keeps
    descriptions of topologies; they are handed on.
    """

    group_id: str
    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_EPOCH
    assignment_configs: Tags = ()
    stored_description_epoch: int = NO_EPOCH
    failed_description_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class StreamsGroupForgotten:
    """Represents the tombstone of a streams group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StreamsTopologySaved:
    """Represents the record of a group's topology."""

    group_id: str
    topology: StreamsTopology


@dataclass(frozen=True, slots=True)
class StreamsTopologyForgotten:
    """Represents the tombstone of a group's topology."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StreamsMemberSaved:
    """Represents the record of a member as it described itself.

    `process_id`: of the instance of the application, which may have several members.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    endpoint: Endpoint | None
    client_tags: Tags


@dataclass(frozen=True, slots=True)
class StreamsMemberForgotten:
    """Represents the tombstone of a member."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsTargetEpochSaved:
    """Represents the record of the group epoch that the target assignment was computed for.

    `assigned_at_ms`: when it was computed; 0 if nobody knows.
    """

    group_id: str
    epoch: int
    assigned_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class StreamsTargetEpochForgotten:
    """Represents the tombstone of the target assignment's epoch."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StreamsTargetAssignmentSaved:
    """Represents the record of the tasks that a member is to have."""

    group_id: str
    member_id: str
    tasks: TaskRoles


@dataclass(frozen=True, slots=True)
class StreamsTargetAssignmentForgotten:
    """Represents the tombstone of a member's target assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsCurrentAssignmentSaved:
    """Represents the record of the tasks that a member has.

    These are `assigned`, and `revoking`, which it has been told to revoke and has not revoked yet.
    """

    group_id: str
    member_id: str
    epoch: int
    previous_epoch: int
    state: StreamsMemberState
    assigned: AssignedTasks
    revoking: AssignedTasks


@dataclass(frozen=True, slots=True)
class StreamsCurrentAssignmentForgotten:
    """Represents the tombstone of a member's current assignment."""

    group_id: str
    member_id: str


Record: TypeAlias = (
    StreamsGroupSaved
    | StreamsGroupForgotten
    | StreamsTopologySaved
    | StreamsTopologyForgotten
    | StreamsMemberSaved
    | StreamsMemberForgotten
    | StreamsTargetEpochSaved
    | StreamsTargetEpochForgotten
    | StreamsTargetAssignmentSaved
    | StreamsTargetAssignmentForgotten
    | StreamsCurrentAssignmentSaved
    | StreamsCurrentAssignmentForgotten
)
