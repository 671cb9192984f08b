"""Balance replicas over units of some threads each, with as few moves as that takes.

A unit's replicas are taken as shared evenly by its threads. A replica moves from one unit to
another only where the fullest thread of the one has at least two more than the emptiest of the
other. So when no replica can move, any two threads differ by one at most, and what is balanced
already is left alone. Each move makes the sum of the threads' squared loads smaller: it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from coordinator.assignors.tasks.replicas import Replica


class PlacementUnits:
    """Counts the replicas of units, which have so many threads each, and finds the least loaded."""

    def __init__(
        self,
        thread_counts: Mapping[int, int],
        loads: Mapping[int, int],
        lesser_loads: Mapping[int, int] = MappingProxyType({}),
        preferred: Collection[int] = (),
    ) -> None:
        """Take in `loads` what the units have besides the replicas that are placed here.

        `lesser_loads` counts what decides among units that have equally many. Of these, replicas
        move to `preferred` ones first: so they go where they were to go a round before.
        """
        self.thread_counts = thread_counts
        self._lesser_loads = lesser_loads
        self._preferred = preferred
        self._loads = {unit: loads.get(unit, 0) for unit in sorted(thread_counts)}
        self._of_subtopology: Counter[tuple[int, str]] = Counter()
        self.unit_of: dict[Replica, int] = {}
        """The unit of each replica."""

    @property
    def loads(self) -> Mapping[int, int]:
        """Return the number of replicas of each unit, with what it had before."""
        return self._loads

    def place_replica(self, replica: Replica, unit: int) -> None:
        """Place a replica on a unit; move it there if it is placed already."""
        former = self.unit_of.get(replica)
        if former is not None:
            self._loads[former] -= 1
            self._of_subtopology[former, replica.subtopology] -= 1
        self.unit_of[replica] = unit
        self._loads[unit] += 1
        self._of_subtopology[unit, replica.subtopology] += 1

    def rank_unit_by_load(self, replica: Replica, unit: int) -> tuple[float, float, float, int]:
        """Return a key that is least for the unit where a replica adds least.

        That is the one with the fewest replicas a thread, and among several the one with the
        fewest of the replica's own sub-topology, since these are not equally heavy.
        """
        threads = self.thread_counts[unit]
        same = self._of_subtopology[unit, replica.subtopology]
        lesser = self._lesser_loads.get(unit, 0)
        return self._loads[unit] / threads, lesser / threads, same / threads, unit

    def balance_loads(
        self,
        can_move: Callable[[Replica, int], bool],
        rank_move: Callable[[Replica, int], tuple[Any, ...]],
    ) -> None:
        """Move replicas until no move that `can_move` allows balances better.

        Among the moves from the fullest units to the emptiest one, the one with the least rank is
        made; among equal ones the one that spreads sub-topologies best.
        """
        while (move := self._find_balancing_move(can_move, rank_move)) is not None:
            self.place_replica(*move)

    def _find_balancing_move(
        self,
        can_move: Callable[[Replica, int], bool],
        rank_move: Callable[[Replica, int], tuple[Any, ...]],
    ) -> tuple[Replica, int] | None:
        fullest = {u: -(-load // self.thread_counts[u]) for u, load in self._loads.items()}
        emptiest = {u: load // self.thread_counts[u] for u, load in self._loads.items()}
        targets = sorted(
            emptiest,
            key=lambda u: (
                emptiest[u],
                u not in self._preferred,
                self._lesser_loads.get(u, 0) / self.thread_counts[u],
                u,
            ),
        )
        if not targets or max(fullest.values()) - emptiest[targets[0]] < 2:
            return None
        replicas_by_load: dict[int, list[Replica]] = {}
        for replica, unit in self.unit_of.items():
            replicas_by_load.setdefault(fullest[unit], []).append(replica)
        for load in sorted(replicas_by_load, reverse=True):
            for target in targets:
                if load - emptiest[target] < 2:
                    break
                movable = [r for r in replicas_by_load[load] if can_move(r, target)]
                if movable:
                    return self._choose_best_replica(movable, target, rank_move), target
        return None

    def _choose_best_replica(
        self,
        replicas: Iterable[Replica],
        target: int,
        rank_move: Callable[[Replica, int], tuple[Any, ...]],
    ) -> Replica:
        def rank_replica(replica: Replica) -> tuple[Any, ...]:
            of_target = self._of_subtopology[target, replica.subtopology]
            of_source = self._of_subtopology[self.unit_of[replica], replica.subtopology]
            return (*rank_move(replica, target), of_target - of_source, replica.sort_key)

        return min(replicas, key=rank_replica)
