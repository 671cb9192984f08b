"""Provide members of a classic group that send their requests when a test says so."""

from __future__ import annotations

from functools import partial
from itertools import count

from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import JoinAnswer, SyncAnswer
from coordinator.groups.classic.heartbeat import Heartbeat
from coordinator.groups.classic.join import JoinGroup
from coordinator.groups.classic.leave import LeaveGroup, LeavingMember
from coordinator.groups.classic.sync import SyncGroup
from coordinator.offsets.commit import CommittingMember
from tests.unit.coordinator.world import World

SESSION_MS = 10_000
REBALANCE_MS = 60_000
_serial = count(1)


class FakeMember:
    """Represents one client; `joined` and `synced` are the last responses, None while it waits."""

    def __init__(
        self,
        world: World,
        name: str = "c",
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        version: int = 9,
    ) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.protocols = protocols
        self.version = version
        self.member_id = ""
        self.metadata = b"subscription of " + name.encode()
        self.joined: JoinAnswer | None = None
        self.synced: SyncAnswer | None = None
        self._requests = 0

    @property
    def generation(self) -> int:
        assert self.joined is not None, "not joined yet"
        return self.joined.generation

    @property
    def committer(self) -> CommittingMember:
        return CommittingMember(
            generation=self.generation, member_id=self.member_id, instance_id=self.instance_id
        )

    def join_once(self, member_id: str | None = None) -> JoinAnswer | None:
        """Send one JoinGroup; return its response if it came at once."""
        self.joined = None
        command = JoinGroup(
            group_id="counts",
            member_id=self.member_id if member_id is None else member_id,
            new_member_id=f"{self.instance_id or self.name}-{next(_serial)}",
            new_bare_id=str(next(_serial)),
            instance_id=self.instance_id,
            client_id=self.name,
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=tuple((protocol, self.metadata) for protocol in self.protocols),
            requires_member_id=self.version >= 4,
            can_skip_assignment=self.version >= 9,
        )
        self._requests += 1
        self.world.groups.classic_protocol.handle_join(
            command, partial(self._on_join, self._requests)
        )
        return self.joined

    def _on_join(self, request: int, answer: JoinAnswer) -> None:
        if request != self._requests:
            return  # the client has given up on that one
        assert self.joined is None, "answered twice"
        self.joined = answer
        if answer.member_id:
            self.member_id = answer.member_id

    def join(self) -> None:
        """Join the group, and again with the member id of the response if one is required."""
        answer = self.join_once()
        if answer is not None and answer.code is Code.MEMBER_ID_REQUIRED:
            self.join_once()

    def sync(self, assignments: dict[FakeMember, bytes] | None = None) -> None:
        self.synced = None
        command = SyncGroup(
            group_id="counts",
            member_id=self.member_id,
            instance_id=self.instance_id,
            generation=self.generation,
            protocol_type="consumer",
            protocol=None,
            assignments={m.member_id: found for m, found in (assignments or {}).items()},
        )
        self.world.groups.classic_protocol.handle_sync(command, self._on_sync)

    def _on_sync(self, answer: SyncAnswer) -> None:
        self.synced = answer

    @property
    def assignment(self) -> bytes:
        assert self.synced is not None, "not synced yet"
        assert self.synced.code is Code.NONE
        return self.synced.assignment

    def heartbeat(self, generation: int | None = None) -> Code:
        command = Heartbeat(
            "counts",
            self.member_id,
            self.instance_id,
            self.generation if generation is None else generation,
        )
        try:
            return self.world.groups.classic_protocol.handle_heartbeat(command)
        except Refused as refused:
            return refused.code

    def leave(self, *, by_instance: bool = False) -> Code:
        leaving = LeavingMember("" if by_instance else self.member_id, self.instance_id)
        [code] = self.world.groups.classic_protocol.handle_leave(LeaveGroup("counts", [leaving]))
        return code


def stable_group(world: World, *members: FakeMember) -> None:
    """Let all members join and sync, with the first one as the leader that assigns."""
    for member in members:
        member.join()
        world.clock.advance(1)
    for member in members:  # those that were in before join the newest generation
        if member.joined is None or member.heartbeat() is not Code.NONE:
            member.join()
    world.clock.advance(1)
    assert len({member.generation for member in members}) == 1
    leader = next(m for m in members if m.joined is not None and m.joined.members)
    for member in members:
        if member is not leader:
            member.sync()
    leader.sync({member: b"part of " + member.name.encode() for member in members})


def phase(world: World) -> str:
    try:
        return world.groups.describe_classic_group("counts").phase
    except Refused:
        return "none"
