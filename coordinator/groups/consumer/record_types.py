"""Define the records of a consumer group: one fact in each, and its tombstone.

A group is spread over seven kinds of record, so that a change writes only what it changes: the
group's epoch; each member as it described itself; each regular expression as it was resolved; the
target assignment, an epoch for all and a record a member; and what each member owns at present.

Partitions are named by topic id, as the wire names them: a topic deleted and made again is another.
Source: KIP-848, and Kafka's `ConsumerGroup*Key.json` and `ConsumerGroup*Value.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias
from uuid import UUID

TopicPartitions: TypeAlias = Mapping[UUID, frozenset[int]]
# The member epoch at which each partition was assigned: a commit with an older one is a zombie's.
PartitionEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]


class MemberState(IntEnum):
    """Lists the states of a member on its way to its target; the numbers are those of the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to revoke some before it gets to the next epoch
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have yet to revoke
    UNKNOWN = 127  # one that only a newer broker knows

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerGroupSaved:
    """Represents the record of a group's epoch.

    `metadata_hash`: of the topics it is subscribed to; 0: unknown, to be computed anew at the next
    heartbeat.
    """

    group_id: str
    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupForgotten:
    """Represents the tombstone of a consumer group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionMetadataSaved:
    """Represents the record of subscribed topics that Kafka wrote before 4.1.

    Since then there is `metadata_hash`.

    Read, never written: a group that has it ends it with its next epoch. What it says of the topics
    is not kept.
    """

    group_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionMetadataForgotten:
    """Represents the tombstone of subscription metadata."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """Holds the session timeout and the protocols of a member that speaks the classic protocol.

    The protocols are (name, metadata), the preferred one first.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMemberSaved:
    """Represents the record of a member as it described itself.

    `rebalance_timeout_ms` -1: it has not said. `topics` is in the order of the log: Kafka sorts it.
    `classic` None: it speaks the consumer protocol.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMemberMetadata | None = None


@dataclass(frozen=True, slots=True)
class ConsumerMemberForgotten:
    """Represents the tombstone of a member."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetEpochSaved:
    """Represents the record of the group epoch that the target assignment was computed for.

    `assigned_at_ms`: when it was computed; 0 in records from before Kafka 4.3.
    """

    group_id: str
    epoch: int
    assigned_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class TargetEpochForgotten:
    """Represents the tombstone of the target assignment's epoch."""

    group_id: str


@dataclass(frozen=True, slots=True)
class TargetAssignmentSaved:
    """Represents the record of the partitions that a member is to have."""

    group_id: str
    member_id: str
    partitions: TopicPartitions


@dataclass(frozen=True, slots=True)
class TargetAssignmentForgotten:
    """Represents the tombstone of a member's target assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class CurrentAssignmentSaved:
    """Represents the record of the partitions that a member has.

    These are `assigned`, and `revoking`, which it has been told to revoke and has not revoked yet.
    """

    group_id: str
    member_id: str
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: PartitionEpochs
    revoking: PartitionEpochs


@dataclass(frozen=True, slots=True)
class CurrentAssignmentForgotten:
    """Represents the tombstone of a member's current assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexResolved:
    """Represents the record of the topics that a regular expression matched.

    `version`: of the topics' metadata that was searched; `resolved_at_ms`: when that was.
    """

    group_id: str
    regex: str
    topics: tuple[str, ...]
    topics_version: int
    resolved_at_ms: int


@dataclass(frozen=True, slots=True)
class RegexForgotten:
    """Represents the tombstone of a resolved regular expression."""

    group_id: str
    regex: str


Record: TypeAlias = (
    ConsumerGroupSaved
    | ConsumerGroupForgotten
    | SubscriptionMetadataSaved
    | SubscriptionMetadataForgotten
    | ConsumerMemberSaved
    | ConsumerMemberForgotten
    | TargetEpochSaved
    | TargetEpochForgotten
    | TargetAssignmentSaved
    | TargetAssignmentForgotten
    | CurrentAssignmentSaved
    | CurrentAssignmentForgotten
    | RegexResolved
    | RegexForgotten
)
