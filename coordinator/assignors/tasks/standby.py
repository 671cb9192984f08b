"""Place the standby tasks: on other clients than the active task, spread over racks (KIP-708)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks.balancing import PlacementUnits
from coordinator.assignors.tasks.pools import Pools, list_tasks
from coordinator.assignors.tasks.racks import RackAwareOptimizer
from coordinator.assignors.tasks.replicas import PoolNumber, Replica


class StandbyTargets:
    """Places the standby tasks where they are to be in the end, given where the active ones are.

    No standby shares a client with the active task: neither where it runs now nor, if there are
    clients enough, where it is to run in the end. Each goes to a client whose tags have values
    that the other copies don't have, for as many tags as possible; to one that has the state
    before others; and then they move, without loss of tags, until the copies of stateful tasks are
    balanced over the threads.
    """

    def __init__(self, active: Mapping[str, int], targets: Mapping[str, int], pools: Pools) -> None:
        self._active = active
        self._targets = targets
        self._pools = pools
        self._units = PlacementUnits(pools.thread_counts, Counter(targets.values()))
        self._standbys: dict[str, list[Replica]] = {task: [] for task in active}

    def choose_pools(
        self, optimizer: RackAwareOptimizer | None = None
    ) -> dict[str, list[PoolNumber]]:
        """Choose the pools of each task's standbys, and return them by task.

        In the end `optimizer` exchanges them so that they are near their changelogs.
        """
        tasks = list_tasks(self._active, self._pools)
        for only_holders in (True, False):
            for task in tasks:
                self._place_standbys(task, only_holders=only_holders)
        self._units.balance_loads(self._can_move, self._rank_move)
        if optimizer is not None:
            optimizer.exchange_standbys(self._list_movable_standbys, self._move_standby)
        return {
            task: [self._units.unit_of[standby] for standby in standbys]
            for task, standbys in self._standbys.items()
        }

    def _place_standbys(self, task: str, *, only_holders: bool) -> None:
        """Place a task's missing standbys, with `only_holders` on pools that hold a replica."""
        standbys = self._standbys[task]
        while len(standbys) < self._pools.configs.num_standby_replicas:
            candidates = self._find_candidates(task)
            replica = Replica(task, len(standbys) + 1)
            if not candidates:
                return
            best = min(candidates, key=lambda pool: self._rank_pool(replica, pool))
            if only_holders and not self._pools.is_standby_holder(task, best):
                return
            self._units.place_replica(replica, best)
            standbys.append(replica)

    def _find_candidates(self, task: str, moving: Replica | None = None) -> list[PoolNumber]:
        """Return the pools whose clients may have one more standby of a task."""
        used = {self._pools.client_of(pool) for pool in self._list_pools_with_copy(task, moving)}
        target = self._pools.client_of(self._targets[task])
        eligible = self._pools.find_eligible(task)
        others = {self._pools.client_of(pool) for pool in eligible}
        others -= {self._pools.client_of(self._active[task]), target}
        if len(others) >= self._pools.configs.num_standby_replicas:
            used.add(target)
        return [pool for pool in eligible if self._pools.client_of(pool) not in used]

    def _list_pools_with_copy(self, task: str, moving: Replica | None = None) -> list[PoolNumber]:
        """Return the pools that have a copy of a task, without the one that is about to move."""
        standbys = [self._units.unit_of[r] for r in self._standbys[task] if r != moving]
        return [self._active[task], *standbys]

    def _count_new_tags(self, task: str, pool: PoolNumber, moving: Replica | None = None) -> int:
        """Return for how many tags a client's value is one that no other copy's client has.

        The active task counts where it is to be in the end, if no standby is there.
        """
        clients = self._pools.state.clients
        tags = clients[self._pools.client_of(pool)].tags
        others = self._list_pools_with_copy(task, moving)
        if self._targets[task] not in others and pool != self._targets[task]:
            others[0] = self._targets[task]
        values = [clients[self._pools.client_of(other)].tags for other in others]
        return sum(
            all(tags.get(name) != each.get(name) for each in values)
            for name in set(self._pools.configs.rack_aware_assignment_tags)
        )

    def _rank_pool(self, replica: Replica, pool: PoolNumber) -> tuple[object, ...]:
        task = replica.task
        return (
            -self._count_new_tags(task, pool),
            not self._pools.is_standby_holder(task, pool),
            *self._pools.rank_by_state(task, pool)[:2],
            self._units.rank_unit_by_load(replica, pool),
        )

    def _can_move(self, replica: Replica, pool: PoolNumber) -> bool:
        task = replica.task
        here = self._units.unit_of[replica]
        return pool in self._find_candidates(task, replica) and (
            self._count_new_tags(task, pool, replica) >= self._count_new_tags(task, here, replica)
        )

    def _list_movable_standbys(self, source: int, target: int) -> list[str]:
        """Return the tasks whose standby may move from one pool to another."""
        return [
            replica.task
            for replica, pool in self._units.unit_of.items()
            if pool == source and self._can_move(replica, target)
        ]

    def _move_standby(self, task: str, source: int, target: int) -> None:
        unit_of = self._units.unit_of
        moving = next(each for each in self._standbys[task] if unit_of[each] == source)
        self._units.place_replica(moving, target)

    def _rank_move(self, replica: Replica, pool: PoolNumber) -> tuple[bool, bool, bool, int]:
        task = replica.task
        return (
            self._pools.is_standby_holder(task, self._units.unit_of[replica]),
            not self._pools.is_caught_up(task, pool),
            not self._pools.is_standby_holder(task, pool),
            self._pools.lag_of(task, pool),
        )


def find_standby_stand_in(
    task: str, target: PoolNumber, used_clients: Collection[str], pools: Pools
) -> PoolNumber | None:
    """Return a pool that is to keep a standby until its target has caught up, if one is ahead.

    That is a caught-up one whose client has no copy of the task yet; the one that has the standby
    before others.
    """
    if pools.is_caught_up(task, target):
        return None
    candidates = [
        pool for pool in pools.find_caught_up(task) if pools.client_of(pool) not in used_clients
    ]
    return min(
        candidates,
        key=lambda pool: (not pools.is_standby_holder(task, pool), pools.lag_of(task, pool), pool),
        default=None,
    )
