"""Name the copies of tasks that are placed: active ones, standbys and warm-ups."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

TaskName: TypeAlias = str
PoolNumber: TypeAlias = int  # the index of a pool in `Pools.pools`


class Replica(NamedTuple):
    """Names one copy of a task: an active one, or one of its standbys or warm-ups by number."""

    task: str
    number: int = 0

    @property
    def subtopology(self) -> str:
        """Return the number of the sub-topology, as in the task's name."""
        return self.task.partition("_")[0]

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """Return a key that sorts replicas by partition, then by sub-topology.

        So any part of a sorted list has tasks of every sub-topology.
        """
        return (*partition_sort_key(self.task), self.number)


def partition_sort_key(task: str) -> tuple[int, int]:
    """Return a key that sorts tasks by partition, then by sub-topology."""
    subtopology, _, partition = task.partition("_")
    return int(partition), int(subtopology)
