"""Provide classic consumers, as clients implement them, for a group of either type."""

from __future__ import annotations

from coordinator.assignors.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator.assignors.subscriptions import ConsumerSubscription
from coordinator.errors import Code
from coordinator.groups.classic.effects import JoinAnswer
from coordinator.groups.classic.state import ClassicGroup
from coordinator.groups.consumer.state import ConsumerGroup
from tests.unit.coordinator.groups.classic.members import FakeMember
from tests.unit.coordinator.groups.consumer.members import Consumer, group_of
from tests.unit.coordinator.world import World

GROUP = "counts"
TOPIC = "six"
ALL = [(TOPIC, partition) for partition in range(6)]


class Migrant(FakeMember):
    """Represents a member that reports `has` when it joins and keeps what is not revoked."""

    def __init__(
        self,
        world: World,
        name: str = "m",
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        topics: tuple[str, ...] = (TOPIC,),
    ) -> None:
        super().__init__(world, name, instance_id=instance_id, protocols=protocols)
        self.topics = topics
        self.has: list[tuple[str, int]] = []

    def join_once(self, member_id: str | None = None) -> JoinAnswer | None:
        self.metadata = encode_subscription(ConsumerSubscription(self.topics, owned=self.has), 1)
        return super().join_once(member_id)

    def take(self) -> None:
        """Send SyncGroup and own the partitions of its response."""
        self.sync()
        self.has, _ = decode_assignment(self.assignment)

    def go_on(self) -> None:
        """Send a heartbeat; join and sync again if the response says so."""
        if self.heartbeat() is Code.REBALANCE_IN_PROGRESS:
            self.join()
            self.take()

    def stable_alone(self) -> Migrant:
        """Return the only member of a classic group, which owns the whole topic."""
        self.join()
        self.world.clock.advance(0)
        self.sync_with({self: ALL})
        return self

    def sync_with(self, parts: dict[Migrant, list[tuple[str, int]]]) -> None:
        """Send the SyncGroup of a leader with these assignments."""
        self.sync({member: encode_assignment(part) for member, part in parts.items()})
        self.has = parts.get(self, [])


def consumer(world: World, member_id: str, instance_id: str | None = None) -> Consumer:
    """Return a member of the same group that speaks the consumer protocol."""
    return Consumer(world, member_id, instance_id, group_id=GROUP)


def settle(*members: Migrant | Consumer) -> None:
    """Let each member follow its responses for a few rounds."""
    for _ in range(8):
        for member in members:
            if isinstance(member, Consumer):
                member.beat()
            else:
                member.go_on()


def consumer_group(world: World) -> ConsumerGroup:
    return group_of(world, GROUP)


def classic_group(world: World) -> ClassicGroup:
    return world.groups.shards[world.groups.partition_of(GROUP)].state.classic[GROUP]


def kind(world: World) -> str:
    """Return the group's type and state, or "" if there is no such group."""
    found = [each for each in world.groups.list_groups_unless_loading() if each.group_id == GROUP]
    return " ".join(f"{each.kind} {each.phase}" for each in found)
