"""Generations never go back, and never come again: not while one broker leads the group, and none
that any member was handed an assignment of, whatever happens to the broker.

A generation that is announced but not yet written is lost with the broker, as in Kafka; then its
number is given once more, to whoever joins next.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.groups.checkers.checker import JOIN_GROUP, SYNC_GROUP, GroupChecker
from tests.simulation.network import Request


class Epochs(GroupChecker):
    name: ClassVar[str] = "epochs"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._assigned: dict[str, int] = {}  # by group: the last that an assignment was of
        self._leaders: dict[tuple[object, ...], str] = {}
        self._announced: dict[tuple[object, ...], int] = {}

    def acted(self) -> None:
        for group_id, generation in self._assigned.items():
            shard = self.world.shard(group_id)
            if shard.log.life.name != "ACTIVE":
                continue
            group = shard.groups.get(group_id)
            if group is None or group.generation < generation:
                found = "gone" if group is None else f"at {group.generation}"
                self.violated(f"{group_id} was at {generation}, and is {found}")

    def loaded(self) -> None:
        self.acted()

    def answered(self, request: Request, response: Any) -> None:
        if response is None or request.api_key not in (JOIN_GROUP, SYNC_GROUP):
            return
        if response.error_code != 0:
            return
        group_id = request.given["group_id"]
        if request.api_key == SYNC_GROUP:
            generation = request.given["generation_id"]
            self._assigned[group_id] = max(self._assigned.get(group_id, 0), generation)
        else:
            self._joined(group_id, response)

    def _joined(self, group_id: str, response: Any) -> None:
        generation, leader = response.generation_id, response.leader
        reign = group_id, self.world.leadership(group_id)
        last = max(self._announced.get(reign, 0), self._assigned.get(group_id, 0))
        if generation < last:
            self.violated(f"{group_id}: {response.member_id} joins {generation}, behind {last}")
        self._announced[reign] = generation
        # A static member that comes back as the leader changes the leader's id, not who it is.
        if response.members:
            known = self._leaders.setdefault((*reign, generation), leader)
            if _who(known) != _who(leader):
                self.violated(f"{group_id}: {generation} has two leaders, {known} and {leader}")


def _who(member_id: str) -> str:
    """Ids of one instance begin alike: the last 37 characters are random."""
    return member_id[:-37] if member_id.startswith("instance") else member_id
