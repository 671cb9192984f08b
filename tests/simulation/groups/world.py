"""Simulate groups: hosts that run members, and the state of the broker's group coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coordinator.groups.shard import GroupShard
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.placement import partition_for
from tests.simulation.world import Setting, World

if TYPE_CHECKING:
    from tests.simulation.groups.members.host import Host
    from tests.simulation.groups.members.member import Member

GROUP_TOPIC = "__consumer_offsets"
SHARDS = 2


class GroupWorld(World):
    """Represents a world whose `hosts` run members, and whose administrator creates topics."""

    def __init__(self, setting: Setting, seed: int, broker_settings: Mapping[str, Any]) -> None:
        super().__init__(setting, seed, {}, {}, broker_settings)
        self.hosts: list[Host] = []

    def shard(self, group_id: str) -> GroupShard:
        return self.broker.coordinators.groups.shards[partition_for(group_id, SHARDS)]

    def leadership(self, group_id: str) -> tuple[int, int]:
        """Return an id of the leadership, which each restart and election of the shard changes."""
        return self.life, self.shard(group_id).log.coordinator_epoch

    def partitions_of(self, topic: str) -> int:
        """Return the topic's number of partitions, 0 if there is no such topic."""
        found = self.broker.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    @property
    def group_ids(self) -> list[str]:
        return sorted({host.group_id for host in self.hosts})

    def find_living(self, group_id: str) -> list[Member]:
        """Return the lives of the group's members that are not over."""
        hosts = [host for host in self.hosts if host.group_id == group_id]
        return [life for host in hosts for life in host.lives if not life.is_over]

    # The life of a shard

    def resign(self, index: int, for_ms: float) -> None:
        """Let another broker lead the shard for a while, during which nothing happens there."""
        if not self.is_listening:
            return
        coordinators, life = self.broker.coordinators, self.life
        if coordinators.groups.shards[index].log.coordinator_state is CoordinatorState.ACTIVE:
            with self.observe_action():
                coordinators.resign_shard(GROUP_TOPIC, index)
            self.loop.after_ms(for_ms, self._elect, index, life)

    def _elect(self, index: int, life: int) -> None:
        if self.life == life:
            with self.observe_action():
                self.broker.coordinators.elect_shard(GROUP_TOPIC, index)
