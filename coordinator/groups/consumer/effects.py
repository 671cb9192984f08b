"""Define the effects of decisions about consumer groups: what follows once records are written.

They are values, in the order to carry them out; `effect_executor` does. Each is about the group
that was decided about.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias

from coordinator.groups.classic.state import ClassicGroup
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.record_types import MemberState
from coordinator.groups.consumer.state import ConsumerGroupMember


class ConsumerTimer(IntEnum):  # integers are quick keys of dictionaries
    """Lists the kinds of timers of a member of a consumer group."""

    SESSION = auto()
    REBALANCE = auto()
    JOIN = auto()  # of a classic member
    SYNC = auto()  # of a classic member


class SetMemberTimer(NamedTuple):
    """Starts a member's timer of one kind, anew if it is running."""

    timer: ConsumerTimer
    member_id: str
    timeout_ms: int


class StartMemberTimer(NamedTuple):
    """Starts a member's timer of one kind unless it is running."""

    timer: ConsumerTimer
    member_id: str
    timeout_ms: int


class CancelMemberTimer(NamedTuple):
    """Cancels a member's timer of one kind, if it is running."""

    timer: ConsumerTimer
    member_id: str


class CancelMemberTimers(NamedTuple):
    """Cancels all timers of members that the group has no more."""

    member_ids: tuple[str, ...]


class CountEpochStart(NamedTuple):
    """Counts the group's next epoch by its cause; `member_ids`: those who brought it."""

    cause: GroupEpochCause
    member_ids: tuple[str, ...] = ()


class CountEpochSettled(NamedTuple):
    """Counts a rebalance as complete if the group is Stable or Empty by now."""


class CountTargetAssignment(NamedTuple):
    """Counts a target assignment, how many partitions it took from members, and its time.

    `began_ns`: the monotonic time at which its request began.
    """

    assignor: str
    moved_count: int
    began_ns: int


class RememberTopicsVersion(NamedTuple):
    """Notes the version of the topics that the group's metadata hash has been compared with."""

    topics_version: int


class ResolveRegexes(NamedTuple):
    """Resolves regular expressions in the background."""

    regexes: frozenset[str]


class DropConsumerGroup(NamedTuple):
    """Cancels all timers of a group that is a classic one by now; drops its transient state."""

    member_ids: tuple[str, ...]


class DropClassicGroup(NamedTuple):
    """Drops a classic group that is a consumer group by now, and answers its pending requests."""

    classic_group: ClassicGroup


class AdoptClassicGroup(NamedTuple):
    """Adds the classic group that the group is by now, and rebalances it if `must_rebalance`."""

    classic_group: ClassicGroup
    must_rebalance: bool


ConsumerEffect: TypeAlias = (
    SetMemberTimer
    | StartMemberTimer
    | CancelMemberTimer
    | CancelMemberTimers
    | CountEpochStart
    | CountEpochSettled
    | CountTargetAssignment
    | RememberTopicsVersion
    | ResolveRegexes
    | DropConsumerGroup
    | DropClassicGroup
    | AdoptClassicGroup
)


def select_rebalance_timer(member: ConsumerGroupMember) -> SetMemberTimer | CancelMemberTimer:
    """Return the effect that limits how long a member may take to revoke partitions.

    A member that has none to revoke has no such timer, nor has one of the classic protocol.
    """
    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        return SetMemberTimer(
            ConsumerTimer.REBALANCE, member.member_id, member.rebalance_timeout_ms
        )
    return CancelMemberTimer(ConsumerTimer.REBALANCE, member.member_id)
