"""Declare a stream thread's membership of its group, whatever the group's protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple, Protocol

from streams.membership.protocol import Assigned, Subscribed
from streams.positions import Committed, CommittedOffsets, Partition

Plan = Callable[[Mapping[str, Subscribed]], dict[str, Assigned]]
"""Returns the assignment of each member, given what each has told the leader."""


class Signal(Enum):
    """Names what the stream thread must do about its membership."""

    NOTHING = auto()
    REBALANCE = auto()
    LOST = auto()


class Timeouts(NamedTuple):
    """Holds the time-outs of a member, in ms."""

    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    give_up_ms: int


class Membership(NamedTuple):
    """Identifies a member in one generation of the group; generation -1 means no member."""

    generation: int
    member_id: str


class GroupMember(Protocol):
    """Represents a stream thread's membership of its group: see `ClassicProtocolMember`."""

    instance_id: str
    leads: bool
    silent_since_s: float | None

    @property
    def current(self) -> Membership: ...

    def turned(self) -> None: ...

    def signal(self) -> Signal: ...

    def join(self, subscribed: Subscribed) -> Assigned | None: ...

    def commit_offsets(self, offsets: Iterable[tuple[Partition, Committed]]) -> bool: ...

    def committed_offsets(self, partitions: Iterable[Partition]) -> CommittedOffsets: ...

    def leave(self, *, handed_over: bool = False) -> None: ...

    def hand_over(self) -> None: ...
