"""Provide a member of a classic group with a call for each step of the protocol.

A join blocks until the others have joined too, so each member has a connection of its own and a
join can be posted first and received later.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.errors import Code
from tests.conformance.calls import fetch_offsets, settled
from tests.conformance.wire import Api, Client

SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 30_000


def subscription(user_data: bytes | None = b"", topics: Sequence[str] = ()) -> bytes:
    """Encode ConsumerProtocol's subscription v0."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    size = struct.pack(">i", -1 if user_data is None else len(user_data))
    return struct.pack(">hi", 0, len(topics)) + names + size + (user_data or b"")


@dataclass
class Member:
    """Represents one member, static if it has an instance id."""

    client: Client
    group: str
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocols: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS
    user_data: bytes | None = b""
    topics: tuple[str, ...] = ()
    metadata: bytes | None = None  # instead of a subscription to the topics

    def post_join(self, version: int = 5) -> int:
        fields: dict[str, Any] = {}
        if version >= 1:
            fields["rebalance_timeout"] = self.rebalance_timeout_ms
        if version >= 5:
            fields["group_instance_id"] = self.instance_id
        return self.client.post(
            Api.JOIN_GROUP,
            version,
            group_id=self.group,
            session_timeout=self.session_timeout_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocols=[{"name": name, "metadata": self._metadata()} for name in self.protocols],
            **fields,
        )

    def _metadata(self) -> bytes:
        if self.metadata is not None:
            return self.metadata
        return subscription(self.user_data, self.topics)

    def joined(self, number: int) -> Any:
        """Wait for the response to a posted join, and take over its member id and generation."""
        response = self.client.receive(number)
        if response.error_code == Code.NONE:
            self.member_id = response.member_id
            self.generation = response.generation_id
        return response

    def ask_for_id(self, version: int = 5) -> None:
        """Join for the first time as a dynamic member; the refusal has its id (v4 or later)."""
        response = self.client.receive(self.post_join(version))
        assert response.error_code == Code.MEMBER_ID_REQUIRED, response
        assert response.member_id
        self.member_id = response.member_id

    def join(self, version: int = 5) -> Any:
        """Join and wait until the round is over; one that lacks a member id requests it first."""
        self.warm_up()
        if version >= 4 and not self.member_id and self.instance_id is None:
            self.ask_for_id(version)
        return self.joined(self.post_join(version))

    def warm_up(self) -> None:
        """Wait until the coordinator has loaded this group."""
        assert fetch_offsets(self.client, self.group, {}).error_code == Code.NONE

    def sync(
        self,
        assignments: Mapping[str, bytes] | None = None,
        version: int = 3,
        **fields: Any,
    ) -> Any:
        """Send SyncGroup; the leader passes everyone's assignment."""
        return self.client.receive(self.post_sync(assignments, version, **fields))

    def post_sync(
        self,
        assignments: Mapping[str, bytes] | None = None,
        version: int = 3,
        **fields: Any,
    ) -> int:
        pairs = (assignments or {}).items()
        if version >= 3:
            fields["group_instance_id"] = self.instance_id
        return self.client.post(
            Api.SYNC_GROUP,
            version,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[{"member_id": who, "assignment": what} for who, what in pairs],
            **fields,
        )

    def heartbeat(self, version: int = 3) -> Code:
        static = {"group_instance_id": self.instance_id} if version >= 3 else {}
        response = self.client.send(
            Api.HEARTBEAT,
            version,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            **static,
        )
        return Code(response.error_code)

    def leave(self, version: int = 1) -> Code:
        """Send LeaveGroup for this member alone."""
        me: dict[str, Any] = {"member_id": self.member_id}
        if version >= 3:
            me = {"members": [me | {"group_instance_id": self.instance_id}]}
        response = self.client.send(Api.LEAVE_GROUP, version, group_id=self.group, **me)
        if version < 3 or response.error_code != Code.NONE:
            return Code(response.error_code)
        (left,) = response.members
        assert left.member_id == self.member_id
        return Code(left.error_code)


def alone(member: Member, assignment: bytes = b"all", version: int = 5) -> Member:
    """Let a member join an empty group in this version and become its stable, only member."""
    response = member.join(version)
    assert response.error_code == Code.NONE, response
    assert response.leader == member.member_id
    synced = member.sync({member.member_id: assignment})
    assert synced.error_code == Code.NONE
    assert synced.assignment == assignment
    return member


def together(first: Member, second: Member) -> None:
    """Let the second member join the first, stable one, which leads, until both are stable."""
    if second.instance_id is None:
        second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    answer = first.join()
    assert answer.leader == first.member_id
    assert {each.member_id for each in answer.members} >= {first.member_id}
    assert second.joined(joining).error_code == Code.NONE
    assert second.generation == first.generation
    waiting = second.post_sync()
    assignments = {first.member_id: b"first", second.member_id: b"second"}
    assert first.sync(assignments).assignment == b"first"
    assert second.client.receive(waiting).assignment == b"second"


def see_rebalance(member: Member) -> None:
    """Send heartbeats until a rebalance has begun, as the join may still be in transit."""
    assert settled(member.heartbeat, (Code.NONE,)) == Code.REBALANCE_IN_PROGRESS
