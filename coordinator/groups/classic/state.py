"""Hold a classic group: the phases of a rebalance, its durable record and its join state.

Theory of operation. Members join; when all that are expected have, the generation goes up and every
JoinGroup is answered, the leader's with everybody's metadata. The leader's SyncGroup brings the
assignments; they are written to the log, and only then every SyncGroup is answered. From there on
members heartbeat, until somebody joins, leaves or falls silent.

Two kinds of facts make a group, kept apart on purpose:

- What `GroupSaved` says is durable. Such a record is written when the group is made, when the
  leader's assignment arrives, when a static member takes its place back without a rebalance, and
  when the last member is gone. Applying it derives the group, live and on reload alike: Stable (or
  Empty), with members that heartbeat on without noticing a restart.
- Join state is volatile, as in Kafka: the rebalance under way, who has joined, who is awaited, all
  protocols that each member offers. A decision works on a copy, whose join state is kept only after
  the decision's records are in the log (`keep_join_state`). A crash in the middle of a rebalance
  loses the rebalance: the group comes back at the generation before, members are told
  ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID and join again.

A member id is handed out at the first JoinGroup (MEMBER_ID_REQUIRED) and must be used for the
second, so that a client that repeats a join doesn't become two members. A static member is known by
its instance id: coming back with an empty member id, it takes over place and assignment of the old
member id, which is fenced (FENCED_INSTANCE_ID) from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias


class ClassicGroupPhase(Enum):
    """Lists the phases of a classic group by Kafka's names, as DescribeGroups shows them.

    Kafka's counterpart is ClassicGroupState.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# Each phase, and the phases that it may follow.
VALID_PREVIOUS_PHASES: dict[ClassicGroupPhase, frozenset[ClassicGroupPhase]] = {
    ClassicGroupPhase.EMPTY: frozenset({ClassicGroupPhase.PREPARING_REBALANCE}),
    ClassicGroupPhase.PREPARING_REBALANCE: frozenset(
        {ClassicGroupPhase.STABLE, ClassicGroupPhase.COMPLETING_REBALANCE, ClassicGroupPhase.EMPTY}
    ),
    ClassicGroupPhase.COMPLETING_REBALANCE: frozenset({ClassicGroupPhase.PREPARING_REBALANCE}),
    ClassicGroupPhase.STABLE: frozenset({ClassicGroupPhase.COMPLETING_REBALANCE}),
    ClassicGroupPhase.DEAD: frozenset(ClassicGroupPhase),
}

NO_GENERATION = -1


