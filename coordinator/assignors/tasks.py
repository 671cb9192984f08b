"""Assign stream tasks to members: balanced, and sticky to where they ran.

A pure function. Each member gets the same number of tasks within one; among the assignments that do
so, a task stays with the member that had it wherever that member's quota allows. Tasks that are
handed out are spread over the sub-topologies, since these are not equally heavy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def assign_tasks(
    tasks: Collection[str], previous: Mapping[str, Collection[str]]
) -> dict[str, list[str]]:
    """Tasks for each member.

    `previous` has every member, with the tasks that it runs now (or none); tasks that no longer
    exist, or that two members claim, do no harm. Returns each member's tasks, sorted. Deterministic
    whatever the order of the arguments. Raises ValueError without members.
    """
    if not previous:
        raise ValueError("tasks can't be assigned to no members")
    members = sorted(previous)
    base, extra = divmod(len(tasks), len(members))
    unassigned = set(tasks)
    assigned: dict[str, list[str]] = {member: [] for member in members}
    # Those who had most keep the larger quotas: fewest tasks move.
    for member in sorted(members, key=lambda m: (-len(unassigned.intersection(previous[m])), m)):
        kept = sorted(unassigned.intersection(previous[member]), key=_by_partition)
        quota = base + (1 if extra > 0 and len(kept) > base else 0)
        extra -= quota - base
        assigned[member] = kept[:quota]
        unassigned.difference_update(assigned[member])
    for task in sorted(unassigned, key=_by_partition):
        alike = {
            m: sum(_subtopology(t) == _subtopology(task) for t in assigned[m]) for m in members
        }
        least = min(members, key=lambda m: (len(assigned[m]), alike[m], m))
        assigned[least].append(task)
    return {member: sorted(mine) for member, mine in assigned.items()}


def _subtopology(task: str) -> str:
    return task.partition("_")[0]


def _by_partition(task: str) -> tuple[int, int]:
    """In this order, whatever is cut off or handed out has every sub-topology in it."""
    subtopology, _, partition = task.partition("_")
    return int(partition), int(subtopology)
