"""Track which tasks the members of one process get while an assignment is computed."""

from __future__ import annotations

from coordinator.assignors.java_order import sort_like_hash_map
from coordinator.assignors.streams.java_queue import JavaPriorityQueue

TaskId = tuple[str, int]


class ProcessLoad:
    """Holds the tasks of one process's members; its load is the number of tasks per member.

    Kafka's counterpart is ProcessState.
    """

    def __init__(self) -> None:
        self.task_counts: dict[str, int] = {}  # by member id
        self.active: dict[str, set[TaskId]] = {}  # by member id
        self.standby: dict[str, set[TaskId]] = {}  # by member id
        self.load = 0.0  # how many tasks there are for each member
        self._tasks: set[TaskId] = set()
        self._task_count = 0
        self._members_by_load: JavaPriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        self.task_counts[member_id] = 0
        self.active[member_id] = set()
        self.standby[member_id] = set()

    def has_task(self, task: TaskId) -> bool:
        """Return whether any member of the process has a task, in whatever role."""
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; return how many tasks it has then."""
        self._members_by_load = None
        return self._add_task(member_id, task, is_active=is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest tasks; return how many it has then."""
        if self._members_by_load is None:
            order = sort_like_hash_map(self.task_counts)
            self._members_by_load = JavaPriorityQueue(order, self.task_counts.__getitem__)
        member_id = self._members_by_load.take_least()
        task_count = self._add_task(member_id, task, is_active=is_active)
        self._members_by_load.add_element(member_id)
        return task_count

    def _add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._task_count += 1
        self.load = self._task_count / len(self.task_counts)
        self._tasks.add(task)
        (self.active if is_active else self.standby)[member_id].add(task)
        self.task_counts[member_id] += 1
        return self.task_counts[member_id]