@lru_cache(maxsize=128)
def intern_protocol_names(names: tuple[str, ...]) -> frozenset[str]:
    """Return a shared copy of a set of protocol names, to save memory.

    Most members of all groups offer the same, and sets of one identity are compared at once.
    """
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class ClassicGroupMember:
    """Represents a member: `protocols` are (name, metadata), the preferred one first.

    In a record of the group it has the group's protocol alone (see `GroupSaved`).
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
    protocol_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = intern_protocol_names(tuple([name for name, _ in self.protocols]))
        object.__setattr__(self, "protocol_names", names)

    def metadata_of(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol, or no bytes if it doesn't offer it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def copy_with_protocols(self, protocols: tuple[tuple[str, bytes], ...]) -> ClassicGroupMember:
        """Return the member with these protocols, as one whose first JoinGroup is answered.

        It is the very same one where nothing changes: most members of a saved group offer what they
        offered before. `dataclasses.replace` takes three times as long.
        """
        if not self.is_new and self.protocols == protocols:
            return self
        return ClassicGroupMember(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            protocols,
            self.assignment,
        )


@dataclass(frozen=True, slots=True)
class GroupSaved:
    """Represents the record of a classic group: Empty without members, Stable with some.

    Each of `members` has one protocol, the group's, with its subscription as the metadata.
    """

    group_id: str
    protocol_type: str | None
    generation: int
    protocol: str | None
    leader: str | None
    phase_started_at_ms: int
    members: tuple[ClassicGroupMember, ...]


@dataclass(frozen=True, slots=True)
class GroupForgotten:
    """Represents the tombstone of a classic group."""

    group_id: str


Record: TypeAlias = GroupSaved | GroupForgotten


@dataclass(slots=True)
class ClassicGroup:
    """Represents a classic group: what its record says, and the join state beside it.

    See the module's docstring.
    """

    group_id: str
    phase: ClassicGroupPhase = ClassicGroupPhase.EMPTY
    previous_phase: ClassicGroupPhase = ClassicGroupPhase.EMPTY
    phase_started_at_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicGroupMember] = field(default_factory=dict)
    joining: set[str] = field(default_factory=set)  # members whose JoinGroup awaits its answer
    syncing: set[str] = field(default_factory=set)  # members whose SyncGroup awaits its answer
    pending_join: set[str] = field(default_factory=set)  # members that got an id only
    pending_sync: set[str] = field(default_factory=set)  # members that have joined and are to sync
    new_member_added: bool = False
    rebalance_started_at_ms: int = 0  # when the rebalance under way began
    initial_delay_ms: int = 0  # of the initial rebalance: the delay under way
    initial_remaining_ms: int = 0  # how much longer the initial rebalance may be delayed

    @classmethod
    def from_record(cls, saved: GroupSaved) -> ClassicGroup:
        """Create a group from its record, without pending joins and syncs."""
        phase = ClassicGroupPhase.STABLE if saved.members else ClassicGroupPhase.EMPTY
        return cls(
            group_id=saved.group_id,
            phase=phase,
            previous_phase=phase,
            phase_started_at_ms=saved.phase_started_at_ms,
            generation=saved.generation,
            protocol_type=saved.protocol_type,
            protocol=saved.protocol,
            leader=saved.leader,
            members={member.member_id: member for member in saved.members},
        )

    def copy_join_state_of(self, group: ClassicGroup) -> None:
        """Take the join state, which no record holds, from a group with the same record."""
        self.joining = group.joining
        self.syncing = group.syncing
        self.pending_join = group.pending_join
        self.pending_sync = group.pending_sync
        self.new_member_added = group.new_member_added
        self.rebalance_started_at_ms = group.rebalance_started_at_ms
        self.initial_delay_ms = group.initial_delay_ms
        self.initial_remaining_ms = group.initial_remaining_ms
        for member_id, member in group.members.items():
            saved_member = self.members[member_id]
            self.members[member_id] = saved_member.copy_with_protocols(member.protocols)

    def copy_group(self) -> ClassicGroup:
        """Return a copy that can be changed; each request's decision works on one.

        `dataclasses.replace` takes three times as long.
        """
        group = ClassicGroup(*_read_fields(self))
        group.members = dict(self.members)
        group.joining = set(self.joining)
        group.syncing = set(self.syncing)
        group.pending_join = set(self.pending_join)
        group.pending_sync = set(self.pending_sync)
        return group

    def to_record(self) -> GroupSaved:
        """Build the record that persists this group with its members and assignments."""
        name = self.protocol or ""
        return GroupSaved(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            phase_started_at_ms=self.phase_started_at_ms,
            members=tuple(
                member.copy_with_protocols(((name, member.metadata_of(name)),))
                for member in self.members.values()
            ),
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout of any member."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        """Return whether all members have joined and nobody with a new id is still to join."""
        return len(self.joining) == len(self.members) and not self.pending_join

    def find_static_member_id(self, instance_id: str) -> str | None:
        """Return the member id that an instance id has, or None."""
        return next(
            (m.member_id for m in self.members.values() if m.instance_id == instance_id), None
        )

    def supports_protocols(self, protocol_type: str, protocol_names: set[str]) -> bool:
        """Return whether a member with these protocols can join, or stay in, the group."""
        if self.phase is ClassicGroupPhase.EMPTY:
            return bool(protocol_type and protocol_names)
        # A rebalance that all members have left goes on for those that have only got an id.
        wanted = protocol_names & self.find_common_protocols() if self.members else protocol_names
        return protocol_type == self.protocol_type and bool(wanted)

    def find_common_protocols(self) -> frozenset[str]:
        """Return the protocols that all members offer; most members offer the same ones."""
        offered = {member.protocol_names for member in self.members.values()}
        return frozenset.intersection(*offered) if offered else frozenset()

    def select_protocol(self) -> str:
        """Return the protocol that wins the members' vote.

        Each votes for its first of the common ones; a tie goes to the earliest member's.
        """
        common = self.find_common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])


_read_fields = attrgetter(*(each.name for each in fields(ClassicGroup)))


def apply_record(groups: dict[str, ClassicGroup], record: Record) -> None:
    """Derive a classic group from its record, live and on reload alike; a tombstone ends it."""
    match record:
        case GroupSaved(group_id):
            groups[group_id] = ClassicGroup.from_record(record)
        case GroupForgotten(group_id):
            groups.pop(group_id, None)


def keep_join_state(
    groups: dict[str, ClassicGroup], changed_group: ClassicGroup, *, is_saved: bool
) -> None:
    """Keep the join state, which no record holds, of a group that a decision has changed.

    A group at rest whose record has just been applied (`is_saved`) stays what the record says, and
    takes over the join state. A rebalance under way is in no record at all: it stands before what
    is saved until it is complete, or lost.
    """
    is_at_rest = changed_group.phase in (ClassicGroupPhase.STABLE, ClassicGroupPhase.EMPTY)
    if is_saved and is_at_rest:
        groups[changed_group.group_id].copy_join_state_of(changed_group)
    else:
        groups[changed_group.group_id] = changed_group
