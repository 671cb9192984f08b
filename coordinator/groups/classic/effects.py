"""Define the effects of decisions about classic groups: what follows once records are written.

They are values, in the order to carry them out; the membership does. Each is about the group that
was decided about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import NamedTuple, TypeAlias

from coordinator.errors import Code
from coordinator.groups.classic.state import NO_GENERATION, ClassicGroup


class ClassicTimer(IntEnum):  # integers are quick keys of dictionaries
    """Lists the kinds of timers of a classic group."""

    SESSION = auto()
    JOIN = auto()
    SYNC = auto()


class ClassicRebalanceCause(Enum):
    """Lists the causes of a rebalance; the values name them in metrics."""

    MEMBER_JOINED = "join"
    MEMBER_CHANGED = "rejoin"  # the leader joined again, or a follower with other metadata
    MEMBER_REPLACED = "replace"  # a static member came back in a way that matters
    MEMBER_LEFT = "leave"
    SESSION_EXPIRED = "session"
    SYNC_EXPIRED = "sync"  # members had joined, and never sent a SyncGroup
    ASSIGNMENT_LOST = "append"  # the leader's assignment could not be persisted
    CONVERTED = "downgrade"  # it was a consumer group
    GROUP_TOO_LARGE = "size"  # group.max.size is less than it was when the group was saved


ClassicTimerKey: TypeAlias = tuple[
    ClassicTimer, str, str
]  # kind, group id, member id (of a session)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswer:
    """Represents the answer to a JoinGroup.

    `members` (id, instance id, metadata) are the leader's to assign to; others get none.
    """

    code: Code = Code.NONE
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """Represents the answer to a SyncGroup."""

    code: Code = Code.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class KeepJoinState(NamedTuple):
    """Keeps the changed group's join state, which no record holds (`state.keep_join_state`).

    `is_saved`: a record of the group is written with this, so that the rest is derived from it.
    """

    group: ClassicGroup
    is_saved: bool


class CountRebalanceStart(NamedTuple):
    """Counts a rebalance that begins, by its cause; `generation`: the one that ends with it."""

    cause: ClassicRebalanceCause
    generation: int


class CountRebalanceEnd(NamedTuple):
    """Counts a rebalance that is complete."""

    generation: int
    member_count: int
    elapsed_ms: int


class SetTimer(NamedTuple):
    """Starts a timer anew."""

    key: ClassicTimerKey
    timeout_ms: int


class CancelTimer(NamedTuple):
    """Cancels a timer, if it is running."""

    key: ClassicTimerKey


class AwaitAnswer(NamedTuple):
    """Keeps the callback of this request: its answer is the member's, and comes later."""

    member_id: str


class AnswerJoin(NamedTuple):
    """Answers the pending JoinGroup of a member."""

    member_id: str
    answer: JoinAnswer


class AnswerSync(NamedTuple):
    """Answers the pending SyncGroup of a member."""

    member_id: str
    answer: SyncAnswer
