"""Share the tasks of a pool among its members, sticky to the member that has each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks.balancing import Units
from coordinator.assignors.tasks.pools import Pool
from coordinator.assignors.tasks.replicas import Replica, partition_sort_key
from coordinator.assignors.tasks.state import AssignmentInput


def share_among_members(
    pool: Pool, tasks: Collection[str], loads: Mapping[str, int], state: AssignmentInput
) -> dict[str, list[str]]:
    """Return the tasks of each member of a pool, so that the members are balanced within one.

    `loads` counts the tasks that members have besides. A task stays with the member that runs it
    now, as an active task or otherwise as a standby or warm-up task, where balance allows; one
    that nobody has goes to a member that owns little, which may have just restarted.
    """
    indexes = {member: index for index, member in enumerate(pool.members)}
    units = Units(
        dict.fromkeys(indexes.values(), 1),
        {indexes[m]: load for m, load in loads.items()},
        Counter(indexes[m] for m in state.owners.values() if m in indexes),
    )
    ordered = sorted(tasks, key=partition_sort_key)
    holders = {task: _find_holders(task, indexes, state) for task in ordered}
    for task in ordered:
        if holders[task]:
            units.place_replica(Replica(task), holders[task][0])
    for task in ordered:
        replica = Replica(task)
        if replica not in units.unit_of:
            units.place_replica(
                replica, min(indexes.values(), key=lambda i: units.load_of(replica, i))
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


def _find_holders(task: str, indexes: Mapping[str, int], state: AssignmentInput) -> list[int]:
    """Return the indexes of the members that have a task now: the owner, then those with a copy."""
    owner = state.owners.get(task)
    copies = sorted(indexes[m] for m in state.standby_holders.get(task, ()) if m in indexes)
    return copies if owner is None or owner not in indexes else [indexes[owner], *copies]
