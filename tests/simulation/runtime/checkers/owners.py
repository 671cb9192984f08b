"""Check that in one generation a task is one member's, and that only it commits the task.

What the group tells a member in a generation is what the leader brought for it: tasks to run, and
tasks to revoke. No two members are told the same task. An offset that the group takes is of a task
that the member was told in the generation that it names, and was told before.

A static member that comes back is the same member under another id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from coordinator.errors import Code
from streams.membership.protocol import decode_assignment
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology
from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import APPLICATION

OFFSET_COMMIT, SYNC_GROUP, TXN_OFFSET_COMMIT = 8, 14, 28
Place = tuple[str, int]


class Owners(RuntimeChecker):
    name: ClassVar[str] = "owners"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._told: dict[int, dict[str, frozenset[Place]]] = {}
        """What each member has in a generation, by generation and instance."""
        self._topologies: dict[int, Topology] = {}

    def handle_response(self, request: Request, response: Any) -> None:
        given = request.given
        if request.api_key == SYNC_GROUP and given.group_id == APPLICATION:
            if Code(response.error_code) is Code.NONE:
                self._handle_assignment(request, decode_assignment(response.assignment))
        elif request.api_key == TXN_OFFSET_COMMIT and given["group_id"] == APPLICATION:
            committed = [
                (topic["name"], part["partition_index"])
                for topic in given["topics"]
                for part in topic["partitions"]
            ]
            if not any(_codes(response)):
                self._check(given["generation_id"], given["group_instance_id"], committed)
        elif request.api_key == OFFSET_COMMIT and given.group_id == APPLICATION:
            committed = [
                (str(topic.name), part.partition_index)
                for topic in given.topics
                for part in topic.partitions
            ]
            if not any(_codes(response)):
                self._check(given.generation_id_or_member_epoch, given.group_instance_id, committed)

    def _handle_assignment(self, request: Request, assigned: Any) -> None:
        generation, instance = request.given.generation_id, request.given.group_instance_id
        topology = self._topology_of(request.client_id)
        if assigned.is_for_other_topology(declare_topology(describe_topology(topology))):
            return  # of a former life, in numbers that are another task's now: the member leaves
        mine = frozenset(
            place
            for task in (*assigned.tasks, *assigned.revoked)
            for place in _places(topology, task)
        )
        told = self._told.setdefault(generation, {})
        told[instance] = mine
        for other, theirs in told.items():
            if other != instance and mine & theirs:
                self.violated(
                    f"generation {generation}: {sorted(mine & theirs)} is told to {instance} and "
                    f"to {other}"
                )

    def _check(self, generation: int, instance: str, committed: list[Place]) -> None:
        told = self._told.get(generation, {}).get(instance)
        if told is None:
            self.violated(f"{instance} commits in generation {generation}, and was told nothing")
        elif not told.issuperset(committed):
            self.violated(
                f"{instance} commits {sorted(set(committed) - told)} in generation {generation}, "
                f"in which it has {sorted(told)}"
            )

    def _topology_of(self, client_id: str) -> Topology:
        """Return the topology that a worker runs in the life that its client's name tells."""
        life = int(client_id.split()[0].partition("#")[2])
        return self._topologies.setdefault(life % 2, self.world.topology(life))


def _places(topology: Topology, task: str) -> Iterator[Place]:
    """Yield the partitions that a task may read; not all of its topics need have so many."""
    number, _, partition = task.partition("_")
    for topic in topology.subtopologies[int(number)].sources:
        yield topic, int(partition)


def _codes(response: Any) -> Iterator[int]:
    for topic in response.topics:
        for part in topic.partitions:
            yield int(part.error_code)
