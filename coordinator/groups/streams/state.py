"""Hold a streams group: what its records say, and indexes that spare searches.

Theory of operation (KIP-1071). Three things follow one another, each with an epoch:

1. The group's *epoch* goes up with each change of members, of the topics that the topology needs,
   or of the settings that an assignment depends on.
2. The *target assignment* says which tasks each member is to have; its epoch is that of the group
   when it was computed. While it is lower than the group's, the group is Assigning.
3. Each member's *current assignment* follows the target one step a heartbeat (see `reconcile`).

        group epoch  >= target epoch >= each member's epoch (-2: a static member that is away)

An active task has one owner at most: the member in whose current assignment it is, as assigned or
as still to be revoked. It is given to another only when it has none, and a process never has it in
two roles. While topics that the topology needs are missing or wrongly partitioned, the group is
NotReady, and its target is empty.

Only `apply_record` writes any of this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from coordinator.groups.streams.record_types import (
    NO_EPOCH,
    Endpoint,
    StreamsCurrentAssignmentSaved,
    StreamsGroupSaved,
    StreamsMemberSaved,
    StreamsMemberState,
    Tags,
)
from coordinator.groups.streams.tasks import (
    NO_ROLES,
    NOTHING_ASSIGNED,
    AssignedTasks,
    TaskId,
    TaskRoles,
)
from coordinator.groups.streams.topology import StreamsTopology

STREAMS = "streams"  # the kind of group, and its protocol type, as ListGroups shows them

FIRST_EPOCH = 1  # of a group and its target assignment: the first members get to 2
JOINING_EPOCH = 0
LEFT_EPOCH = -1
AWAY_EPOCH = -2  # of a static member that has left to come back


class StreamsGroupPhase(Enum):
    """Lists the phases of a streams group by Kafka's names, as StreamsGroupDescribe shows them.

    Kafka's counterpart is StreamsGroupState.
    """

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class StreamsGroupMember:
    """Represents a member: its own description, its epochs and its current assignment."""

    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: StreamsMemberState = StreamsMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_EPOCH
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: Tags = ()
    assigned: AssignedTasks = NOTHING_ASSIGNED
    revoking: AssignedTasks = NOTHING_ASSIGNED

    def has_reached(self, target_epoch: int) -> bool:
        """Return whether the member has all that the target assignment of this epoch gives it."""
        return self.epoch == target_epoch and self.state is StreamsMemberState.STABLE

    def to_member_record(self, group_id: str) -> StreamsMemberSaved:
        """Return the record of what the member said of itself."""
        return StreamsMemberSaved(
            group_id=group_id,
            member_id=self.member_id,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            endpoint=self.endpoint,
            client_tags=self.client_tags,
        )

    def to_assignment_record(self, group_id: str) -> StreamsCurrentAssignmentSaved:
        """Return the record of the member's current assignment."""
        return StreamsCurrentAssignmentSaved(
            group_id=group_id,
            member_id=self.member_id,
            epoch=self.epoch,
            previous_epoch=self.previous_epoch,
            state=self.state,
            assigned=self.assigned,
            revoking=self.revoking,
        )


@dataclass(slots=True)
class StreamsGroup:
    """Represents a streams group with its topology, members and target assignment."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_EPOCH
    assignment_configs: Tags = ()
    stored_description_epoch: int = NO_EPOCH
    failed_description_epoch: int = NO_EPOCH
    topology: StreamsTopology | None = None
    target_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0  # when the target assignment was computed; 0: never, or nobody knows
    members: dict[str, StreamsGroupMember] = field(default_factory=dict)
    target_assignment: dict[str, TaskRoles] = field(default_factory=dict)

    # Indexes that `apply_record` keeps beside the records.
    static_members: dict[str, str] = field(default_factory=dict)  # instance id -> member id
    active_owners: dict[TaskId, str] = field(default_factory=dict)  # -> member id
    standby_holders: dict[TaskId, set[str]] = field(default_factory=dict)  # -> member ids
    warmup_holders: dict[TaskId, set[str]] = field(default_factory=dict)  # -> member ids

    @property
    def phase(self) -> StreamsGroupPhase:
        """Return the phase of the group, which follows from its epochs, topology and members."""
        if not self.members:
            return StreamsGroupPhase.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupPhase.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupPhase.ASSIGNING
        # A copy, as another thread may read this for the metrics.
        if all(member.has_reached(self.target_epoch) for member in tuple(self.members.values())):
            return StreamsGroupPhase.STABLE
        return StreamsGroupPhase.RECONCILING

    def find_static_member(self, instance_id: str) -> StreamsGroupMember | None:
        """Return the member that has an instance id, or None."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> TaskRoles:
        """Return the tasks that a member is to have."""
        return self.target_assignment.get(member_id, NO_ROLES)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether the group has members and its topology reads a topic."""
        return (
            bool(self.members) and self.topology is not None and topic in self.topology.reader_ids
        )

    def to_group_record(self, epoch: int) -> StreamsGroupSaved:
        """Return the record of another epoch of the group, which is as it was otherwise."""
        return StreamsGroupSaved(
            self.group_id,
            epoch,
            self.metadata_hash,
            self.validated_topology_epoch,
            self.assignment_configs,
            self.stored_description_epoch,
            self.failed_description_epoch,
        )
