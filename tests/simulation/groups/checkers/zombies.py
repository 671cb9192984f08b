"""Check that offsets are accepted only from members of the present generation.

That is by the responses, and by the broker's state when the request came.

What a broker that has just begun to lead knows is taken from it; from then on generation and
members follow from what joiners were told: a leader who its members are, and whose id an instance
has now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from coordinator.groups.classic.state import ClassicGroupPhase
from tests.simulation.groups.checkers.checker import (
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    GroupChecker,
)
from tests.simulation.network import Request


@dataclass(slots=True)
class Known:
    """Holds one group under one leadership; `members` is None until a leader got them."""

    reign: tuple[int, int]
    generation: int
    members: dict[str, str | None] | None = field(default_factory=dict)  # id to instance


class Zombies(GroupChecker):
    name: ClassVar[str] = "zombies"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._groups: dict[str, Known] = {}
        self._present: dict[Request, tuple[ClassicGroupPhase | None, int, frozenset[str]]] = {}

    def handle_request(self, request: Request) -> None:
        if request.api_key == OFFSET_COMMIT:
            group_id = request.given["group_id"]
            shard = self.world.shard(group_id)
            if group_id in shard.state.consumer:  # see `stale`
                return
            group = shard.state.classic.get(group_id)
            self._present[request] = (
                (None, -1, frozenset())
                if group is None
                else (group.phase, group.generation, frozenset(group.members))
            )

    def handle_action(self) -> None:
        for group_id in tuple(self._groups):
            if self.is_of_consumers(group_id) or self.is_gone(group_id):
                del self._groups[group_id]

    def handle_response(self, request: Request, response: Any) -> None:
        match request.api_key:
            case api if api == JOIN_GROUP:
                if response.error_code == 0 and response.leader:
                    self._joined(request.given, response)
            case api if api == LEAVE_GROUP:
                members = self._known(request.given["group_id"]).members
                for left in response.members:
                    if left.error_code == 0 and members is not None:
                        _remove(members, left.member_id, left.group_instance_id)
            case api if api == OFFSET_COMMIT:
                codes = {p.error_code for topic in response.topics for p in topic.partitions}
                present = self._present.pop(request, None)
                if 0 in codes and present is not None:
                    self._committed(request.given, *present)

    def _known(self, group_id: str) -> Known:
        reign = self.world.leadership(group_id)
        known = self._groups.get(group_id)
        if known is None or known.reign != reign:
            group = self.world.shard(group_id).state.classic.get(group_id)
            known = self._groups[group_id] = Known(reign, -1, None)
            if group is not None and group.phase is ClassicGroupPhase.STABLE:
                known.generation = group.generation
                known.members = {m.member_id: m.instance_id for m in group.members.values()}
        return known

    def _joined(self, given: dict[str, Any], response: Any) -> None:
        known = self._known(given["group_id"])
        if response.generation_id != known.generation:
            known.generation = response.generation_id
            known.members = None
        if response.members:
            known.members = {
                m.member_id: getattr(m, "group_instance_id", None) for m in response.members
            }
        if known.members is not None:
            instance_id = given["group_instance_id"]
            _remove(known.members, response.member_id, instance_id)
            known.members[response.member_id] = instance_id

    def _committed(
        self,
        given: dict[str, Any],
        phase: ClassicGroupPhase | None,
        present: int,
        members: frozenset[str],
    ) -> None:
        known = self._known(given["group_id"])
        member_id, generation = given["member_id"], given["generation_id_or_member_epoch"]
        who = f"{given['group_id']}: a commit of {member_id!r} of generation {generation} is taken"
        if known.generation >= 0 and generation != known.generation:
            self.violated(f"{who}, which is at {known.generation}")
        if known.members is not None and member_id not in known.members:
            self.violated(f"{who}, whose members are {sorted(known.members)}")
        if generation != present or member_id not in members:
            self.violated(f"{who}, which is {phase} at {present} with {sorted(members)}")


def _remove(members: dict[str, str | None], member_id: str, instance_id: str | None) -> None:
    """Remove the member that has this id or instance id."""
    for known, instance in tuple(members.items()):
        if known == member_id or (instance_id is not None and instance == instance_id):
            del members[known]
