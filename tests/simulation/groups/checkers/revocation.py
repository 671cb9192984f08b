"""Check that no partition has two owners at once in a consumer group.

A member is given a partition only when nobody else holds it: the former owner has reported its
revocation, or is out of the group. And by the broker's own state it is in the current assignment of
one member at most.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.groups.checkers.checker import (
    CONSUMER_GROUP_HEARTBEAT,
    SYNC_GROUP,
    GroupChecker,
)
from tests.simulation.groups.checkers.holdings import Holdings, Part
from tests.simulation.network import Request


class Revocation(GroupChecker):
    name: ClassVar[str] = "revocation"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._holdings = Holdings(world)

    def handle_request(self, request: Request) -> None:
        self._holdings.handle_request(request)

    def handle_action(self) -> None:
        self._holdings.handle_action()

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key in (CONSUMER_GROUP_HEARTBEAT, SYNC_GROUP) and response.error_code == 0:
            self._holdings.handle_action()  # the same request may have fenced somebody
            group_id, member_id = request.given["group_id"], request.given["member_id"]
            if group_id in self.world.shard(group_id).state.consumer:
                given = self._holdings.given_by(request, response)
                self._check(group_id, member_id, given)
        self._holdings.handle_response(request, response)

    def _check(self, group_id: str, member_id: str, given: frozenset[Part]) -> None:
        for other, holding in self._holdings.of(group_id).items():
            both = given & holding.parts
            if both and other != member_id:
                self.violated(
                    f"{group_id}: {member_id} is given {sorted(both)}, and {other} has not given "
                    "it up"
                )

    def run_expensive_checks(self) -> None:
        for shard in self.world.broker.coordinators.groups.shards:
            for group in shard.state.consumer.values():
                owners: dict[Part, str] = {}
                for member in group.members.values():
                    for found in (member.assigned, member.revoking):
                        for topic_id, epochs in found.items():
                            for index in epochs:
                                owner = owners.setdefault((topic_id, index), member.member_id)
                                if owner != member.member_id:
                                    self.violated(
                                        f"{group.group_id}: {topic_id}-{index} is "
                                        f"{owner}'s and {member.member_id}'s"
                                    )

    def check_at_rest(self) -> None:
        self.run_expensive_checks()
