"""Move tasks to clients in the racks of what they read, without changing how many each has
(KIP-925).

    strategy              what is the least
    min_traffic           the cost of all tasks
    balance_subtopology   the same, with the tasks of each sub-topology spread over the clients

A task costs on a client `traffic_cost` for each partition that has no replica in the client's rack,
and `non_overlap_cost` if it was placed elsewhere before. Active tasks read their sources, standby
tasks their changelogs. Standby tasks are only exchanged between two clients at a time, where their
placement allows both moves.

Of placements of the same cost the one is taken that moves the fewest tasks, then tasks that have
a copy where they go. Source: RackAwareTaskAssignor, HighAvailabilityTaskAssignor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from coordinator.assignors.tasks.cheapest_placement import CheapestPlacement, Place
from coordinator.assignors.tasks.pools import Pools
from coordinator.assignors.tasks.replicas import PoolNumber, Replica, partition_sort_key
from coordinator.assignors.tasks.state import AssignmentConfigs, AssignmentInput

MovedCount: TypeAlias = int

NO_STRATEGY, BALANCE_SUBTOPOLOGY = "none", "balance_subtopology"
_STANDBY_ROUND_LIMIT = 4
"""After so many rounds Kafka Streams ends to exchange standby tasks."""
_MOVE_PENALTY, _HOLDER_PENALTY = 2, 1
"""The weight of each move among placements of one cost; less where the client has a copy."""


ListStandbys = Callable[[int, int], Iterable[str]]
"""Source pool, target pool -> the tasks whose standby may move so."""
MoveStandby = Callable[[str, int, int], None]
"""Task, source pool, target pool."""


class RackCosts(NamedTuple):
    """Holds what decides between clients in other racks, and clients that a task had before."""

    traffic: int
    non_overlap: int


STATELESS_COSTS = RackCosts(1, 0)
"""Tasks without state move freely."""
_STATEFUL_COSTS = RackCosts(10, 1)
"""The defaults of Kafka Streams' HighAvailabilityTaskAssignor."""


def find_rack_obstacle(state: AssignmentInput, configs: AssignmentConfigs) -> str:
    """Return why tasks can't be placed by racks, though the strategy says so; empty if they can.

    As in Kafka Streams, each client must be in one rack, and those of all replicas must be known:
    of what the tasks read, and with standby tasks also of their changelogs.
    """
    if state.eligible_members is not None:
        return "several versions of the topology run side by side"
    for name, client in state.clients.items():
        if len(client.racks) != 1 or "" in client.racks:
            given = ", ".join(sorted(each or "none" for each in client.racks)) or "none"
            return (
                f"client {name!r} is not in one rack, but {given}: set client_rack on its workers"
            )
    for task in (*state.stateful_tasks, *state.stateless_tasks):
        racks = state.task_racks.get(task)
        if racks is None or not racks.sources or not all(racks.sources):
            return f"brokers don't tell the racks of what task {task} reads (broker.rack)"
        if configs.num_standby_replicas and not all(racks.changelogs):
            return f"brokers don't tell the racks of the changelogs of task {task} (broker.rack)"
    return ""


class RackAwareOptimizer:
    """Moves placed tasks to the racks of their partitions, where `find_rack_obstacle` finds none.

    Then each pool is a client, and all may run all tasks.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._racks = {
            pool: next(iter(pools.state.clients[pools.client_of(pool)].racks))
            for pool in pools.thread_counts
        }
        configs = pools.configs
        traffic = configs.rack_aware_assignment_traffic_cost
        non_overlap = configs.rack_aware_assignment_non_overlap_cost
        self.stateful_costs = RackCosts(
            _STATEFUL_COSTS.traffic if traffic is None else traffic,
            _STATEFUL_COSTS.non_overlap if non_overlap is None else non_overlap,
        )

    def optimize_active(self, placed: Mapping[str, int], costs: RackCosts) -> dict[str, int]:
        """Return the pools of active tasks, as many for each as it had, at the least cost."""
        tasks = sorted(placed, key=partition_sort_key)
        counts = dict.fromkeys(self._racks, 0) | Counter(placed.values())
        is_balanced = self._pools.configs.rack_aware_assignment_strategy == BALANCE_SUBTOPOLOGY
        placement = CheapestPlacement(
            self._create_move_rating(placed, costs),
            counts,
            _find_subtopology if is_balanced else lambda task: "",
            _compute_subtopology_limits(tasks, counts) if is_balanced else {},
        )
        return placement.place_tasks(tasks)

    def exchange_standbys(self, list_standbys: ListStandbys, move: MoveStandby) -> None:
        """Exchange standby tasks between pools in other racks as long as that costs less.

        `list_standbys` returns the tasks whose standby may go from one pool to another, as things
        are, and `move` moves one.
        """
        pairs = [
            pair
            for pair in combinations(sorted(self._racks), 2)
            if self._racks[pair[0]] != self._racks[pair[1]]
        ]
        for _ in range(_STANDBY_ROUND_LIMIT):
            if not sum(self._exchange_between(pair, list_standbys, move) for pair in pairs):
                return

    def _exchange_between(
        self, pair: tuple[int, int], list_standbys: ListStandbys, move: MoveStandby
    ) -> MovedCount:
        """Exchange standby tasks between two pools; return how many have moved."""
        holders = {
            task: source
            for source, target in (pair, pair[::-1])
            for task in list_standbys(source, target)
        }
        counts = Counter(holders.values())
        if len(counts) < len(pair):
            return 0
        rate = self._create_move_rating(holders, self.stateful_costs, is_standby=True)
        placed = CheapestPlacement(rate, counts).place_tasks(
            sorted(holders, key=partition_sort_key)
        )
        moved = [task for task, pool in placed.items() if pool != holders[task]]
        for task in moved:
            move(task, holders[task], placed[task])
        return len(moved)

    def _create_move_rating(
        self, placed: Mapping[str, int], costs: RackCosts, *, is_standby: bool = False
    ) -> Callable[[str, int], int]:
        """Return a function of a task and a pool that says what the task costs there.

        It is a multiple of the true cost, so that all penalties together are less than one of it.
        """
        scale = _MOVE_PENALTY * len(placed) + 1
        state = self._pools.state

        def compute_cost(task: str, pool: PoolNumber) -> int:
            racks = state.task_racks[task]
            partitions = racks.changelogs if is_standby else racks.sources
            distant_count = sum(self._racks[pool] not in each for each in partitions)
            cost = distant_count * costs.traffic * scale
            if pool == placed[task]:
                return cost
            is_standby_holder = self._pools.is_standby_holder(task, pool)
            return (
                cost
                + costs.non_overlap * scale
                + (_HOLDER_PENALTY if is_standby_holder else _MOVE_PENALTY)
            )

        return compute_cost


def _find_subtopology(task: str) -> str:
    return Replica(task).subtopology


def _compute_subtopology_limits(
    tasks: Sequence[str], task_counts: Mapping[int, int]
) -> dict[Place, int]:
    """Return how many tasks of each sub-topology a pool may have: its share, rounded up."""
    sizes = Counter(map(_find_subtopology, tasks))
    return {
        # In floating point and in this order, as Kafka Streams computes it.
        Place(pool, subtopology): math.ceil(count / len(tasks) * size)
        for pool, count in task_counts.items()
        for subtopology, size in sizes.items()
    }
