"""Assign tasks to members so that few move and all have about as many: Kafka's `sticky` assignor.

1. An active task stays with the member that has it, while that has fewer than its share.
2. Otherwise it goes to a member that has a standby of it, the least loaded one.
3. Otherwise it goes to the process with the fewest tasks per member.
4. Standby tasks then: to the member that had the task active, to one that had a standby of it, else
   to the least loaded process that has the task in no role. Where there are too few processes, the
   rest is left out.

A share is the number of tasks by that of members, rounded up; it is computed again for the others
when a member has reached it. Ties are broken as Java's collections break them.
Source: StickyTaskAssignor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import NamedTuple

from coordinator.assignors.java_order import sort_like_computed_hash_map
from coordinator.assignors.streams.java_queue import JavaPriorityQueue
from coordinator.assignors.streams.process_load import ProcessLoad, TaskId

NAME = "sticky"


class TaskHolder(NamedTuple):
    """Represents a member with the tasks that it has at present.

    `offsets`: how far its state of tasks is, which it may have of tasks that it doesn't run.
    """

    process_id: str
    active: Collection[TaskId] = ()
    standby: frozenset[TaskId] = frozenset()
    offsets: Mapping[TaskId, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Represents the tasks of one sub-topology: how many there are, and whether they have state."""

    subtopology_id: str
    task_count: int
    is_stateful: bool


class MemberTaskTarget(NamedTuple):
    """Holds the tasks that a member is to have."""

    active: frozenset[TaskId]
    standby: frozenset[TaskId]


