"""Declare a stream thread's membership of its group, whatever the group's protocol."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum, auto
from typing import NamedTuple, Protocol, TypeAlias

from streams.common.addresses import Address
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo

CommitLimitS: TypeAlias = float
"""Seconds after which a commit of offsets has to be given up; infinite without a limit."""

MustRejoin: TypeAlias = bool
"""True if the member has to join the group again."""

AssignGroup = Callable[[Mapping[str, SubscriptionInfo]], dict[str, AssignmentInfo]]
"""Returns the assignment of each member, given what each has told the leader."""


class MembershipSignal(Enum):
    """Names the actions that a heartbeat's answer demands of the stream thread."""

    NOTHING = auto()
    REBALANCE = auto()
    ASSIGNED = auto()
    """The join that was started is over: its assignment, or its error, can be taken."""
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


def find_leave_reason(has_failed: bool) -> str:
    """Return why a thread leaves its group, for the log of the worker and of the coordinator."""
    return "its thread ended after an error" if has_failed else "the worker was closed"


class GroupMember(Protocol):
    """Represents a stream thread's membership of its group: what the runtime needs of a member.

    `ClassicProtocolMember` speaks the classic protocol; `StreamsProtocolMember` the streams
    protocol (KIP-1071), where the epoch is the generation. Nothing else of the runtime knows the
    difference.
    """

    instance_id: str
    """Identifies the stream thread over restarts of its worker."""
    is_leader: bool
    """True if this member assigns the group's tasks, and so checks whether inputs have changed."""

    @property
    def static_instance_id(self) -> str | None:
        """Return the instance id by which the group knows the member; None for a dynamic one."""
        return self.instance_id

    @property
    @abstractmethod
    def confirmed_at_s(self) -> float | None:
        """Return the monotonic time in s at which the group still had this member.

        Until then no other member can have been given its tasks. None before the first heartbeat.
        """
        ...

    @property
    @abstractmethod
    def silent_since_s(self) -> float | None:
        """Return the monotonic time in s since when no coordinator answers, None if one does."""
        ...

    @property
    @abstractmethod
    def unanswered_since_s(self) -> float | None:
        """Return the monotonic time in s since when a broker lets a heartbeat wait; None if none.

        Known once the answer is overdue: the broker hangs, or the network drops packets.
        """
        ...

    @property
    def coordinator_address(self) -> Address | None:
        """Return where the group's coordinator is, while it is connected to; None if unknown."""
        return None

    @property
    def unready_reason(self) -> str:
        """Return why the group has no tasks, as its brokers say; empty while it has some."""
        return ""

    @property
    @abstractmethod
    def current_membership(self) -> Membership:
        """Return the generation and the member id that the member has now."""
        ...

    @abstractmethod
    def mark_progress(self) -> None:
        """Record that the stream thread is alive, so that its heartbeats go on."""
        ...

    @abstractmethod
    def read_current_signal_or_raise(self) -> MembershipSignal:
        """Return the signal for the stream thread: join again, revoke tasks, or nothing.

        Raises: StreamsError for what no later heartbeat would change.
        """
        ...

    @property
    @abstractmethod
    def is_joining(self) -> bool:
        """Return whether a join was started whose assignment has not been taken."""
        ...

    @property
    @abstractmethod
    def is_generation_over(self) -> bool:
        """Return whether the group is known to refuse the offsets of this generation."""
        ...

    @abstractmethod
    def mark_generation_over(self) -> None:
        """Note that the group has refused offsets of this generation."""
        ...

    @abstractmethod
    def start_joining(self, subscription: SubscriptionInfo) -> None:
        """Start to join the group, beside the stream thread, which goes on meanwhile."""
        ...

    @abstractmethod
    def peek_assignment(self, wait_s: float) -> tuple[Membership, AssignmentInfo] | None:
        """Return the assignment of the join that was started, which stays to be taken.

        With it comes the membership in which it holds. Returns None if there is none after `wait_s`
        seconds, or if the join has failed.
        """
        ...

    @abstractmethod
    def enter_assigned_generation(self, wait_s: float = 0.0) -> AssignmentInfo | None:
        """Return the assignment of a started join, and enter its generation with it.

        Returns None if there is none after `wait_s` seconds, and raises what has ended the join.
        """
        ...

    def has_kept_tasks_until(self, owned_generation: int, generation: int) -> bool:
        """Return whether tasks owned in one generation were the member's up to another.

        They may be another's meanwhile if the member has missed a generation.
        """
        return generation == owned_generation + 1

    def acknowledge_assignment(self, assigned: AssignmentInfo) -> MustRejoin:
        """Note that the tasks are as assigned now, and that those revoked are closed.

        Returns whether the member has to join again, so that others get those.
        """
        return bool(assigned.revoked)

    def hold_membership(self) -> AbstractContextManager[CommitLimitS]:
        """Return a context manager in whose block offsets are sent as this member.

        It yields the seconds that the block may take; infinity if the group does not notice.
        """
        return nullcontext(math.inf)

    @abstractmethod
    def try_commit_offsets(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> bool:
        """Commit offsets outside a transaction; return False if the group refuses this member."""
        ...

    @abstractmethod
    def is_membership_confirmed(self) -> bool:
        """Return whether the group still has this member in its generation."""
        ...

    @abstractmethod
    def fetch_committed_offsets(self, partitions: Iterable[Partition] | None) -> CommittedOffsets:
        """Fetch the group's committed offsets, and the partitions whose offset is still pending."""
        ...

    @abstractmethod
    def leave_group(self, *, is_handed_over: bool = False, has_failed: bool = False) -> None:
        """Leave the group, also in place of a former member if its place was handed over.

        `has_failed`: the thread ends after an error, which is what the group is told as the reason.
        """
        ...

    @abstractmethod
    def end_without_leaving_group(self) -> None:
        """End without leaving the group, so that a successor takes the place."""
        ...
