"""Track which tasks the members of one process get while an assignment is computed."""

from __future__ import annotations

from typing import TypeAlias

from coordinator.assignors.java_order import sort_like_hash_map
from coordinator.assignors.streams.java_queue import JavaPriorityQueue

MemberTaskCount: TypeAlias = int

TaskId = tuple[str, int]


class ProcessLoad:
    """Counts the tasks of one process's members; its load is the number of tasks per member.

    Kafka's counterpart is ProcessState.
    """

    __slots__ = ("_members_by_load", "_task_count", "_tasks", "load", "task_counts")

    def __init__(self) -> None:
        self.task_counts: dict[str, int] = {}  # by member id
        self.load = 0.0  # how many tasks there are for each member
        self._tasks: set[TaskId] = set()
        self._task_count = 0
        self._members_by_load: JavaPriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        self.task_counts[member_id] = 0

    def has_task(self, task: TaskId) -> bool:
        """Return whether any member of the process has a task, in whatever role."""
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId) -> MemberTaskCount:
        """Give a task to a member; return how many tasks it has then."""
        self._members_by_load = None
        return self._count_task(member_id, task)

    def add_to_least_loaded(self, task: TaskId) -> str:
        """Give a task to the member with the fewest tasks; return which one that is."""
        if len(self.task_counts) == 1:
            [member_id] = self.task_counts
            self._count_task(member_id, task)
            return member_id
        if self._members_by_load is None:
            order = sort_like_hash_map(self.task_counts)
            self._members_by_load = JavaPriorityQueue(order, self.task_counts.__getitem__)
        member_id = self._members_by_load.pop_least()
        self._count_task(member_id, task)
        self._members_by_load.add_element(member_id)
        return member_id

    def _count_task(self, member_id: str, task: TaskId) -> MemberTaskCount:
        counts = self.task_counts
        self._task_count += 1
        self.load = self._task_count / len(counts)
        self._tasks.add(task)
        counts[member_id] = count = counts[member_id] + 1
        return count
