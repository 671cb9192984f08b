"""Check that a zombie of a consumer group commits nothing.

A commit is taken only of a member that is in the group, at the epoch of its last response; at an
older one only for partitions that it holds: by the last answer to it, for a request of its own that
is refused changes nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.groups.checkers.checker import OFFSET_COMMIT, GroupChecker
from tests.simulation.groups.checkers.holdings import Holding, Holdings
from tests.simulation.network import Request


class Stale(GroupChecker):
    name: ClassVar[str] = "stale"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._holdings = Holdings(world)
        self._is_consumers: dict[Request, bool] = {}

    def handle_request(self, request: Request) -> None:
        self._holdings.handle_request(request)
        if request.api_key == OFFSET_COMMIT:
            group_id = request.given["group_id"]
            found = group_id in self.world.shard(group_id).state.consumer
            self._is_consumers[request] = found

    def handle_action(self) -> None:
        self._holdings.handle_action()

    def handle_response(self, request: Request, response: Any) -> None:
        self._holdings.handle_response(request, response)
        if request.api_key == OFFSET_COMMIT and self._is_consumers.pop(request, False):
            given = request.given
            holding = self._holdings.of(given["group_id"]).get(given["member_id"])
            for topic in response.topics:
                found = self.world.broker.topics.get(topic.name)
                for each in topic.partitions:
                    if each.error_code == 0 and found is not None:
                        self._committed(given, holding, (found.id, each.partition_index))

    def _committed(self, given: dict[str, Any], holding: Holding | None, part: Any) -> None:
        member_id, epoch = given["member_id"], given["generation_id_or_member_epoch"]
        who = f"{given['group_id']}: a commit of {member_id} at {epoch} for {part} is taken"
        if holding is None:
            self.violated(f"{who}, who is not in the group")
        if epoch > holding.epoch:
            self.violated(f"{who}, who is at {holding.epoch}")
        if epoch < holding.epoch and part not in holding.granted:
            self.violated(f"{who}, who is at {holding.epoch} and has {sorted(holding.granted)}")
