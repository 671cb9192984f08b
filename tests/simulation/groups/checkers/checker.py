"""Give checkers of groups the world of groups and the requests that they handle."""

from __future__ import annotations

from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.world import GroupWorld

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
DELETE_GROUPS, OFFSET_DELETE, CONSUMER_GROUP_HEARTBEAT = 42, 47, 68


class GroupChecker(Checker):
    world: GroupWorld

    def is_of_consumers(self, group_id: str) -> bool:
        """Return whether it is a group of KIP-848, whichever protocols its members speak."""
        return group_id in self.world.shard(group_id).state.consumer

    def is_gone(self, group_id: str) -> bool:
        """Return whether no such group exists, according to a broker that would know."""
        shard = self.world.shard(group_id)
        is_there = group_id in shard.state.classic or group_id in shard.state.consumer
        return not is_there and shard.log.coordinator_state is CoordinatorState.ACTIVE
