"""Assign tasks so that a member that takes one over has its state already, as KIP-441 describes.

Kafka Streams' counterpart is HighAvailabilityTaskAssignor. The steps:

1. Stateful tasks get targets: the clients where they are to run in the end, balanced by number of
   threads, and sticky to where they run now. Kafka Streams computes them without regard to where
   tasks run now; ours moves only what balance asks for.
2. A task whose target isn't caught up stays with a client that is, and its target gets a warm-up.
3. Standbys get targets on other clients, spread by client tags (KIP-708); one whose target isn't
   caught up stays too, with a warm-up at its target. There are at most `max_warmup_replicas`
   warm-ups at a time; what gets none waits.
4. Stateless tasks even out the number of active tasks.
5. With a rack-aware strategy (KIP-925) each of these placements is then changed so that tasks read
   from their own racks, with as many tasks for each client as before (`racks`).
6. The tasks of a client are shared among its members, its threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from coordinator.assignors.tasks.active import (
    choose_stateful_targets,
    place_stateful_where_caught_up,
    place_stateless,
)
from coordinator.assignors.tasks.pools import Pools
from coordinator.assignors.tasks.racks import (
    NO_STRATEGY,
    STATELESS_COSTS,
    RackAwareOptimizer,
    find_rack_obstacle,
)
from coordinator.assignors.tasks.replicas import PoolNumber, TaskName, partition_sort_key
from coordinator.assignors.tasks.standby import StandbyTargets, find_standby_stand_in
from coordinator.assignors.tasks.state import (
    AssignmentConfigs,
    AssignmentInput,
    MemberTasks,
    TaskAssignment,
)
from coordinator.assignors.tasks.threads import share_pool_tasks

TaskMove: TypeAlias = tuple[TaskName, PoolNumber]  # a task, and the pool that is to get it


def assign_tasks_and_replicas(state: AssignmentInput, configs: AssignmentConfigs) -> TaskAssignment:
    """Return the active, standby and warm-up tasks of every member.

    A task that no member may run is left out. Deterministic whatever the order of the arguments'
    items. Raises ValueError without members, and if `max_warmup_replicas` is below 1, as nothing
    would ever move then.
    """
    if not any(client.members for client in state.clients.values()):
        raise ValueError("tasks can't be assigned to no members")
    if configs.max_warmup_replicas < 1:
        raise ValueError(f"max_warmup_replicas is {configs.max_warmup_replicas}, and at least 1")
    pools = Pools(state, configs)
    targets = choose_stateful_targets(state.stateful_tasks, pools)
    optimizer = None
    if configs.rack_aware_assignment_strategy != NO_STRATEGY and not find_rack_obstacle(
        state, configs
    ):
        optimizer = RackAwareOptimizer(pools)
        targets = optimizer.optimize_active(targets, optimizer.stateful_costs)
    stateful = place_stateful_where_caught_up(targets, pools)
    standby_targets = StandbyTargets(stateful, targets, pools).choose_pools(optimizer)
    standbys, standby_moves = _place_standbys(stateful, targets, standby_targets, pools)
    active_moves = [
        (task, target)
        for task, target in targets.items()
        if pools.client_of(target) != pools.client_of(stateful[task])
    ]
    warmups = _choose_warmups(active_moves, standby_moves, standbys, pools)
    stateless = place_stateless(state.stateless_tasks, stateful, pools)
    if optimizer is not None:
        stateless = optimizer.optimize_active(stateless, STATELESS_COSTS)
    members: dict[str, MemberTasks] = {}
    for index in range(len(pools.pools)):
        members |= share_pool_tasks(index, stateful, stateless, standbys, warmups, pools)
    return TaskAssignment(members, bool(active_moves or standby_moves))


def _place_standbys(
    stateful: Mapping[str, int],
    targets: Mapping[str, int],
    standby_targets: Mapping[str, list[PoolNumber]],
    pools: Pools,
) -> tuple[dict[str, list[PoolNumber]], list[TaskMove]]:
    """Return the pools of each task's standbys now, and those that wait for their targets."""
    placed: dict[str, list[PoolNumber]] = {}
    moves = []
    for task, task_targets in standby_targets.items():
        used = {pools.client_of(pool) for pool in (stateful[task], targets[task], *task_targets)}
        placed[task] = []
        for target in task_targets:
            stand_in = find_standby_stand_in(task, target, used, pools)
            placed[task].append(target if stand_in is None else stand_in)
            if stand_in is not None:
                used.add(pools.client_of(stand_in))
                moves.append((task, target))
    return placed, moves


def _choose_warmups(
    active_moves: Iterable[TaskMove],
    standby_moves: Iterable[TaskMove],
    standbys: Mapping[str, list[PoolNumber]],
    pools: Pools,
) -> dict[str, list[PoolNumber]]:
    """Return the pools of each task's warm-ups: of active tasks first, those begun before others.

    The target of an active task that has a standby needs no warm-up.
    """

    def rank_move(move: TaskMove) -> tuple[object, ...]:
        task, target = move
        return (
            not pools.is_standby_holder(task, target),
            pools.lag_of(task, target),
            partition_sort_key(task),
        )

    wanted = [*sorted(active_moves, key=rank_move), *sorted(standby_moves, key=rank_move)]
    warmups: dict[str, list[PoolNumber]] = {}
    left = pools.configs.max_warmup_replicas
    for task, target in wanted:
        standby_clients = {pools.client_of(pool) for pool in standbys[task]}
        if left > 0 and pools.client_of(target) not in standby_clients:
            warmups.setdefault(task, []).append(target)
            left -= 1
    return warmups
