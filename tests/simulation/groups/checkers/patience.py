"""Check that no member of a consumer group is fenced before its timeout.

It has its whole session from its last heartbeat, and its whole rebalance time-out to give up what
is to be revoked. A broker that begins to lead the group counts from then.
"""

from __future__ import annotations

from typing import Any, ClassVar

from coordinator.groups.consumer.record_types import MemberState
from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    GroupChecker,
)
from tests.simulation.network import Request


class Patience(GroupChecker):
    name: ClassVar[str] = "patience"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._reigns: dict[str, tuple[int, int]] = {}
        self._heard_ms: dict[str, dict[str, float]] = {}  # by group, by member id
        self._instances: dict[str, str] = {}  # by member id
        self._revoking_ms: dict[str, dict[str, float]] = {}

    def handle_request(self, request: Request) -> None:
        """Stop watching members that leave or give way to another life of their instance."""
        given = request.given
        if request.api_key == CONSUMER_GROUP_HEARTBEAT:
            if given["instance_id"] is not None:
                self._instances[given["member_id"]] = given["instance_id"]
            if given["member_epoch"] < 0:
                self._forget(given["group_id"], given["member_id"])
        elif request.api_key == JOIN_GROUP:
            self._forget_instance(given["group_id"], given["group_instance_id"])
        elif request.api_key == LEAVE_GROUP:
            for leaving in given["members"]:
                self._forget_instance(given["group_id"], leaving["group_instance_id"])

    def handle_response(self, request: Request, response: Any) -> None:
        given = request.given
        is_heard = request.api_key == CONSUMER_GROUP_HEARTBEAT and given["member_epoch"] >= 0
        if is_heard and response.error_code == 0:
            heard = self._heard_ms.setdefault(given["group_id"], {})
            heard[given["member_id"]] = self.world.loop.elapsed_ms

    def handle_action(self) -> None:
        now_ms = self.world.loop.elapsed_ms
        for group_id, heard in self._heard_ms.items():
            shard = self.world.shard(group_id)
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                continue
            group = shard.state.consumer.get(group_id)
            members = group.members if group is not None else {}
            revoking = self._revoking_ms.setdefault(group_id, {})
            reign = self.world.leadership(group_id)
            if self._reigns.get(group_id) != reign:
                self._reigns[group_id] = reign
                for member_id in heard.keys() & members.keys():
                    heard[member_id] = now_ms
                revoking.clear()
            for member_id in heard.keys() - members.keys():
                self._put_out(group_id, member_id, now_ms)
            for member_id, member in members.items():
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    revoking.setdefault(member_id, now_ms)
                else:
                    revoking.pop(member_id, None)

    def handle_load(self) -> None:
        self.handle_action()

    def _put_out(self, group_id: str, member_id: str, now_ms: float) -> None:
        profile = next(h.profile for h in self.world.hosts if h.group_id == group_id)
        silent_ms = now_ms - self._heard_ms[group_id][member_id]
        revoking_ms = now_ms - self._revoking_ms[group_id].get(member_id, now_ms)
        self._forget(group_id, member_id)
        # The clock of the broker counts whole milliseconds.
        is_due = silent_ms + 2 >= profile.session_timeout_ms
        if not is_due and revoking_ms + 2 < profile.rebalance_timeout_ms:
            self.violated(
                f"{group_id}: {member_id} is put out, heard of {silent_ms:.0f} ms ago, and asked "
                f"to revoke {revoking_ms:.0f} ms ago"
            )

    def _forget_instance(self, group_id: str, instance_id: str | None) -> None:
        for member_id in tuple(self._heard_ms.get(group_id, ())):
            if instance_id is not None and self._instances.get(member_id) == instance_id:
                self._forget(group_id, member_id)

    def _forget(self, group_id: str, member_id: str) -> None:
        self._heard_ms.get(group_id, {}).pop(member_id, None)
        self._revoking_ms.get(group_id, {}).pop(member_id, None)
