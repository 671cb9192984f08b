"""A draft: the copy of a group that a decision works on, and what is to follow from it.

Nothing of a draft is visible until the service has appended its records. Then the copy replaces the
group, timers are set, answers are given, in that order. If the append fails, the draft is dropped.

Also the moves that several decisions share: preparing a rebalance and completing its join phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto
from typing import TypeAlias

from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import (
    NO_GENERATION,
    PREVIOUS,
    Group,
    GroupSaved,
    Member,
    Phase,
)


class Due(IntEnum):  # a number is quickly looked up
    SESSION = auto()
    JOIN = auto()
    SYNC = auto()


class Cause(Enum):
    """What a round begins for. Its value names it in the figures."""

    MEMBER_JOINED = "join"
    MEMBER_CHANGED = "rejoin"  # the leader joined again, or a follower with other metadata
    MEMBER_REPLACED = "replace"  # a static member came back in a way that matters
    MEMBER_LEFT = "leave"
    SESSION_EXPIRED = "session"
    SYNC_EXPIRED = "sync"  # members had joined, and never asked for their assignment
    ASSIGNMENT_LOST = "append"  # the leader's assignment could not be persisted
    CONVERTED = "downgrade"  # it was a consumer group
    GROUP_TOO_LARGE = "size"  # group.max.size is less than it was when the group was saved


TimerKey: TypeAlias = tuple[Due, str, str]  # what, group id, member id (of a session)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Kafka's settings for classic groups, in milliseconds."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    new_member_join_timeout_ms: int = 300_000
    max_size: int = 2**31 - 1  # members


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAnswer:
    """`members` (id, instance id, metadata) are the leader's to assign to; others get none."""

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
    code: Code = Code.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Draft:
    """See the module's docstring."""

    def __init__(self, group: Group, config: GroupConfig, now_ms: int) -> None:
        self.group = group.copy()
        self.config = config
        self.now_ms = now_ms
        self.records: list[GroupSaved] = []
        self.timers: dict[TimerKey, int | None] = {}  # None: cancel
        self.join_answers: list[tuple[str, JoinAnswer]] = []
        self.sync_answers: list[tuple[str, SyncAnswer]] = []
        self.waits_as: str | None = None  # the member that this very request will be answered as
        self.began: Cause | None = None  # what a round has begun for
        self.took_ms: int | None = None  # how long the round took that is over

    # What is to follow.

    def save(self) -> None:
        """Persist the group as it is now."""
        self.records = [self.group.saved()]

    def save_new(self) -> None:
        """Persist that there is such a group. It has nothing yet that would outlive a restart."""
        group = self.group
        self.records = [GroupSaved(group.group_id, None, 0, None, None, group.phase_ms, ())]

    def set_session(self, member_id: str, timeout_ms: int | None = None) -> None:
        """The member has until then to be heard of; its session time-out unless told otherwise."""
        if timeout_ms is None:
            timeout_ms = self.group.members[member_id].session_timeout_ms
        self.timers[Due.SESSION, self.group.group_id, member_id] = timeout_ms

    def cancel_session(self, member_id: str) -> None:
        self.timers[Due.SESSION, self.group.group_id, member_id] = None

    def set_timer(self, due: Due, timeout_ms: int | None) -> None:
        self.timers[due, self.group.group_id, ""] = timeout_ms

    def wait_for_join(self, member_id: str) -> None:
        self.group.joining.add(member_id)
        self.waits_as = member_id

    def wait_for_sync(self, member_id: str) -> None:
        self.group.syncing.add(member_id)
        self.waits_as = member_id

    def answer_join(self, member_id: str, answer: JoinAnswer) -> None:
        if member_id in self.group.joining:
            self.group.joining.discard(member_id)
            self.join_answers.append((member_id, answer))

    def answer_sync(self, member_id: str, answer: SyncAnswer) -> None:
        if member_id in self.group.syncing:
            self.group.syncing.discard(member_id)
            self.sync_answers.append((member_id, answer))

    # Moves that decisions share.

    def go(self, phase: Phase) -> None:
        group = self.group
        if group.phase not in PREVIOUS[phase]:
            raise AssertionError(f"{group.group_id}: {phase} can't follow {group.phase}")
        group.came_from, group.phase, group.phase_ms = group.phase, phase, self.now_ms

    def remove(self, member_id: str) -> None:
        """Take a member, or one that was about to join, out. A waiting JoinGroup is told 25."""
        group = self.group
        refused = JoinAnswer(code=Code.UNKNOWN_MEMBER_ID)
        self.answer_join(member_id, refused)
        self.answer_sync(member_id, SyncAnswer(code=Code.UNKNOWN_MEMBER_ID))
        group.members.pop(member_id, None)
        group.pending_join.discard(member_id)
        self.forget_pending_sync(member_id)
        self.cancel_session(member_id)
        if group.leader == member_id:
            group.leader = next(iter(group.members), None)

    def forget_pending_sync(self, member_id: str) -> None:
        self.group.pending_sync.discard(member_id)
        if not self.group.pending_sync:
            self.set_timer(Due.SYNC, None)

    def refuse_syncs(self, code: Code) -> None:
        """Nobody gets an assignment of this generation; who waits for one is told the code."""
        group = self.group
        for member in tuple(group.members.values()):
            group.members[member.member_id] = replace(member, assignment=b"")
            if member.member_id in group.syncing:
                self.set_session(member.member_id)
            self.answer_sync(member.member_id, SyncAnswer(code=code))

    def rebalance_or_complete_join(self, cause: Cause) -> None:
        """Something about the members has changed."""
        if self.group.phase in PREVIOUS[Phase.PREPARING_REBALANCE]:
            self.prepare_rebalance(cause)
        else:
            self.maybe_complete_join()

    def prepare_rebalance(self, cause: Cause) -> None:
        """Wait for all members to join again; a new group waits for the initial delay instead."""
        group = self.group
        if group.phase is Phase.COMPLETING_REBALANCE:
            self.refuse_syncs(Code.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self.set_timer(Due.SYNC, None)
        is_initial = group.phase is Phase.EMPTY
        self.go(Phase.PREPARING_REBALANCE)
        self.began, group.round_ms = cause, self.now_ms
        if is_initial:
            delay_ms = self.config.initial_rebalance_delay_ms
            group.initial_delay_ms = delay_ms
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self.set_timer(Due.JOIN, delay_ms)
        elif group.all_joined:
            self.complete_join()
        else:
            self.set_timer(Due.JOIN, group.rebalance_timeout_ms)

    def maybe_complete_join(self) -> None:
        """If this was the last one that the join phase was waiting for, it is over."""
        group = self.group
        if (
            group.phase is Phase.PREPARING_REBALANCE
            and group.came_from is not Phase.EMPTY
            and group.all_joined
        ):
            self.complete_join()

    def complete_join(self) -> None:
        """The next generation: without dynamic members that have not come, or Empty."""
        group = self.group
        self.set_timer(Due.JOIN, None)
        for member in tuple(group.members.values()):
            if member.member_id not in group.joining and member.instance_id is None:
                self.remove(member.member_id)
        if group.members and not self._elect_leader():
            # Static members only, and none has come: wait for them once more.
            self.set_timer(Due.JOIN, group.rebalance_timeout_ms)
            return
        group.generation += 1
        group.pending_sync.clear()
        if not group.members:
            group.protocol = None
            self.go(Phase.EMPTY)
            self.save()
            return
        group.protocol = group.select_protocol()
        self.go(Phase.COMPLETING_REBALANCE)
        for member in tuple(group.members.values()):
            self.answer_join(member.member_id, self.current_generation(member.member_id))
            group.members[member.member_id] = replace(member, is_new=False)
            group.pending_sync.add(member.member_id)
            self.set_session(member.member_id)
        self.set_timer(Due.SYNC, group.rebalance_timeout_ms)

    def current_generation(self, member_id: str) -> JoinAnswer:
        """What a member is told on joining the generation that there is."""
        group = self.group
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member_id == group.leader:
            members = tuple(
                (m.member_id, m.instance_id, m.metadata(group.protocol))
                for m in group.members.values()
            )
        return JoinAnswer(
            member_id=member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol=group.protocol,
            leader=group.leader or "",
            members=members,
        )

    def _elect_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first member that has."""
        group = self.group
        if group.leader in group.joining:
            return True
        joined = next(
            (member_id for member_id in group.members if member_id in group.joining), None
        )
        if joined is None:
            return False
        group.leader = joined
        return True


def check_group_id(group_id: str) -> None:
    """Refuses with 24 the id that no group with members may have."""
    if not group_id:
        raise Refused(Code.INVALID_GROUP_ID, "an empty group id")


def validate_member(group: Group, member_id: str, instance_id: str | None) -> Member:
    """The member that a request comes from. Refuses with 82 if its instance id has another one."""
    if instance_id is not None:
        known = group.static_member_id(instance_id)
        if known is None:
            raise Refused(Code.UNKNOWN_MEMBER_ID, f"no member has the instance id {instance_id}")
        if known != member_id:
            raise Refused(
                Code.FENCED_INSTANCE_ID, f"{instance_id} is {known} by now, not {member_id}"
            )
    member = group.members.get(member_id)
    if member is None:
        raise Refused(Code.UNKNOWN_MEMBER_ID, f"{member_id!r} is not in {group.group_id}")
    return member
