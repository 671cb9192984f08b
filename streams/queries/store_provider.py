"""Provide views with the stores of this worker's tasks, as last committed.

While a task is restored, has just moved or has just gone, a read raises StoreUnavailable rather
than return old values or none; try again a little later. A key that is not found is an answer only
if all tasks of the store are here: see `store_locations`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import merge
from itertools import chain, islice
from typing import Any, Generic, TypeAlias, TypeVar, cast

from state.errors import StateError, StoreSerdeError
from streams.errors import SerdeError, StoreNotLocal, StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.committed_reads import (
    READ_ATTEMPTS_S,
    Position,
    begin_iterator,
    read_at_one_commit,
)
from streams.queries.store_locations import (
    StoreIterator,
    StoreLocations,
    ThreadAssignment,
    parse_partition,
    parse_partitions,
)
from streams.runtime.tasks.store_opening import AnyStore, open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState

TaskName: TypeAlias = str

S = TypeVar("S", bound=AnyStore)
R = TypeVar("R")


class StateStoreProvider(Generic[S]):
    """Reads the store that `spec` declares in all tasks of `list_tasks` (StateStoreProvider).

    Each read raises StoreUnavailable where a task of the store is not running here, or goes away
    while an iterator is used; StoreNotLocal for a key that is not found while other workers have
    partitions of the store; SerdeError for a key that the store's serde refuses, where another
    attempt fails as well. Without `locations` the tasks are all that there are. `find_owner`
    returns the address of the worker that has a key in one of some partitions, or None.
    """

    def __init__(
        self,
        spec: StoreSpec,
        list_tasks: Callable[[], Iterable[Task]],
        locations: StoreLocations | None = None,
        find_owner: Callable[[Any, frozenset[int]], str | None] = lambda key, missing: None,
    ) -> None:
        self._find_owner = find_owner
        self.spec = spec
        self._list_tasks = list_tasks
        self._locations = locations

    def read_all_tasks(self, read: Callable[[S], R]) -> list[R]:
        """Call `read` with the store of each task of this worker, and return the results."""
        return list(self._read_every_task(read).values())

    def find_value(self, read: Callable[[S], R | None], key: Any) -> R | None:
        """Call `read` with each task's store, and return the first result that is not None.

        Raises StoreNotLocal, with the owner of `key`, if it is in no task here, and other workers
        have some.
        """
        assignments = self._list_assignments()
        with self._name_owner_in_errors(key):
            by_task = self._read_tasks(read, assignments)
            for found in by_task.values():
                if found is not None:
                    return found
            self._require_all_partitions(by_task, assignments)
        return None

    def iterate_key(self, read: Callable[[S], Iterator[R]], key: Any) -> StoreIterator[R]:
        """Return an iterator over the entries that `read` yields for one key.

        Raises StoreNotLocal, with the owner of `key`, if that is nothing here, and other workers
        have some tasks.
        """
        assignments = self._list_assignments()
        with self._name_owner_in_errors(key):
            by_task = self._read_tasks(lambda store: begin_iterator(read(store)), assignments)
            items = self._translate_errors(chain(*by_task.values()))
            first = list(islice(items, 1))
            if not first:
                self._require_all_partitions(by_task, assignments)
        return self._create_iterator(chain(first, items), by_task)

    @contextmanager
    def _name_owner_in_errors(self, key: Any) -> Iterator[None]:
        """Add the address of the worker that has `key` to a StoreNotLocal that the block raises."""
        try:
            yield
        except StoreNotLocal as error:
            raise StoreNotLocal(
                error.store,
                error.partitions,
                self._find_owner(key, error.partitions),
                has_partitions=error.has_partitions,
            ) from None

    def iterate_tasks(self, read: Callable[[S], Iterator[R]]) -> StoreIterator[R]:
        """Return an iterator over what `read` yields, one task after another."""
        by_task = self._read_every_task(lambda store: begin_iterator(read(store)))
        return self._create_iterator(self._translate_errors(chain(*by_task.values())), by_task)

    def merge_tasks(
        self, read: Callable[[S], Iterator[tuple[Any, R]]], *, reverse: bool = False
    ) -> StoreIterator[tuple[Any, R]]:
        """Return an iterator over the pairs of key and value that `read` yields, in order of keys.

        `read` yields those of one task by the keys' bytes, from the last to the first if `reverse`.
        """
        by_task = self._read_every_task(lambda store: begin_iterator(read(store)))
        found = by_task.values()
        if len(found) < 2:
            return self._create_iterator(self._translate_errors(chain(*found)), by_task)
        serialize = self.spec.key.serialize
        in_order = merge(*found, key=lambda pair: serialize(pair[0]), reverse=reverse)
        return self._create_iterator(self._translate_errors(in_order), by_task)

    def _read_every_task(self, read: Callable[[S], R]) -> dict[str, R]:
        """Call `read` with the store of each task that is assigned here; return results by task."""
        assignments = self._list_assignments()
        by_task = self._read_tasks(read, assignments)
        self._check_no_transition(by_task, assignments)
        return by_task

    def read_with_positions(
        self,
        read: Callable[[S], R],
        partitions: Collection[int],
        attempts_s: float = READ_ATTEMPTS_S,
    ) -> dict[TaskName, tuple[R, Position]]:
        """Call `read` with the store of each task assigned here, and add the commit's position.

        Only tasks of `partitions` are read. What `read` returns is of one commit of the task: it
        iterates to the end of what it reads. Commits may overtake it for `attempts_s`.
        """
        assignments = self._list_assignments()
        by_task = self._read_task_commits(read, assignments, partitions, attempts_s)
        self._check_no_transition(by_task, assignments, partitions)
        return by_task

    def call_tasks(
        self, call: Callable[[str, StateStoreProvider[S]], R], partitions: Collection[int]
    ) -> dict[TaskName, tuple[R, Position]]:
        """Call `call` with the name of each task here, and a provider of that task's store alone.

        Only tasks of `partitions` are called for. Each read of such a provider is of one commit, at
        the position that is added or later.
        """
        assignments = self._list_assignments()
        tasks = [task for task, _ in self._find_stores(partitions)]
        # Before the calls too: a caller that tries again would call for nothing each time.
        self._check_no_transition([task.name for task in tasks], assignments, partitions)
        by_task: dict[TaskName, tuple[R, Position]] = {}
        for task in tasks:
            position = task.committed_positions
            alone = StateStoreProvider[S](self.spec, lambda task=task: (task,))  # type: ignore[misc]
            by_task[task.name] = call(task.name, alone), position
        self._require_tasks(by_task, assignments, partitions)
        self._check_no_transition(by_task, assignments, partitions)
        return by_task

    def _read_tasks(
        self, read: Callable[[S], R], assignments: Sequence[ThreadAssignment]
    ) -> dict[str, R]:
        """Call `read` with the store of each task that runs here; return results by task."""
        by_task = self._read_task_commits(read, assignments)
        return {name: result for name, (result, _) in by_task.items()}

    def _read_task_commits(
        self,
        read: Callable[[S], R],
        assignments: Sequence[ThreadAssignment],
        partitions: Collection[int] | None = None,
        attempts_s: float = READ_ATTEMPTS_S,
    ) -> dict[TaskName, tuple[R, Position]]:
        """Call `read` with the store of each task here, as of one commit; add the positions.

        Raises StoreUnavailable or StoreNotLocal if no task of the store runs here.
        """
        try:
            by_task = {
                task.name: read_at_one_commit(
                    task, partial(_open_and_read, open_view, read), attempts_s
                )
                for task, open_view in self._find_stores(partitions)
            }
        except StoreSerdeError as error:
            raise SerdeError(f"{error}; the serde of its keys is {self.spec.key.name!r}") from error
        except (StateError, StoreUnavailable) as error:
            raise self._create_unavailable_error(str(error)) from error
        self._require_tasks(by_task, assignments, partitions)
        return by_task

    def _require_tasks(
        self,
        tasks_read: Collection[str],
        assignments: Sequence[ThreadAssignment],
        partitions: Collection[int] | None,
    ) -> None:
        """Raise StoreUnavailable or StoreNotLocal if no task of the store was read."""
        if not tasks_read:
            self._require_all_partitions(tasks_read, assignments, partitions)
            raise self._create_unavailable_error("no task of it is on this worker now")

    def _list_assignments(self) -> Sequence[ThreadAssignment]:
        """Return the current assignment of each thread of this worker."""
        return () if self._locations is None else self._locations.list_assignments()

    def _check_no_transition(
        self,
        tasks_read: Collection[str],
        assignments: Sequence[ThreadAssignment],
        partitions: Collection[int] | None = None,
    ) -> None:
        """Raise StoreUnavailable if a task that is to run here was not read."""
        if self._locations is not None and (
            reason := self._locations.find_transition(tasks_read, assignments, partitions)
        ):
            raise self._create_unavailable_error(reason)

    def _require_all_partitions(
        self,
        tasks_read: Collection[str],
        assignments: Sequence[ThreadAssignment],
        partitions: Collection[int] | None = None,
    ) -> None:
        """Raise StoreUnavailable or StoreNotLocal if a partition of the store was not read."""
        self._check_no_transition(tasks_read, assignments, partitions)
        if missing := self._find_missing_partitions(tasks_read):
            raise StoreNotLocal(self.spec.name, missing, has_partitions=bool(tasks_read))

    def _find_missing_partitions(self, tasks_read: Collection[str]) -> frozenset[int]:
        """Return the partitions that were not read. Raises StoreUnavailable."""
        if self._locations is None:
            return frozenset()
        try:
            return self._locations.find_missing_partitions(tasks_read)
        except StoreUnavailable as error:
            raise self._create_unavailable_error(str(error)) from error

    def _create_iterator(self, items: Iterator[R], tasks_read: Collection[str]) -> StoreIterator[R]:
        """Return an iterator that knows which tasks were read."""
        return StoreIterator(
            items,
            parse_partitions(tasks_read),
            lambda: self._find_missing_partitions(tasks_read),
        )

    def _find_stores(
        self, partitions: Collection[int] | None
    ) -> list[tuple[Task, Callable[[], S]]]:
        """Return each task of the partitions, with what opens a view of its store."""
        found = []
        for task in self._list_tasks():
            if partitions is not None and parse_partition(task.name) not in partitions:
                continue
            logged = task.stores.logged.get(self.spec.name)
            if logged is None:
                continue
            if task.state is not TaskState.RUNNING or logged.disk is None:
                raise self._create_unavailable_error(f"task {task.name} is {task.state.name}")
            open_view = cast("Callable[[], S]", partial(open_store, self.spec, logged.disk))
            found.append((task, open_view))
        return found

    def _translate_errors(self, items: Iterator[R]) -> Iterator[R]:
        """Yield the items; an error of a store that was closed since is StoreUnavailable."""
        try:
            yield from items
        except StateError as error:
            raise self._create_unavailable_error(str(error)) from error

    def _create_unavailable_error(self, reason: str) -> StoreUnavailable:
        """Return the error that says why the store can't be read now."""
        return StoreUnavailable(f"store {self.spec.name!r} can't be read now: {reason}")


def _open_and_read(open_view: Callable[[], S], read: Callable[[S], R]) -> R:
    """Call `read` with a view of a store that is opened now, as of the commit that is read.

    A view has the stream time of when it was opened: one of an earlier commit would leave out the
    windows that have been added since.
    """
    return read(open_view())
