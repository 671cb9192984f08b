"""Find who owns each stream task, and withhold it from others until its owner has given it up.

Members keep processing their tasks while they join (KIP-429), so a task must not begin with one
member before its owner has committed and closed it. A task that is to move is in no assignment for
one round: its owner is told to revoke it, and joins again when that is done; then it is free.

Pure functions. Kafka's counterpart is ConsumerCoordinator.maybeUpdateJoinedSubscription with
AbstractStickyAssignor's `generation`, and StreamsPartitionAssignor.populateActiveTaskAndPartitions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class TaskClaim(NamedTuple):
    """Holds the tasks that a member says it owns, and the generation in which it was given them.

    `generation` -1: it has no assignment, and owns none.
    """

    tasks: Collection[str]
    generation: int


class WithheldAssignment(NamedTuple):
    """Holds the tasks that each member is to run now, and those that each is to give up."""

    tasks: dict[str, list[str]]
    revoked: dict[str, list[str]]


def find_task_owners(claims: Mapping[str, TaskClaim]) -> dict[str, str]:
    """Return the owner of each task: the member that claims it with the highest generation.

    A task that two members claim with that generation is nobody's, as is one that nobody claims.
    """
    highest: dict[str, int] = {}
    owners: dict[str, str] = {}
    for member, (tasks, generation) in claims.items():
        for task in tasks:
            if generation > highest.get(task, -1):
                highest[task] = generation
                owners[task] = member
            elif generation == highest.get(task) and owners.get(task) != member:
                owners.pop(task, None)
    return owners


def withhold_owned_tasks(
    targets: Mapping[str, Collection[str]], owners: Mapping[str, str]
) -> WithheldAssignment:
    """Take each task that another member owns out of its target, and let the owner revoke it.

    `targets` has every member, with the tasks that it is to have in the end. Each task is in at
    most one list of the result. What a member owns and nobody is to have is revoked as well.
    """
    tasks = {
        member: sorted(task for task in target if owners.get(task, member) == member)
        for member, target in targets.items()
    }
    revoked = {
        member: sorted(
            task
            for task, owner in owners.items()
            if owner == member and task not in targets[member]
        )
        for member in targets
    }
    return WithheldAssignment(tasks, revoked)
