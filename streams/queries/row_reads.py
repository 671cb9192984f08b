"""Read one row of one task of this worker, in the order of steps that makes the answer true.

It is the read of `local_stores` for its most frequent case, and for a caller that does not wait:
whatever stands against an answer now, such as a commit that is half written, is no answer.

    before    which tasks the threads have, and since when commits are pending
    then      the number of the task's commit, its position, the row, the number again
    after     that the threads have the same tasks, and how long ago the group had this worker
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from state.errors import StateError
from state.store import StoreDisk
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.answer_ages import (
    ThreadAssignmentTimes,
    measure_membership_age_s,
    measure_pending_s,
)
from streams.queries.committed_reads import Position
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_locations import are_same_assignments
from streams.queries.store_reads import StoreRead, StoreRow, read_rows
from streams.runtime.tasks.store_opening import AnyStore, open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState


class _CommitView(NamedTuple):
    """Holds a view of a store as of a commit: it has the stream time of when it was opened."""

    sequence: int
    disk: StoreDisk
    view: AnyStore


class RowReads:
    """Reads rows in the tasks of this worker, by the arguments that `LocalStores` has."""

    def __init__(
        self,
        list_tasks: Callable[[], Iterable[Task]],
        list_assignments: Callable[[], Sequence[ThreadAssignmentTimes]],
        monotonic_s: Callable[[], float],
        now_ms: Callable[[], int],
        session_timeout_s: float,
    ) -> None:
        self._list_tasks = list_tasks
        self._list_assignments = list_assignments
        self._monotonic_s = monotonic_s
        self._now_ms = now_ms
        self._session_timeout_s = session_timeout_s
        self._views: WeakKeyDictionary[Task, dict[str, _CommitView]] = WeakKeyDictionary()
        """This holds the view of each store that a task's last read has opened, by its name."""

    def read_row(
        self, subtopology: int, partition: int, spec: StoreSpec, read: StoreRead
    ) -> StoreAnswer | None:
        """Return what a read that has one row finds in the store of one task.

        None if the task is not here, or the answer can't be known at once.
        """
        task_name = f"{subtopology}_{partition}"
        assignments = self._list_assignments()
        if any(each.assignment is None for each in assignments):
            return None
        found: Task | None = None
        pending_ms: list[int] = []
        for task in self._list_tasks():
            if task.name == task_name:
                found = task
            if task.commit_pending_since_ms is not None:
                pending_ms.append(task.commit_pending_since_ms)
        if found is None or (committed := self._read_committed_rows(found, spec, read)) is None:
            return None
        rows, position = committed
        after = self._list_assignments()
        if not are_same_assignments(assignments, after):
            return None
        try:
            age_s = measure_membership_age_s(after, self._monotonic_s(), self._session_timeout_s)
        except StoreUnavailable:
            return None
        if pending_ms:
            age_s = max(age_s, measure_pending_s(pending_ms, self._now_ms()))
        return StoreAnswer(rows, False, position, frozenset((partition,)), age_s)

    def _read_committed_rows(
        self, task: Task, spec: StoreSpec, read: StoreRead
    ) -> tuple[list[StoreRow], Position] | None:
        """Return what one commit of a task's store has, and its position; None if not known."""
        sequence, position = task.commit_sequence, task.committed_positions
        logged = task.stores.logged.get(spec.name)
        if sequence % 2 or task.state is not TaskState.RUNNING:
            return None
        if logged is None or (disk := logged.disk) is None:
            return None
        views = self._views.setdefault(task, {})
        held = views.get(spec.name)
        if held is None or held.sequence != sequence or held.disk is not disk:
            held = None
        try:
            view = open_store(spec, disk) if held is None else held.view
            rows = read_rows(spec, view, read)
        except StateError:
            return None
        if task.commit_sequence != sequence:
            return None
        if held is None:
            views[spec.name] = _CommitView(sequence, disk, view)
        return rows, position
