"""Represent tasks of a streams group, and who is to have or has which, in three roles.

A task is a sub-topology with a partition. Its active instance processes records; standby tasks keep
copies of its state; warm-up tasks are copies that are to become active.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

TaskId: TypeAlias = tuple[str, int]  # sub-topology id, partition
TaskSet: TypeAlias = frozenset[TaskId]
# The member epoch at which each active task was assigned: a commit with an older one is a zombie's.
TaskEpochs: TypeAlias = Mapping[TaskId, int]

NO_TASKS: TaskSet = frozenset()
NO_TASK_EPOCHS: TaskEpochs = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TaskRoles:
    """Holds tasks by role: those that a member is to have, or says that it has."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """Holds tasks by role that a member has, or has still to revoke, with epochs of active ones."""

    active: TaskEpochs = field(default_factory=lambda: NO_TASK_EPOCHS)
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def overlaps(self, roles: TaskRoles) -> bool:
        """Return whether any of these tasks is among others in the same role."""
        return not (
            roles.active.isdisjoint(self.active)
            and roles.standby.isdisjoint(self.standby)
            and roles.warmup.isdisjoint(self.warmup)
        )

    def includes(self, roles: TaskRoles) -> bool:
        """Return whether all of other tasks are among these in the same role."""
        return (
            roles.active <= self.active.keys()
            and roles.standby <= self.standby
            and roles.warmup <= self.warmup
        )


NO_ROLES = TaskRoles()
NOTHING_ASSIGNED = AssignedTasks()


def group_by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    """Return the partitions of tasks by sub-topology id, both in order."""
    partitions: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        partitions.setdefault(subtopology_id, []).append(partition)
    return partitions
