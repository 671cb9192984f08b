"""Share the tasks of clients among their members, sticky to the member that has each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks.balancing import PlacementUnits
from coordinator.assignors.tasks.pools import Pool, Pools
from coordinator.assignors.tasks.replicas import Replica, partition_sort_key
from coordinator.assignors.tasks.state import (
    AssignmentConfigs,
    AssignmentInput,
    ClientTasks,
    MemberTasks,
)


def share_client_tasks(
    assigned: Mapping[str, ClientTasks], state: AssignmentInput
) -> dict[str, MemberTasks]:
    """Share what each client was assigned among its members, which may all run the same tasks.

    Clients that are not in `assigned` get no tasks.
    """
    pools = Pools(state, AssignmentConfigs())
    indexes = {pool.client: index for index, pool in enumerate(pools.pools)}
    stateful: dict[str, int] = {}
    stateless: dict[str, int] = {}
    standbys: dict[str, list[int]] = {}
    for client, tasks in assigned.items():
        for task in tasks.active:
            (stateful if task in state.stateful_tasks else stateless)[task] = indexes[client]
        for task in tasks.standby:
            standbys.setdefault(task, []).append(indexes[client])
    members: dict[str, MemberTasks] = {}
    for index in range(len(pools.pools)):
        members |= share_pool_tasks(index, stateful, stateless, standbys, {}, pools)
    return members


def share_pool_tasks(
    index: int,
    stateful: Mapping[str, int],
    stateless: Mapping[str, int],
    standbys: Mapping[str, list[int]],
    warmups: Mapping[str, list[int]],
    pools: Pools,
) -> dict[str, MemberTasks]:
    """Share a pool's tasks of each kind among its members, kind after kind."""
    kinds = [
        [task for task, pool in stateful.items() if pool == index],
        [task for task, pool in stateless.items() if pool == index],
        [task for task, placed in standbys.items() if index in placed],
        [task for task, placed in warmups.items() if index in placed],
    ]
    pool = pools.pools[index]
    loads = dict.fromkeys(pool.members, 0)
    shared = []
    for tasks in kinds:
        shared.append(_share_tasks(pool, tasks, loads, pools.state))
        for member, mine in shared[-1].items():
            loads[member] += len(mine)
    return {
        member: MemberTasks(
            tuple(sorted(shared[0][member] + shared[1][member], key=partition_sort_key)),
            tuple(shared[2][member]),
            tuple(shared[3][member]),
        )
        for member in pool.members
    }


def _share_tasks(
    pool: Pool, tasks: Collection[str], loads: Mapping[str, int], state: AssignmentInput
) -> dict[str, list[str]]:
    """Return the tasks of each member of a pool, so that the members are balanced within one.

    `loads` counts the tasks that members have besides. A task stays with the member that runs it
    now, as an active task or otherwise as a standby or warm-up task, where balance allows; one
    that nobody has goes to a member that owns little, which may have just restarted.
    """
    indexes = {member: index for index, member in enumerate(pool.members)}
    units = PlacementUnits(
        dict.fromkeys(indexes.values(), 1),
        {indexes[m]: load for m, load in loads.items()},
        Counter(indexes[m] for m in state.owners.values() if m in indexes),
    )
    ordered = sorted(tasks, key=partition_sort_key)
    holders = {task: _list_owner_then_standbys(task, indexes, state) for task in ordered}
    for task in ordered:
        if holders[task]:
            units.place_replica(Replica(task), holders[task][0])
    for task in ordered:
        replica = Replica(task)
        if replica not in units.unit_of:
            units.place_replica(
                replica, min(indexes.values(), key=lambda i: units.rank_unit_by_load(replica, i))
            )
    units.balance_loads(
        lambda _, __: True,
        lambda replica, target: (
            target not in holders[replica.task],
            units.unit_of[replica] in holders[replica.task],
        ),
    )
    shared: dict[str, list[str]] = {member: [] for member in pool.members}
    for task in ordered:
        shared[pool.members[units.unit_of[Replica(task)]]].append(task)
    return shared


def _list_owner_then_standbys(
    task: str, indexes: Mapping[str, int], state: AssignmentInput
) -> list[int]:
    """Return the indexes of the members that have a task now: the owner, then those with a copy."""
    owner = state.owners.get(task)
    copies = sorted(indexes[m] for m in state.standby_holders.get(task, ()) if m in indexes)
    return copies if owner is None or owner not in indexes else [indexes[owner], *copies]
