"""Hold a classic group: the phases of a rebalance, its durable record and its volatile state.

Theory of operation. Members join; when all that are expected have, the generation goes up and every
JoinGroup is answered, the leader's with everybody's metadata. The leader's SyncGroup brings the
assignments; they are written to the log, and only then every SyncGroup is answered. From there on
members heartbeat, until somebody joins, leaves or falls silent.

Two structures, kept apart on purpose:

- `GroupSaved` is durable: the last record of the group, changed by apply only. One is written when
  the leader's assignment arrives, when a static member takes its place back without a rebalance,
  and when the last member is gone. A restart gives back exactly that: a Stable (or Empty) group,
  whose members heartbeat on without noticing.
- `ClassicGroup` is volatile, as in Kafka: the rebalance under way, who has joined, who is awaited,
  all protocols that each member offers. A decision works on a copy, which takes the place of the
  original only after the decision's records are in the log. In Stable and Empty it says the same
  as the record. A crash in the middle of a rebalance loses the rebalance: the group comes back at
  the generation before, members are told ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and join again.

A member id is handed out at the first JoinGroup (MEMBER_ID_REQUIRED) and must be used for the
second, so that a client that repeats a join doesn't become two members. A static member is known by
its instance id: coming back with an empty member id, it takes over place and assignment of the old
member id, which is fenced (FENCED_INSTANCE_ID) from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias


class Phase(Enum):
    """Lists the phases of a classic group by Kafka's names, as DescribeGroups shows them.

    Kafka's counterpart is ClassicGroupState.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# Each phase, and the phases that it may follow.
PREVIOUS: dict[Phase, frozenset[Phase]] = {
    Phase.EMPTY: frozenset({Phase.PREPARING_REBALANCE}),
    Phase.PREPARING_REBALANCE: frozenset({Phase.STABLE, Phase.COMPLETING_REBALANCE, Phase.EMPTY}),
    Phase.COMPLETING_REBALANCE: frozenset({Phase.PREPARING_REBALANCE}),
    Phase.STABLE: frozenset({Phase.COMPLETING_REBALANCE}),
    Phase.DEAD: frozenset(Phase),
}

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class SavedMember:
    """Represents a member in the record of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupSaved:
    """Represents the record of a classic group: Empty without members, Stable with some."""

    group_id: str
    protocol_type: str | None
    generation: int
    protocol: str | None
    leader: str | None
    phase_ms: int
    members: tuple[SavedMember, ...]


@dataclass(frozen=True, slots=True)
class GroupForgotten:
    """Represents the tombstone of a classic group."""

    group_id: str


Record: TypeAlias = GroupSaved | GroupForgotten


@dataclass(frozen=True, slots=True)
class Member:
    """Represents a member in memory: `protocols` are (name, metadata), the preferred one first.

    `is_new`: its first JoinGroup has not been answered yet. `protocol_names`: the names of its
    protocols, which each join of another member looks at.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    is_new: bool = False
    offers: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "offers", frozenset(name for name, _ in self.protocols))

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol, or no bytes if it doesn't offer it."""
        return next((found for name, found in self.protocols if name == protocol), b"")


@dataclass(slots=True)
class Group:
    """Represents a classic group in memory, with the rebalance under way.

    It is the volatile half of a group: see the module's docstring.
    """

    group_id: str
    phase: Phase = Phase.EMPTY
    came_from: Phase = Phase.EMPTY
    phase_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    joining: set[str] = field(default_factory=set)  # members whose JoinGroup awaits its answer
    syncing: set[str] = field(default_factory=set)  # members whose SyncGroup awaits its answer
    pending_join: set[str] = field(default_factory=set)  # members that got an id only
    pending_sync: set[str] = field(default_factory=set)  # members that have joined and are to sync
    new_member_added: bool = False
    round_ms: int = 0  # when the rebalance under way began
    initial_delay_ms: int = 0  # of the initial rebalance: the delay under way
    initial_remaining_ms: int = 0  # how much longer the initial rebalance may be delayed

    @classmethod
    def of(cls, saved: GroupSaved) -> Group:
        """Create the group from its record, as after a restart."""
        phase = Phase.STABLE if saved.members else Phase.EMPTY
        members = (
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                protocols=((saved.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
            for member in saved.members
        )
        return cls(
            group_id=saved.group_id,
            phase=phase,
            came_from=phase,
            phase_ms=saved.phase_ms,
            generation=saved.generation,
            protocol_type=saved.protocol_type,
            protocol=saved.protocol,
            leader=saved.leader,
            members={member.member_id: member for member in members},
        )

    def copy(self) -> Group:
        return replace(
            self,
            members=dict(self.members),
            joining=set(self.joining),
            syncing=set(self.syncing),
            pending_join=set(self.pending_join),
            pending_sync=set(self.pending_sync),
        )

    def saved(self) -> GroupSaved:
        """Return the record that persists this group as it is now."""
        return GroupSaved(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            phase_ms=self.phase_ms,
            members=tuple(
                SavedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout of any member."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        """Whether all members have joined and nobody with a new id is still to join."""
        return len(self.joining) == len(self.members) and not self.pending_join

    def static_member_id(self, instance_id: str) -> str | None:
        """Return the member id that an instance id has, or None."""
        return next(
            (m.member_id for m in self.members.values() if m.instance_id == instance_id), None
        )

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        """Whether a member with these protocols can join, or stay in, the group."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type and names)
        # A rebalance that all members have left goes on for those that have only got an id.
        wanted = names & self.common_protocols() if self.members else names
        return protocol_type == self.protocol_type and bool(wanted)

    def common_protocols(self) -> frozenset[str]:
        """Return the protocols that all members offer; most members offer the same ones."""
        offered = {member.offers for member in self.members.values()}
        return frozenset.intersection(*offered) if offered else frozenset()

    def select_protocol(self) -> str:
        """Return the protocol that wins the members' vote.

        Each votes for its first of the common ones; a tie goes to the earliest member's.
        """
        common = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])
