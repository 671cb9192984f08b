"""Hold which tasks a member of a streams group has, in each of the three roles.

A task is named as everywhere in the runtime: `1_0` is partition 0 of sub-topology 1. On the wire
the sub-topology has the same number, as text (KIP-1071: `SubtopologyId`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

SubtopologyId: TypeAlias = str
PartitionNumber: TypeAlias = int

TaskNames = frozenset[str]
NO_TASKS: TaskNames = frozenset()


class TasksByRole(NamedTuple):
    """Holds the names of active, standby and warm-up tasks."""

    active: TaskNames = NO_TASKS
    standby: TaskNames = NO_TASKS
    warmup: TaskNames = NO_TASKS

    @property
    def is_empty(self) -> bool:
        """Return whether there is no task in any role."""
        return not (self.active or self.standby or self.warmup)


NO_ROLES = TasksByRole()


def name_tasks(partitions_by_subtopology: Iterable[tuple[str, Iterable[int]]]) -> TaskNames:
    """Return the names of tasks that a message lists by sub-topology."""
    return frozenset(
        f"{subtopology}_{partition}"
        for subtopology, partitions in partitions_by_subtopology
        for partition in partitions
    )


def list_partitions_by_subtopology(tasks: Iterable[str]) -> Mapping[str, list[int]]:
    """Return the partitions of tasks by sub-topology, both in order, as messages list them."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(split_task_name(task) for task in tasks):
        found.setdefault(subtopology, []).append(partition)
    return found


def split_task_name(task: str) -> tuple[SubtopologyId, PartitionNumber]:
    """Return the sub-topology and the partition of a task."""
    subtopology, _, partition = task.rpartition("_")
    return subtopology, int(partition)
