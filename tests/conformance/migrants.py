"""Provide consumers with the classic protocol in a group of either type.

Their metadata are those of a real consumer: topics, and the partitions that it has. In a consumer
group nobody is the leader: a join is answered at once, and the sync after it brings what is the
member's in the group's target assignment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordinator.errors import Code
from tests.conformance.consumers import Consumer
from tests.conformance.members import Member, see_rebalance
from tests.conformance.wire import Api, Client, plain

Partitions = dict[str, list[int]]


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _partitions(partitions: Partitions) -> bytes:
    data = struct.pack(">i", len(partitions))
    for topic, indexes in partitions.items():
        data += _string(topic) + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    return data


def assignment(partitions: Partitions, version: int = 1, user_data: bytes = b"") -> bytes:
    """Encode ConsumerProtocol's assignment as a leader does."""
    end = struct.pack(">i", len(user_data)) + user_data
    return struct.pack(">h", version) + _partitions(partitions) + end


def assigned(data: bytes) -> tuple[int, Partitions]:
    """Decode version and partitions of an assignment that the broker wrote."""
    version, count = struct.unpack_from(">hi", data)
    at = 6
    found: Partitions = {}
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        topic = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (size,) = struct.unpack_from(">i", data, at)
        found[topic] = sorted(struct.unpack_from(f">{size}i", data, at + 4))
        at += 4 + 4 * size
    assert data[at:] == struct.pack(">i", -1), "no user data"
    return version, found


@dataclass
class Migrant(Member):
    """Represents a classic consumer, which reports its partitions `has` as owned."""

    version: int = 1  # of its metadata
    has: Partitions = field(default_factory=dict)

    def _metadata(self) -> bytes:
        if self.metadata is not None:
            return self.metadata
        data = struct.pack(">hi", self.version, len(self.topics))
        data += b"".join(_string(topic) for topic in self.topics) + struct.pack(">i", -1)
        if self.version >= 1:
            data += _partitions(self.has)
        if self.version >= 2:
            data += struct.pack(">i", self.generation)
        if self.version >= 3:
            data += struct.pack(">h", -1)
        return data

    def rejoin(self, version: int = 9) -> Any:
        """Send one JoinGroup to a consumer group, which is answered at once."""
        return self.joined(self.post_join(version))

    def take(self) -> Partitions:
        """Send a follower's SyncGroup and own the partitions of the response."""
        answer = self.sync()
        assert answer.error_code == Code.NONE, answer
        version, self.has = assigned(answer.assignment)
        assert version == self.version
        return self.has

    def go_on(self) -> None:
        """Send a heartbeat; join and sync again if the response says so."""
        code = self.heartbeat()
        if code == Code.REBALANCE_IN_PROGRESS:
            assert self.rejoin().error_code == Code.NONE
            self.take()
        else:
            assert code == Code.NONE

    def stable_alone(self, partitions: Partitions) -> Migrant:
        """Make the only member of a classic group, with these partitions."""
        answer = self.join(9)
        assert answer.error_code == Code.NONE, answer
        synced = self.sync({self.member_id: assignment(partitions)})
        assert synced.error_code == Code.NONE
        self.has = partitions
        return self


def kind(client: Client, group: str) -> str:
    """Return the group's type and state in ListGroups."""
    answer = client.send(Api.LIST_GROUPS, 5)
    found = [plain(each) for each in answer.groups if each.group_id == group]
    return " ".join(f"{each['group_type']} {each['group_state']}" for each in found)


def settle(*members: Migrant | Consumer, rounds: int = 12) -> None:
    """Let each member follow its responses for a few rounds."""
    for _ in range(rounds):
        for member in members:
            if isinstance(member, Consumer):
                member.acknowledge()
            else:
                member.go_on()


def join_together(topic: str, *members: Migrant, parts: Sequence[list[int]] = ()) -> None:
    """Let members join one classic group that the first one leads.

    Each has two partitions of the topic, or those that are its part.
    """
    parts = parts or [[2 * i, 2 * i + 1] for i in range(len(members))]
    first = members[0].stable_alone({})
    numbers = []
    for each in members[1:]:
        each.ask_for_id()
        numbers.append(each.post_join(9))
    see_rebalance(first)
    first.join(9)
    for each, number in zip(members[1:], numbers, strict=True):
        assert each.joined(number).error_code == Code.NONE
    for each, part in zip(members, parts, strict=True):
        each.has = {topic: part}
    first.sync({each.member_id: assignment(each.has) for each in members})


def all_of(topic: tuple[str, UUID], *members: Migrant | Consumer) -> list[int]:
    """Return the partitions of the topic that the members own together."""
    name, topic_id = topic
    return sorted(
        partition
        for member in members
        for partition in (
            member.has.get(name, ())
            if isinstance(member, Migrant)
            else member.assigned.get(topic_id, ())
        )
    )
