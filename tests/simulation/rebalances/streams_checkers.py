"""Check what holds of every history of a streams group, whatever fails.

streams owners   a commit that the group accepts is of tasks that it has told nobody else to
                 have since it told this member
streams apart    no member is told a task in two roles
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from coordinator.errors import Code
from tests.simulation.checkers.checker import Checker
from tests.simulation.network import Request
from tests.simulation.rebalances.checkers import RebalanceChecker
from tests.simulation.rebalances.topologies import build_version
from tests.simulation.rebalances.world import RebalanceWorld, Start
from tests.simulation.runtime.topologies import APPLICATION

OFFSET_COMMIT, STREAMS_GROUP_HEARTBEAT = 8, 88


class StreamsOwners(RebalanceChecker):
    name: ClassVar[str] = "streams owners"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: dict[str, str] = {}
        """The member to which each task was told last."""
        self._numbers = {
            topic: sub.number for sub in build_version(0).subtopologies for topic in sub.sources
        }

    def handle_response(self, request: Request, response: Any) -> None:
        given = request.given
        if request.api_key == STREAMS_GROUP_HEARTBEAT:
            if Code(response.error_code) is Code.NONE:
                for task in _name_tasks(response.active_tasks):
                    self._owners[task] = given.member_id
        elif request.api_key == OFFSET_COMMIT and given.group_id == APPLICATION:
            for topic in response.topics:
                for part in topic.partitions:
                    if Code(part.error_code) is Code.NONE:
                        self._check_owner(given.member_id, topic.name, part.partition_index)

    def _check_owner(self, member_id: str, topic: str, partition: int) -> None:
        task = f"{self._numbers[topic]}_{partition}"
        if self._owners.get(task) != member_id:
            self.violated(
                f"{member_id} commits {task}, which {self._owners.get(task)} was told to have"
            )


class StreamsApart(RebalanceChecker):
    name: ClassVar[str] = "streams apart"

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != STREAMS_GROUP_HEARTBEAT or response.active_tasks is None:
            return
        active, standby = (
            set(_name_tasks(role)) for role in (response.active_tasks, response.standby_tasks)
        )
        if active & standby:
            self.violated(f"{request.given.member_id} is told {sorted(active & standby)} twice")


def _name_tasks(tasks: Any) -> list[str]:
    return [f"{each.subtopology_id}_{number}" for each in tasks or () for number in each.partitions]


def check_streams_movement(
    world: RebalanceWorld,
    kind: str,
    instance_id: str,
    before: Mapping[str, list[str]],
    starts: list[Start],
) -> str:
    """Return what a change of a group at rest has moved that it should not have; empty if nothing.

    The group takes a restart for a member that leaves and one that joins.
    """
    own = {task for task, runners in before.items() if instance_id in runners}
    moved = {start.task for start in starts if start.instance_id not in before[start.task]}
    share = -(-len(before) // max(1, len(world.alive)))
    if len(moved) <= len(own) + share + 1:
        return ""
    return f"{kind} of {instance_id} with {sorted(own)}: {sorted(moved)} move; a share is {share}"


STREAMS_CHECKERS: tuple[type[Checker], ...] = (StreamsOwners, StreamsApart)
