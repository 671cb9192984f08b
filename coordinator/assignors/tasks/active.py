"""Place active tasks: where each is to run in the end, and where it runs until then (KIP-441)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks.balancing import PlacementUnits
from coordinator.assignors.tasks.pools import Pools, list_tasks
from coordinator.assignors.tasks.replicas import PoolNumber, Replica


def choose_stateful_targets(tasks: Collection[str], pools: Pools) -> dict[str, PoolNumber]:
    """Return the pool where each stateful task is to run in the end: balanced and sticky.

    A task starts from its owner, or where it can run soonest; then tasks move until the threads
    are balanced within one. Tasks without an owner move before others, so that a client that
    leaves moves none of those that stay; then tasks whose state is nearest where they go.
    """
    owners = map(pools.find_owner, list_tasks(pools.state.stateless_tasks, pools))
    ordered = list_tasks(tasks, pools)
    units = PlacementUnits(
        pools.thread_counts,
        {},
        Counter(owner for owner in owners if owner is not None),
        {
            p
            for task in ordered
            for p in pools.find_eligible(task)
            if pools.is_standby_holder(task, p)
        },
    )
    homeless = []
    for task in ordered:
        home = _find_preferred_pool(task, pools)
        if home is None:
            homeless.append(task)
        else:
            units.place_replica(Replica(task), home)
    for task in homeless:
        replica = Replica(task)
        best = min(
            pools.find_eligible(task),
            key=lambda pool: (
                *pools.rank_by_state(task, pool),
                units.rank_unit_by_load(replica, pool),
            ),
        )
        units.place_replica(replica, best)

    def rank_move(replica: Replica, target: int) -> tuple[bool, bool, bool, int, bool]:
        # An acceptable lag is as good as none: it must not keep sub-topologies from being spread.
        is_caught_up = pools.is_caught_up(replica.task, target)
        return (
            pools.find_owner(replica.task) is not None,
            not is_caught_up,
            not pools.is_standby_holder(replica.task, target),
            0 if is_caught_up else pools.lag_of(replica.task, target),
            pools.has_standby_elsewhere(replica.task, target),
        )

    units.balance_loads(lambda replica, pool: pool in pools.find_eligible(replica.task), rank_move)
    return {replica.task: pool for replica, pool in units.unit_of.items()}


def _find_preferred_pool(task: str, pools: Pools) -> PoolNumber | None:
    """Return the pool that keeps a task if balance allows: its owner, unless others are ahead."""
    owner = pools.find_owner(task)
    if owner is None or pools.is_caught_up(task, owner) or not pools.find_caught_up(task):
        return owner
    return None


def place_stateful_where_caught_up(
    targets: Mapping[str, int], pools: Pools
) -> dict[str, PoolNumber]:
    """Return the pool where each stateful task runs now: its target, if that is caught up.

    Otherwise it is another pool that is caught up, the owner before others; or, if there is none,
    the owner, or for a task without owner the pool with the least lag.
    """
    units = PlacementUnits(pools.thread_counts, {})
    waiting = []
    for task, target in targets.items():
        if pools.is_caught_up(task, target):
            units.place_replica(Replica(task), target)
        else:
            waiting.append(task)
    for task in waiting:
        units.place_replica(Replica(task), _choose_stand_in_pool(task, targets[task], pools, units))
    return {replica.task: pool for replica, pool in units.unit_of.items()}


def _choose_stand_in_pool(
    task: str, target: PoolNumber, pools: Pools, units: PlacementUnits
) -> PoolNumber:
    owner = pools.find_owner(task)
    caught_up = pools.find_caught_up(task)
    if owner is not None and (owner in caught_up or not caught_up):
        return owner
    replica = Replica(task)
    candidates = caught_up or pools.find_eligible(task)
    best = min(
        candidates,
        key=lambda pool: (*pools.rank_by_state(task, pool), units.rank_unit_by_load(replica, pool)),
    )
    return best if pools.lag_of(task, best) < pools.lag_of(task, target) else target


def place_stateless(
    tasks: Collection[str], stateful: Mapping[str, int], pools: Pools
) -> dict[str, PoolNumber]:
    """Return the pool where each stateless task runs, so that all active tasks are balanced.

    A task stays with its owner where balance allows.
    """
    loads: dict[int, int] = {}
    for pool in stateful.values():
        loads[pool] = loads.get(pool, 0) + 1
    units = PlacementUnits(pools.thread_counts, loads)
    homeless = []
    for task in list_tasks(tasks, pools):
        owner = pools.find_owner(task)
        if owner is None:
            homeless.append(task)
        else:
            units.place_replica(Replica(task), owner)
    for task in homeless:
        replica = Replica(task)
        units.place_replica(
            replica,
            min(pools.find_eligible(task), key=lambda pool: units.rank_unit_by_load(replica, pool)),
        )
    units.balance_loads(
        lambda replica, pool: pool in pools.find_eligible(replica.task),
        lambda replica, _: (pools.find_owner(replica.task) is not None,),
    )
    return {replica.task: pool for replica, pool in units.unit_of.items()}