class _TaskQuota:
    """Computes how many tasks a member may have, from those that are left."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count, self._member_count = task_count, member_count
        self.tasks_per_member = self._compute_tasks_per_member()

    def remove_member_if_full(self, member_task_count: int) -> None:
        """Take a member out of the computation once it has its share."""
        if member_task_count == self.tasks_per_member:
            self._member_count -= 1
            self._task_count -= member_task_count
            self.tasks_per_member = self._compute_tasks_per_member()

    def _compute_tasks_per_member(self) -> int:
        # The rounding of Java's integers towards zero, and only a positive rest rounds up.
        if not self._member_count:
            return 0
        quotient = abs(self._task_count) // self._member_count
        if self._task_count < 0:
            return -quotient
        return quotient + (self._task_count % self._member_count > 0)


def assign_tasks(
    members: Mapping[str, TaskHolder], groups: Sequence[TaskGroup], standby_count: int
) -> dict[str, MemberTaskTarget]:
    """Return the tasks that each member is to have.

    `members`: in the order of Kafka's map of them; `standby_count`: standby tasks of each task
    with state.
    """
    assignment = _StickyAssignment(members, groups, standby_count)
    assignment.assign_active()
    if standby_count:
        assignment.assign_standby()
    return {
        member_id: MemberTaskTarget(frozenset(active), frozenset(standby))
        for member_id, (active, standby) in assignment.tasks.items()
    }


class _StickyAssignment:
    """Holds one assignment while it is computed."""

    def __init__(
        self, members: Mapping[str, TaskHolder], groups: Sequence[TaskGroup], standby_count: int
    ) -> None:
        self._members = members
        self._standby_count = standby_count
        self._active_tasks = [(g.subtopology_id, i) for g in groups for i in range(g.task_count)]
        self._stateful_tasks = [
            (g.subtopology_id, i) for g in groups if g.is_stateful for i in range(g.task_count)
        ]
        task_count = len(self._active_tasks)
        all_count = task_count + len(self._stateful_tasks) * standby_count
        self._active_share = _TaskQuota(task_count, len(members))
        self._share = _TaskQuota(all_count, len(members))
        # By member id: active tasks, and standby tasks.
        self.tasks: dict[str, tuple[list[TaskId], list[TaskId]]] = {}
        self._processes: dict[str, ProcessLoad] = {}
        self._process_of: dict[str, ProcessLoad] = {}  # by member id
        self._active_holders: dict[TaskId, str] = {}
        for member_id, holder in members.items():
            process = self._processes.get(holder.process_id)
            if process is None:
                process = self._processes[holder.process_id] = ProcessLoad()
            process.add_member(member_id)
            self._process_of[member_id] = process
            self.tasks[member_id] = [], []
            for task in holder.active:
                self._active_holders[task] = member_id
        self._standby_holders = _rank_standby_holders(members)

    def assign_active(self) -> None:
        """Give each active task to one member."""
        left = sorted(self._active_tasks)
        left.sort(key=itemgetter(1))
        left = [task for task in left if not self._try_keep_active(task)]
        if self._standby_holders:
            left = [task for task in left if not self._try_promote_standby(task)]
        queue = self._queue_processes()
        for task in sorted(left):
            process = queue.pop_least()
            member_id = process.add_to_least_loaded(task)
            self.tasks[member_id][0].append(task)
            self._update_active_quotas(process.task_counts[member_id])
            queue.add_element(process)

    def _try_keep_active(self, task: TaskId) -> bool:
        """Leave an active task with its member if that has not its share yet."""
        return self._try_give_active(task, self._active_holders.get(task))

    def _try_promote_standby(self, task: TaskId) -> bool:
        """Give an active task to the least loaded member with a standby of it."""
        return self._try_give_active(
            task, self._find_least_loaded(self._standby_holders.get(task, ()))
        )

    def _try_give_active(self, task: TaskId, member_id: str | None) -> bool:
        if member_id is None:
            return False
        process = self._process_of[member_id]
        if process.task_counts[member_id] >= self._active_share.tasks_per_member:
            return False
        self.tasks[member_id][0].append(task)
        self._update_active_quotas(process.add_task(member_id, task))
        return True

    def _update_active_quotas(self, member_task_count: int) -> None:
        self._active_share.remove_member_if_full(member_task_count)
        self._share.remove_member_if_full(member_task_count)

    def assign_standby(self) -> None:
        """Give standby tasks of each task with state to members of other processes."""
        left: list[tuple[TaskId, int]] = []
        for task in sorted(self._stateful_tasks, key=lambda t: (t[1], t[0]), reverse=True):
            kept = 0
            while kept < self._standby_count and self._try_keep_standby(task):
                kept += 1
            left.append((task, self._standby_count - kept))
        queue = self._queue_processes()
        for task, count in sorted(left, key=lambda each: each[0], reverse=True):
            for _ in range(count):
                if not self._try_give_standby_to_least_loaded(task, queue):
                    break

    def _try_keep_standby(self, task: TaskId) -> bool:
        """Give one standby task to a member that has its state already, if any has a share left."""
        active_holder = self._active_holders.get(task)
        if (
            active_holder is not None
            and not self._process_of[active_holder].has_task(task)
            and self._try_give_standby(task, active_holder)
        ):
            return True
        holders = self._standby_holders.get(task, ())
        holder = self._find_least_loaded(
            [each for each in holders if not self._process_of[each].has_task(task)]
        )
        return holder is not None and self._try_give_standby(task, holder)

    def _try_give_standby(self, task: TaskId, member_id: str) -> bool:
        process = self._process_of[member_id]
        if process.task_counts[member_id] >= self._share.tasks_per_member:
            return False
        self.tasks[member_id][1].append(task)
        self._share.remove_member_if_full(process.add_task(member_id, task))
        return True

    def _try_give_standby_to_least_loaded(
        self, task: TaskId, queue: JavaPriorityQueue[ProcessLoad]
    ) -> bool:
        """Give one standby task to the least loaded process that has it in no role."""
        passed_over: list[ProcessLoad] = []
        was_given = False
        while queue:
            process = queue.pop_least()
            passed_over.append(process)
            if not process.has_task(task):
                member_id = process.add_to_least_loaded(task)
                self.tasks[member_id][1].append(task)
                self._share.remove_member_if_full(process.task_counts[member_id])
                was_given = True
                break
        for process in reversed(passed_over):
            queue.add_element(process)
        return was_given

    def _find_least_loaded(self, member_ids: Iterable[str]) -> str | None:
        """Return the member whose process, and which itself, has less than those before it."""
        found: str | None = None
        least_process = least_member = float("inf")
        for member_id in member_ids:
            process = self._process_of[member_id]
            load, task_count = process.load, process.task_counts[member_id]
            if found is None or (load < least_process and task_count < least_member):
                found, least_process, least_member = member_id, load, task_count
        return found

    def _queue_processes(self) -> JavaPriorityQueue[ProcessLoad]:
        order = sort_like_computed_hash_map(
            (holder.process_id for holder in self._members.values()), len(self._members)
        )
        return JavaPriorityQueue(map(self._processes.__getitem__, order), attrgetter("load"))


def _rank_standby_holders(members: Mapping[str, TaskHolder]) -> dict[TaskId, list[str]]:
    """Return the members with state of each task that they don't run.

    Those that have a standby come first, then those whose state is furthest.
    """
    ranked: dict[TaskId, list[tuple[bool, int, str]]] = {}
    for member_id, holder in members.items():
        for task in holder.standby:
            rank = (False, -holder.offsets.get(task, 0), member_id)
            ranked.setdefault(task, []).append(rank)
        for task, offset in holder.offsets.items():
            if task not in holder.standby:
                ranked.setdefault(task, []).append((True, -offset, member_id))
    return {
        task: [rank[2] for rank in sorted(ranks, key=lambda rank: rank[:2])]
        for task, ranks in ranked.items()
    }
