"""Hold a consumer group: what its records say, and indexes that spare searches.

Theory of operation (KIP-848). Three things follow one another, each with an epoch:

1. The group's *epoch* goes up with each change of members, subscriptions or subscribed topics.
2. The *target assignment* says what each member is to have; its epoch is that of the group when it
   was computed. While it is lower than the group's, the group is Assigning.
3. Each member's *current assignment* follows the target one step a heartbeat (see `reconcile`). The
   member's epoch is that of the target that it has got to, so a commit or a heartbeat of a member
   that missed a step is known by its epoch.

        group epoch  >= target epoch >= each member's epoch (-2: a static member that is away)

A partition has one owner at most: the member in whose current assignment it is, as assigned or as
still to be revoked. It is given to another only when it has none.

Only `apply_record` writes any of this. The first fields are what the records say; the rest is
kept beside it by `apply_record`, so that the heartbeat of a member with nothing new costs look-ups
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from uuid import UUID

from coordinator.groups.consumer.record_types import (
    ClassicMemberMetadata,
    ConsumerMemberSaved,
    CurrentAssignmentSaved,
    MemberState,
    PartitionEpochs,
    TopicPartitions,
)

CONSUMER = "consumer"  # the kind of group, as ListGroups shows it

FIRST_EPOCH = 1  # of a group and its target assignment: the first members get to 2
JOINING_EPOCH = 0
LEFT_EPOCH = -1
AWAY_EPOCH = -2  # of a static member that has left to come back

NO_PARTITIONS: PartitionEpochs = MappingProxyType({})
NO_TARGET: TopicPartitions = MappingProxyType({})
NO_EPOCHS: Mapping[int, int] = MappingProxyType({})


class ConsumerGroupPhase(Enum):
    """Lists the phases of a consumer group by Kafka's names, as ConsumerGroupDescribe shows them.

    Kafka's counterpart is ConsumerGroupState.
    """

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """Represents a member: its own description, its epochs and its current assignment.

    `classic`: what it has said if it speaks the classic protocol; None if it speaks the consumer
    protocol. `regex`: an empty one is none, as on the wire.
    """

    member_id: str
    epoch: int = JOINING_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    revoking: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    classic: ClassicMemberMetadata | None = None

    def has_partition(self, topic_id: UUID, partition: int) -> bool:
        """Return whether the member uses this partition, or has still to revoke it."""
        return any(
            partition in topics.get(topic_id, NO_EPOCHS)
            for topics in (self.assigned, self.revoking)
        )

    def has_reached(self, target_epoch: int) -> bool:
        """Return whether the member has all that the target assignment of this epoch gives it."""
        return self.epoch == target_epoch and self.state is MemberState.STABLE

    def to_member_record(self, group_id: str) -> ConsumerMemberSaved:
        """Return the record of the member's own description: its subscription, client and host."""
        return ConsumerMemberSaved(
            group_id=group_id,
            member_id=self.member_id,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            topics=tuple(sorted(self.topics)),
            regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            assignor=self.assignor,
            classic=self.classic,
        )

    def to_assignment_record(self, group_id: str) -> CurrentAssignmentSaved:
        """Return the record of the member's current assignment."""
        return CurrentAssignmentSaved(
            group_id=group_id,
            member_id=self.member_id,
            epoch=self.epoch,
            previous_epoch=self.previous_epoch,
            state=self.state,
            assigned=self.assigned,
            revoking=self.revoking,
        )


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """Represents the topics that a regular expression matched at some time.

    `version`: of the topics' metadata then.
    """

    topics: frozenset[str]
    topics_version: int
    resolved_at_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """Represents a consumer group with its members, target and resolved expressions."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0  # when the target assignment was computed; 0: never, or nobody knows
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    target_assignment: dict[str, TopicPartitions] = field(default_factory=dict)
    resolved_regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_subscription_metadata: bool = False

    # Indexes that `apply_record` keeps beside the records.
    static_members: dict[str, str] = field(default_factory=dict)  # instance id -> member id
    owners: dict[UUID, dict[int, str]] = field(default_factory=dict)  # -> member id
    subscriber_counts: dict[str, int] = field(default_factory=dict)  # by topic name; regexes apart
    regex_subscriber_counts: dict[str, int] = field(default_factory=dict)
    assignor_votes: dict[str, int] = field(default_factory=dict)
    classic_member_count: int = 0  # how many members speak the classic protocol

    @property
    def phase(self) -> ConsumerGroupPhase:
        """Return the phase of the group, which follows from its epochs and members."""
        if not self.members:
            return ConsumerGroupPhase.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupPhase.ASSIGNING
        # A copy, as another thread may read this for the metrics.
        if all(member.has_reached(self.target_epoch) for member in tuple(self.members.values())):
            return ConsumerGroupPhase.STABLE
        return ConsumerGroupPhase.RECONCILING

    def find_owner(self, topic_id: UUID, partition: int) -> str | None:
        """Return the id of the member that has a partition, or has still to revoke it."""
        found = self.owners.get(topic_id)
        return None if found is None else found.get(partition)

    def find_static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        """Return the member that has an instance id, or None."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_assignment_of(self, member_id: str, instance_id: str | None) -> TopicPartitions:
        """Return a member's target assignment; a static member inherits it by its instance id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.target_assignment.get(member_id, NO_TARGET)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether any member is subscribed to a topic, by name or by regular expression."""
        return topic in self.subscriber_counts or any(
            topic in found.topics for found in self.resolved_regexes.values()
        )

    def subscribed_topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Return the names of the topics that a member is subscribed to.

        A regular expression that isn't resolved is no topic.
        """
        if not member.regex:
            return member.topics
        found = self.resolved_regexes.get(member.regex)
        if found is None:
            return member.topics
        return member.topics | found.topics if member.topics else found.topics
