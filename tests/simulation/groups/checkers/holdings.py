"""What members of consumer groups may hold, as their requests and the answers tell it.

A member holds what it said it has in its last request that said so, and what it was given since.
One that joins, or leaves, has dropped all before it says so. One that the broker has put out of its
group holds nothing that counts, whatever it believes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordinator.shard.life import Life
from tests.simulation.groups.checkers.checker import CONSUMER_GROUP_HEARTBEAT
from tests.simulation.groups.world import GroupWorld
from tests.simulation.network import Request

Part = tuple[UUID, int]


@dataclass(slots=True)
class Holding:
    """One member's. `epoch`: the last that it was told."""

    epoch: int = 0
    parts: frozenset[Part] = field(default_factory=frozenset)


class Holdings:
    """By group, then by member id."""

    def __init__(self, world: GroupWorld) -> None:
        self._world = world
        self._groups: dict[str, dict[str, Holding]] = {}

    def of(self, group_id: str) -> dict[str, Holding]:
        return self._groups.setdefault(group_id, {})

    def asked(self, request: Request) -> None:
        if request.api_key != CONSUMER_GROUP_HEARTBEAT:
            return
        given = request.given
        holding = self.of(given["group_id"]).get(given["member_id"])
        if holding is None:
            return
        if given["member_epoch"] <= 0:
            holding.parts = frozenset()
        elif given["topic_partitions"] is not None:
            holding.parts = parts_of(given["topic_partitions"])

    def answered(self, request: Request, response: Any) -> None:
        """Only what was granted changes anything."""
        if request.api_key != CONSUMER_GROUP_HEARTBEAT or response.error_code != 0:
            return
        given = request.given
        members = self.of(given["group_id"])
        if given["member_epoch"] < 0:
            members.pop(given["member_id"], None)
            return
        holding = members.setdefault(given["member_id"], Holding())
        holding.epoch = response.member_epoch
        if response.assignment is not None:
            holding.parts |= assigned_by(response)

    def acted(self) -> None:
        for group_id, members in self._groups.items():
            shard = self._world.shard(group_id)
            if members and shard.log.life is Life.ACTIVE:
                group = shard.state.consumer.get(group_id)
                present = group.members.keys() if group is not None else ()
                for member_id in members.keys() - present:
                    del members[member_id]


def parts_of(topics: Iterable[dict[str, Any]]) -> frozenset[Part]:
    return frozenset((topic["topic_id"], i) for topic in topics for i in topic["partitions"])


def assigned_by(response: Any) -> frozenset[Part]:
    """What an answer gives, with all that the member was to have before."""
    topics = response.assignment.topic_partitions if response.assignment is not None else ()
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)
