"""Define the effects of decisions about streams groups: what follows once records are written.

They are values, in the order to carry them out; `effect_executor` does. Each is about the group
that was decided about.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias

from coordinator.groups.streams.configure import ConfiguredTopology
from coordinator.groups.streams.epoch_cause import StreamsEpochCause
from coordinator.groups.streams.record_types import StreamsMemberState
from coordinator.groups.streams.state import StreamsGroupMember
from coordinator.groups.streams.tasks import TaskId


class StreamsTimer(IntEnum):  # integers are quick keys of dictionaries
    """Lists the kinds of timers of a streams group and its members."""

    SESSION = auto()
    REBALANCE = auto()
    INITIAL_DELAY = auto()  # of the group, under the member id ""


class SetStreamsTimer(NamedTuple):
    """Starts a member's timer of one kind, anew if it is running."""

    timer: StreamsTimer
    member_id: str
    timeout_ms: int


class CancelStreamsTimer(NamedTuple):
    """Cancels a member's timer of one kind, if it is running."""

    timer: StreamsTimer
    member_id: str


class DropStreamsMember(NamedTuple):
    """Cancels all timers of a member that the group has no more, and drops what it reported."""

    member_id: str


class StartInitialDelay(NamedTuple):
    """Starts the initial delay of a group unless it is running."""

    timeout_ms: int


class RememberTopology(NamedTuple):
    """Notes what the topology comes to, and the version of the topics that it was compared with."""

    configured: ConfiguredTopology
    topics_version: int


class RequestShutdown(NamedTuple):
    """Notes that a member wants all members of the application to shut down."""

    member_id: str


class SetEndpointEpoch(NamedTuple):
    """Notes that endpoints, or what they serve, have changed."""

    epoch: int


class KeepTaskOffsets(NamedTuple):
    """Notes how far a member's state of its tasks is, and how far it could be."""

    member_id: str
    offsets: Mapping[TaskId, int] | None
    end_offsets: Mapping[TaskId, int] | None


class DropTaskOffsets(NamedTuple):
    """Drops what a member reported that another one has replaced, or it itself."""

    member_id: str


class CountStreamsEpoch(NamedTuple):
    """Counts the group's next epoch by its cause; `member_id`: who brought it."""

    cause: StreamsEpochCause
    member_id: str


class CountStreamsTarget(NamedTuple):
    """Counts a target assignment, how many tasks it took from members, and its time.

    `began_ns`: the monotonic time at which its request began.
    """

    moved_count: int
    began_ns: int


class CountStreamsSettled(NamedTuple):
    """Counts a rebalance as complete if the group is Stable or Empty by now."""


StreamsEffect: TypeAlias = (
    SetStreamsTimer
    | CancelStreamsTimer
    | DropStreamsMember
    | StartInitialDelay
    | RememberTopology
    | RequestShutdown
    | SetEndpointEpoch
    | KeepTaskOffsets
    | DropTaskOffsets
    | CountStreamsEpoch
    | CountStreamsTarget
    | CountStreamsSettled
)

# What Kafka loses of the first heartbeat of a new group: it makes the group anew from the records.
LOST_WITH_NEW_GROUP = (RememberTopology, RequestShutdown, SetEndpointEpoch, KeepTaskOffsets)


def select_revocation_timer(member: StreamsGroupMember) -> SetStreamsTimer | CancelStreamsTimer:
    """Return the effect that limits how long a member may take to revoke tasks."""
    if member.state is StreamsMemberState.UNREVOKED_TASKS:
        return SetStreamsTimer(
            StreamsTimer.REBALANCE, member.member_id, member.rebalance_timeout_ms
        )
    return CancelStreamsTimer(StreamsTimer.REBALANCE, member.member_id)
