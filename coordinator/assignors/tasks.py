"""Assign stream tasks to members, balanced, and sticky to where they ran.

A pure function. Each member gets the same number of tasks within one; among the assignments that do
so, a task stays with the member that had it wherever that member's quota allows. Tasks that are
handed out are spread over the sub-topologies, since these are not equally heavy.

Where not every member may have every task, as while two versions of a topology run side by side,
each task goes to a member that may have it; then tasks move one by one until no move balances
better.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def assign_tasks(
    tasks: Collection[str],
    previous: Mapping[str, Collection[str]],
    eligible_members: Mapping[str, Collection[str]] | None = None,
) -> dict[str, list[str]]:
    """Return the tasks of each member, sorted.

    `previous` has every member, with the tasks that it runs now (or none); tasks that no longer
    exist, or that two members claim, do no harm. `eligible_members` has the members that may have
    each task, if not all may have all; a task that nobody may have is left out. Deterministic
    whatever the order of the arguments. Raises ValueError without members.
    """
    if not previous:
        raise ValueError("tasks can't be assigned to no members")
    if eligible_members is not None:
        return _assign_among_eligible(tasks, previous, eligible_members)
    members = sorted(previous)
    base_quota, larger_quota_count = divmod(len(tasks), len(members))
    unassigned = set(tasks)
    assigned: dict[str, list[str]] = {member: [] for member in members}
    # Members that had most tasks get the larger quotas, so that the fewest tasks move.
    for member in sorted(members, key=lambda m: (-len(unassigned.intersection(previous[m])), m)):
        kept = sorted(unassigned.intersection(previous[member]), key=_partition_sort_key)
        quota = base_quota + (1 if larger_quota_count > 0 and len(kept) > base_quota else 0)
        larger_quota_count -= quota - base_quota
        assigned[member] = kept[:quota]
        unassigned.difference_update(assigned[member])
    for task in sorted(unassigned, key=_partition_sort_key):
        assigned[_find_least_loaded(task, members, assigned)].append(task)
    return {member: sorted(member_tasks) for member, member_tasks in assigned.items()}


def _assign_among_eligible(
    tasks: Collection[str],
    previous: Mapping[str, Collection[str]],
    eligible_members: Mapping[str, Collection[str]],
) -> dict[str, list[str]]:
    """Assign each task to an eligible member, then move single tasks to balance the members."""
    candidates = {
        task: sorted(eligible_members[task]) for task in tasks if eligible_members.get(task)
    }
    assigned: dict[str, list[str]] = {member: [] for member in sorted(previous)}
    owners: dict[str, str] = {}
    for member in assigned:
        for task in sorted(candidates.keys() & set(previous[member]), key=_partition_sort_key):
            if task not in owners and member in candidates[task]:
                owners[task] = member
                assigned[member].append(task)
    unassigned = candidates.keys() - owners.keys()
    for task in sorted(
        unassigned, key=lambda task: (len(candidates[task]), _partition_sort_key(task))
    ):
        owners[task] = _find_least_loaded(task, candidates[task], assigned)
        assigned[owners[task]].append(task)
    moved = True
    while moved:  # It ends, as each move makes the sum of the squared loads smaller.
        moved = False
        for task in sorted(owners, key=_partition_sort_key, reverse=True):
            target = _find_least_loaded(task, candidates[task], assigned)
            if len(assigned[target]) + 1 < len(assigned[owners[task]]):
                assigned[owners[task]].remove(task)
                assigned[target].append(task)
                owners[task] = target
                moved = True
    return {member: sorted(member_tasks) for member, member_tasks in assigned.items()}


def _find_least_loaded(
    task: str, members: Collection[str], assigned: Mapping[str, Collection[str]]
) -> str:
    """Return the member with the fewest tasks.

    Among several it is the one with the fewest of the task's own sub-topology.
    """
    same_subtopology_counts = {
        m: sum(_subtopology_of(t) == _subtopology_of(task) for t in assigned[m]) for m in members
    }
    return min(members, key=lambda m: (len(assigned[m]), same_subtopology_counts[m], m))


def _subtopology_of(task: str) -> str:
    return task.partition("_")[0]


def _partition_sort_key(task: str) -> tuple[int, int]:
    """Return a key that sorts tasks by partition, then by sub-topology.

    So any part of a sorted list has tasks of every sub-topology.
    """
    subtopology, _, partition = task.partition("_")
    return int(partition), int(subtopology)
