"""Check that a classic group's generations never go back and are never used twice.

That holds while one broker leads the group, and for any generation of which a member was handed an
assignment, whatever happens to the broker.

A generation that is announced but not yet written is lost with the broker, as in Kafka; then its
number is given once more, to whoever joins next. A group that is converted to one of consumers, or
back, goes on from the epoch that it had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import JOIN_GROUP, SYNC_GROUP, GroupChecker
from tests.simulation.groups.checkers.instances import Instances
from tests.simulation.network import Request


@dataclass(slots=True)
class Known:
    """Holds the generations of one group; `is_empty`: it had no members when last checked."""

    assigned: int = 0  # the last generation that an assignment was of
    announced: int = 0
    reign: tuple[int, int] = (0, 0)
    leaders: dict[int, str] = field(default_factory=dict)  # by generation, under this leadership
    is_empty: bool = False


class Epochs(GroupChecker):
    name: ClassVar[str] = "epochs"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._groups: dict[str, Known] = {}
        self._instances = Instances()

    def handle_action(self) -> None:
        for group_id, known in self._groups.items():
            shard = self.world.shard(group_id)
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                continue
            classic, consumers = (
                shard.state.classic.get(group_id),
                shard.state.consumer.get(group_id),
            )
            now = classic.generation if classic else consumers.epoch if consumers else 0
            group = classic or consumers
            if now < known.assigned or group is None:
                # An empty group may be replaced, perhaps by one of the other type.
                if now < known.assigned and not known.is_empty:
                    self.violated(f"{group_id} was at {known.assigned}, and is at {now}")
                known.assigned = known.announced = 0
                known.leaders.clear()
            known.is_empty = group is None or not group.members

    def handle_load(self) -> None:
        self.handle_action()

    def handle_response(self, request: Request, response: Any) -> None:
        self._instances.handle_response(request, response)
        if request.api_key not in (JOIN_GROUP, SYNC_GROUP) or response.error_code != 0:
            return
        known = self._groups.setdefault(request.given["group_id"], Known())
        if request.api_key == SYNC_GROUP:
            known.assigned = max(known.assigned, request.given["generation_id"])
        elif response.leader:  # nobody leads in a group of consumers: see `member_epochs`
            self._joined(request.given["group_id"], known, response)

    def _joined(self, group_id: str, known: Known, response: Any) -> None:
        generation, leader = response.generation_id, response.leader
        reign = self.world.leadership(group_id)
        if known.reign != reign:
            known.reign, known.announced = reign, 0
            known.leaders.clear()
        last = max(known.announced, known.assigned)
        if generation < last:
            self.violated(f"{group_id}: {response.member_id} joins {generation}, behind {last}")
        known.announced = generation
        # A static member that comes back as the leader changes the leader's id, not who it is.
        if response.members:
            first = known.leaders.setdefault(generation, leader)
            if self._instances.instance_of(first) != self._instances.instance_of(leader):
                self.violated(f"{group_id}: {generation} has two leaders, {first} and {leader}")
