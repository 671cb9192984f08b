"""Provide members of a consumer group as clients implement them, driven by single heartbeats."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordinator.groups.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from coordinator.groups.consumer.state import AWAY_EPOCH, JOINING_EPOCH, LEFT_EPOCH, ConsumerGroup
from tests.unit.coordinator.world import World

GROUP = "readers"
REBALANCE_TIMEOUT_MS = 300_000

Owned = dict[UUID, frozenset[int]]


class Consumer:
    """Represents one member, which owns `has` and was assigned `told`.

    It revokes partitions as the response says, and reports that with its next heartbeat.
    """

    def __init__(
        self, world: World, member_id: str, instance_id: str | None = None, group_id: str = GROUP
    ) -> None:
        self.world = world
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = JOINING_EPOCH
        self.has: Owned = {}
        self.told: Owned = {}

    def send(self, **fields: Any) -> ConsumerHeartbeatAnswer:
        return self.world.groups.consumer.handle_heartbeat(
            ConsumerHeartbeat(
                **{
                    "group_id": self.group_id,
                    "member_id": self.member_id,
                    "epoch": self.epoch,
                    "client_id": "client",
                    "client_host": "/127.0.0.1",
                    "instance_id": self.instance_id,
                    **fields,
                }
            )
        )

    def take(self, answer: ConsumerHeartbeatAnswer) -> ConsumerHeartbeatAnswer:
        """Apply the assignment of a heartbeat's response."""
        self.epoch = answer.epoch
        if answer.assigned is not None:
            self.told = {
                topic_id: frozenset(epochs) for topic_id, epochs in answer.assigned.items()
            }
            self.has = self.told
        return answer

    def join(self, *topics: str, **fields: Any) -> ConsumerHeartbeatAnswer:
        self.has = self.told = {}
        joining = {
            "epoch": JOINING_EPOCH,
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "topics": frozenset(topics),
            "owned": {},
        }
        return self.take(self.send(**{**joining, **fields}))

    def beat(self, **fields: Any) -> ConsumerHeartbeatAnswer:
        """Send a heartbeat that reports the member's owned partitions."""
        return self.take(self.send(owned=self.has, **fields))

    def leave(self, *, to_come_back: bool = False) -> ConsumerHeartbeatAnswer:
        return self.send(epoch=AWAY_EPOCH if to_come_back else LEFT_EPOCH)

    def partitions(self, topic_id: UUID) -> list[int]:
        return sorted(self.has.get(topic_id, ()))


def group_of(world: World, group_id: str = GROUP) -> ConsumerGroup:
    """Return the broker's state of the group."""
    shard = world.groups.shards[world.groups.partition_of(group_id)]
    return shard.state.consumer[group_id]


def settle(*members: Consumer, rounds: int = 20) -> None:
    """Send heartbeats for all members in turn until every member is stable."""
    for _ in range(rounds):
        for member in members:
            member.beat()
        group = group_of(members[0].world, members[0].group_id)
        if group.phase.value == "Stable":
            return
    raise AssertionError(f"not stable after {rounds} rounds: {group}")
