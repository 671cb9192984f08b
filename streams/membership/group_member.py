"""Declare a stream thread's membership of its group, whatever the group's protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple, Protocol

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo

AssignGroup = Callable[[Mapping[str, SubscriptionInfo]], dict[str, AssignmentInfo]]
"""Returns the assignment of each member, given what each has told the leader."""


class MembershipSignal(Enum):
    """Names what the stream thread must do about its membership."""

    NOTHING = auto()
    REBALANCE = auto()
    LOST = auto()


class MemberTimeouts(NamedTuple):
    """Holds the time-outs of a member, in ms."""

    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    join_give_up_ms: int


class Membership(NamedTuple):
    """Identifies a member in one generation of the group; generation -1 means no member."""

    generation: int
    member_id: str


class GroupMember(Protocol):
    """Represents a stream thread's membership of its group: see `ClassicProtocolMember`."""

    instance_id: str
    is_leader: bool
    silent_since_s: float | None

    @property
    def current_membership(self) -> Membership: ...

    def mark_progress(self) -> None: ...

    def read_signal(self) -> MembershipSignal: ...

    def join_group(self, subscription: SubscriptionInfo) -> AssignmentInfo | None: ...

    def commit_offsets(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> bool: ...

    def fetch_committed_offsets(self, partitions: Iterable[Partition]) -> CommittedOffsets: ...

    def leave_group(self, *, is_handed_over: bool = False) -> None: ...

    def hand_over_membership(self) -> None: ...
