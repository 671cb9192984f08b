"""Place tasks on clients at the least total cost, with a fixed number of tasks for each client.

It is a flow of least cost; a place is a client and a group of tasks:

    task -- cost of the task there --> place -- limit of the place --> client -- its count --> end

Tasks are added one by one. Each goes the path that costs least: to a place with room, or to a full
one, from which another task goes on to another client, and so on. No tasks can be exchanged at a
profit then, so the rest of a path never costs less than nothing: a path that costs as much as the
best one so far is given up.

Kafka Streams finds flows of the same cost by cancelling circles of negative cost (Graph, KIP-925).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from coordinator.assignors.tasks.replicas import TaskName, partition_sort_key

Cost: TypeAlias = int

_UNREACHED = float("inf")


class Place(NamedTuple):
    """Names a client and a group of tasks there."""

    client: int
    group: str


class _Step(NamedTuple):
    """Represents a task that moves on, from a place or to its first one, and what that costs."""

    source: Place | None
    target: Place
    task: str
    cost: int


class CheapestPlacement:
    """Finds the clients of tasks so that the sum of the costs is the least.

    `task_counts` has the number of tasks of each client in the end; in all there are as many tasks.
    `group_limits` bound how many tasks of a group a client may have; places that are not in it have
    no bound. Costs are whole numbers.
    """

    def __init__(
        self,
        compute_cost: Callable[[str, int], int],
        task_counts: Mapping[int, int],
        find_group: Callable[[str], str] = lambda task: "",
        group_limits: Mapping[Place, int] | None = None,
    ) -> None:
        self._compute_cost = compute_cost
        self._find_group = find_group
        self._room = dict(task_counts)
        self._group_room = dict(group_limits or {})
        self._clients = sorted(task_counts)
        self._groups: dict[str, None] = {}
        self._client_of: dict[str, int] = {}
        self._leaving: dict[tuple[Place, int], list[tuple[int, tuple[int, int], str]]] = {}
        """A heap for each place and other client: the tasks there, by what it costs to move."""

    def place_tasks(self, tasks: Sequence[str]) -> dict[str, int]:
        """Return the client of each task. Raises ValueError where limits leave a task no room."""
        for task in tasks:
            self._groups[self._find_group(task)] = None
            self._move_along(self._require_cheapest_path(task))
        return self._client_of

    def _require_cheapest_path(self, task: str) -> list[_Step]:
        """Return the steps by which one more task finds room at the least cost."""
        group = self._find_group(task)
        steps: dict[Place, _Step] = {}
        distances: dict[Place, float] = {}
        waiting: list[Place] = []
        best: Place | None = None

        def relax_step(step: _Step) -> None:
            nonlocal best
            before = 0 if step.source is None else distances[step.source]
            distance = before + step.cost
            if distance >= distances.get(step.target, _UNREACHED):
                return
            distances[step.target], steps[step.target] = distance, step
            if not self._has_room(step.target):
                waiting.append(step.target)
            elif best is None or distance < distances[best]:
                best = step.target

        for client in self._clients:
            place = Place(client, group)
            relax_step(_Step(None, place, task, self._compute_cost(task, client)))
        for place in waiting:  # the list grows while it is walked
            if best is None or distances[place] < distances[best]:
                for step in self._list_moves_making_room(place):
                    relax_step(step)
        if best is None:
            raise ValueError(f"the limits of groups leave no room for task {task}")
        path = [steps[best]]
        while (source := path[-1].source) is not None:
            path.append(steps[source])
        return path

    def _has_room(self, place: Place) -> bool:
        return self._room[place.client] > 0 and self._group_room.get(place, 1) > 0

    def _list_moves_making_room(self, place: Place) -> list[_Step]:
        """List the moves that make room at a full place: each to another client.

        If only the client is full, and not its group, a task of any group can make room.
        """
        is_group_full = self._group_room.get(place, 1) <= 0
        steps = []
        for group in [place.group] if is_group_full else self._groups:
            for client in self._clients:
                if client != place.client:
                    found = self._find_cheapest_move(Place(place.client, group), client)
                    if found is not None:
                        cost, task = found
                        steps.append(_Step(place, Place(client, group), task, cost))
        return steps

    def _find_cheapest_move(self, source: Place, client: int) -> tuple[Cost, TaskName] | None:
        """Return the task of a place whose move to another client costs least, with the cost."""
        heap = self._leaving.get((source, client), [])
        while heap and self._client_of[heap[0][2]] != source.client:
            heapq.heappop(heap)  # it has left
        return (heap[0][0], heap[0][2]) if heap else None

    def _move_along(self, path: Sequence[_Step]) -> None:
        """Make the moves of a path, whose steps are given from its end to its begin."""
        self._room[path[0].target.client] -= 1
        for step in path:
            if step.target in self._group_room:
                self._group_room[step.target] -= 1
            if step.source is not None:
                left = Place(step.source.client, step.target.group)
                if left in self._group_room:
                    self._group_room[left] += 1
            self._put_task(step.task, step.target)

    def _put_task(self, task: str, place: Place) -> None:
        """Put a task into a place, and note what its moves from there would cost."""
        self._client_of[task] = place.client
        here = self._compute_cost(task, place.client)
        for client in self._clients:
            if client != place.client:
                cost = self._compute_cost(task, client) - here
                heap = self._leaving.setdefault((place, client), [])
                heapq.heappush(heap, (cost, partition_sort_key(task), task))
