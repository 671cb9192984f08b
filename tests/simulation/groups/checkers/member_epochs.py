"""Check that epochs of consumer groups never go back, across restarts neither.

That holds for the group's, its target's, and a member's in responses; and no member is ahead of the
target, nor that of the group.
"""

from __future__ import annotations

from typing import Any, ClassVar

from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import CONSUMER_GROUP_HEARTBEAT, GroupChecker
from tests.simulation.network import Request


class MemberEpochs(GroupChecker):
    name: ClassVar[str] = "member_epochs"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._groups: dict[str, tuple[int, int]] = {}
        self._empty: set[str] = set()  # these may be deleted
        self._told: dict[str, dict[str, int]] = {}  # by group, by member

    def handle_action(self) -> None:
        for shard in self.world.broker.coordinators.groups.shards:
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                continue
            for group_id, group in shard.state.consumer.items():
                epochs = group.epoch, group.target_epoch
                known = self._groups.get(group_id, (0, 0))
                if epochs == known:
                    continue
                if epochs[0] < known[0] or epochs[1] < known[1] or epochs[1] > epochs[0]:
                    self.violated(f"{group_id} was at {known}, and is at {epochs}")
                self._groups[group_id] = epochs
        for group_id in self._groups.keys() - self._present():
            self._end(group_id)

    def handle_load(self) -> None:
        self.handle_action()

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != CONSUMER_GROUP_HEARTBEAT or response.error_code != 0:
            return
        given, epoch = request.given, response.member_epoch
        group_id, member_id = given["group_id"], given["member_id"]
        if given["member_epoch"] < 0:
            return
        told = self._told.setdefault(group_id, {})
        if epoch < told.get(member_id, 0):
            self.violated(f"{group_id}: {member_id} was at {told[member_id]}, and is told {epoch}")
        told[member_id] = epoch
        group = self.world.shard(group_id).state.consumer.get(group_id)
        if group is not None and epoch > group.target_epoch:
            self.violated(f"{group_id}: {member_id} is told {epoch}, above {group.target_epoch}")

    def _present(self) -> set[str]:
        """Return the groups that exist, or whose shard isn't loaded."""
        found = set()
        for group_id in self._groups:
            shard = self.world.shard(group_id)
            group = shard.state.consumer.get(group_id)
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE or group is not None:
                found.add(group_id)
                if group is not None and not group.members:
                    self._empty.add(group_id)
                elif group is not None:
                    self._empty.discard(group_id)
        return found

    def _end(self, group_id: str) -> None:
        """Forget the epochs of a group that ended without members or became a classic one."""
        classic = self.world.shard(group_id).state.classic.get(group_id)
        generation = 0 if classic is None else classic.generation
        if group_id not in self._empty and generation < self._groups[group_id][0]:
            self.violated(
                f"{group_id} was at {self._groups[group_id]}, and is gone, or at {generation}"
            )
        del self._groups[group_id]
        self._told.pop(group_id, None)
