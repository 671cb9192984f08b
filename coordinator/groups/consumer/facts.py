"""What the log says of a consumer group: one fact a record, past tense, and the end of each.

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
# Of each partition the member epoch at which it was given: a commit from before that is a zombie's.
PartitionEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]


class MemberState(IntEnum):
    """How far a member has come with its target assignment; the numbers are those of the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give some up before it gets to the next epoch
    UNRELEASED_PARTITIONS = 2  # it is there, but waits for what others have yet to give up
    UNKNOWN = 127  # one that only a newer broker knows

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerGroupSaved:
    """The group is at this epoch. `metadata_hash`: of the topics it is subscribed to; 0: unknown,
    to be computed anew at the next heartbeat."""

    group_id: str
    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupForgotten:
    group_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionMetadataSaved:
    """Written by Kafka before 4.1, where `metadata_hash` stands now. Read, never written: a group
    that has it ends it with its next epoch. What it says of the topics is not kept."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionMetadataForgotten:
    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What a member that speaks the classic protocol has said beyond a consumer member: its
    protocols as (name, metadata), the preferred one first."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMemberSaved:
    """A member as it described itself. `rebalance_timeout_ms` -1: it has not said.

    `topics` is in the order of the log: Kafka sorts it. `classic` None: it speaks the consumer
    protocol.
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
    classic: ClassicMember | None = None


@dataclass(frozen=True, slots=True)
class ConsumerMemberForgotten:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetEpochSaved:
    """The target assignment is that of this group epoch. `assigned_ms`: when it was computed; 0 in
    records from before Kafka 4.3."""

    group_id: str
    epoch: int
    assigned_ms: int = 0


@dataclass(frozen=True, slots=True)
class TargetEpochForgotten:
    group_id: str


@dataclass(frozen=True, slots=True)
class TargetAssignmentSaved:
    """What a member is to have."""

    group_id: str
    member_id: str
    partitions: TopicPartitions


@dataclass(frozen=True, slots=True)
class TargetAssignmentForgotten:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class CurrentAssignmentSaved:
    """What a member has: `assigned`, and `revoking`, which it has been told to give up and has not
    given up yet."""

    group_id: str
    member_id: str
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: PartitionEpochs
    revoking: PartitionEpochs


@dataclass(frozen=True, slots=True)
class CurrentAssignmentForgotten:
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexResolved:
    """The topics that a regular expression stood for when the cluster's metadata were at `version`;
    `resolved_ms`: when that was."""

    group_id: str
    regex: str
    topics: tuple[str, ...]
    version: int
    resolved_ms: int


@dataclass(frozen=True, slots=True)
class RegexForgotten:
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
