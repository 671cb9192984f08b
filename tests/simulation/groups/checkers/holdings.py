"""Track the partitions that members may hold, from their requests and the responses.

A member holds what it said it has in its last request that said so, and what it was given since: a
consumer in its heartbeats, a classic member when it joins and when it syncs. One that joins as a
consumer or an eager member, or leaves, has dropped all before it says so. One that the broker has
fenced holds nothing that counts, whatever it believes; nor does one of a
generation before the present one of a classic group, and when a group becomes one of consumers, one
that has not heard of the epoch that it begins with. The others are taken to have what they were
assigned last, then, though some may still be giving up what they had before that (in Kafka, too).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordinator.groups.classic.state import ClassicGroupPhase
from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    SYNC_GROUP,
)
from tests.simulation.groups.members.assigning import decode_assignment, decode_subscription
from tests.simulation.groups.world import GroupWorld
from tests.simulation.ledger import Place
from tests.simulation.network import Request

Part = tuple[UUID, int]


@dataclass(slots=True)
class Holding:
    """Holds the partitions of one member.

    `epoch`: the last one in a response; a generation in a classic group. `granted`: the parts as
    the last answer left them, whatever the member says that is refused. `synced`: what the last
    SyncGroup said that it is to have.
    """

    epoch: int = 0
    granted: frozenset[Part] = field(default_factory=frozenset)
    synced: frozenset[Part] = field(default_factory=frozenset)
    parts: frozenset[Part] = field(default_factory=frozenset)


class Holdings:
    """Holds members' partitions by group, then by member id."""

    def __init__(self, world: GroupWorld) -> None:
        self._world = world
        self._groups: dict[str, dict[str, Holding]] = {}
        self._of_consumers: set[str] = set()  # groups, when they were looked at last

    def of(self, group_id: str) -> dict[str, Holding]:
        return self._groups.setdefault(group_id, {})

    def handle_request(self, request: Request) -> None:
        given = request.given
        match request.api_key:
            case api if api == CONSUMER_GROUP_HEARTBEAT:
                holding = self.of(given["group_id"]).get(given["member_id"])
                if holding is None:
                    return
                if given["member_epoch"] <= 0:
                    holding.parts = frozenset()
                elif given["topic_partitions"] is not None:
                    holding.parts = parts_of(given["topic_partitions"])
            case api if api == JOIN_GROUP:
                holding = self.of(given["group_id"]).get(given["member_id"])
                if holding is not None:
                    said = decode_subscription(given["protocols"][0]["metadata"])
                    holding.parts &= self._by_id(said.owned)

    def handle_response(self, request: Request, response: Any) -> None:
        """Apply a request that was accepted; others change nothing."""
        given = request.given
        match request.api_key:
            case api if api == CONSUMER_GROUP_HEARTBEAT and response.error_code == 0:
                members = self.of(given["group_id"])
                if given["member_epoch"] < 0:
                    members.pop(given["member_id"], None)
                    return
                holding = members.setdefault(given["member_id"], Holding())
                holding.epoch = response.member_epoch
                holding.parts |= self.given_by(request, response)
                holding.granted = holding.parts
            case api if api == JOIN_GROUP and response.error_code == 0:
                holding = self.of(given["group_id"]).setdefault(response.member_id, Holding())
                holding.epoch = response.generation_id
            case api if api == SYNC_GROUP and response.error_code == 0:
                holding = self.of(given["group_id"]).setdefault(given["member_id"], Holding())
                holding.synced = self.given_by(request, response)
                holding.parts |= holding.synced
                holding.granted = holding.parts

    def handle_action(self) -> None:
        for group_id, members in self._groups.items():
            shard = self._world.shard(group_id)
            if not members or shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                continue
            consumers, classic = (
                shard.state.consumer.get(group_id),
                shard.state.classic.get(group_id),
            )
            group = consumers or classic
            present: Iterable[str] = () if group is None else group.members
            for member_id in members.keys() - set(present):
                del members[member_id]
            if classic is not None and classic.phase is ClassicGroupPhase.STABLE:
                for holding in members.values():
                    if holding.epoch != classic.generation:
                        holding.parts = frozenset()
            if consumers is None:
                self._of_consumers.discard(group_id)
            elif group_id not in self._of_consumers:
                self._of_consumers.add(group_id)
                for member_id, holding in members.items():
                    is_present = holding.epoch == consumers.members[member_id].epoch
                    holding.parts &= holding.synced if is_present else frozenset()

    def given_by(self, request: Request, response: Any) -> frozenset[Part]:
        """Return the partitions that a heartbeat or SyncGroup assigns to the member."""
        if request.api_key == SYNC_GROUP:
            return self._by_id(decode_assignment(response.assignment))
        topics = response.assignment.topic_partitions if response.assignment is not None else ()
        return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)

    def _by_id(self, places: Iterable[Place]) -> frozenset[Part]:
        topics = self._world.broker.topics
        return frozenset(
            (found.id, index) for name, index in places if (found := topics.get(name)) is not None
        )


def parts_of(topics: Iterable[dict[str, Any]]) -> frozenset[Part]:
    return frozenset((topic["topic_id"], i) for topic in topics for i in topic["partitions"])
