"""Provide what a view reads: a store as each task of this worker has committed it last.

While a task is restored or has just moved, a read raises StoreUnavailable rather than return old
values; try again a little later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from state.errors import StateError, StoreSerdeError
from streams.errors import SerdeError, StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.runtime.stores import AnyStore, open_store
from streams.runtime.task import Task, TaskState

S = TypeVar("S", bound=AnyStore)
R = TypeVar("R")


class StateStoreProvider(Generic[S]):
    """Reads the store that `spec` declares in all tasks of `list_tasks` (StateStoreProvider).

    Each read raises StoreUnavailable where a task of the store is not running here, or goes away
    while an iterator is used; SerdeError for a key that the store's serde refuses, where another
    attempt fails as well.
    """

    def __init__(self, spec: StoreSpec, list_tasks: Callable[[], Iterable[Task]]) -> None:
        self.spec = spec
        self._list_tasks = list_tasks

    def read_all_tasks(self, read: Callable[[S], R]) -> list[R]:
        """Return what `read` returns for the store of each task."""
        try:
            return [read(store) for store in self._open_stores()]
        except StoreSerdeError as error:
            raise SerdeError(f"{error}; the serde of its keys is {self.spec.key.name!r}") from error
        except StateError as error:
            raise self._unavailable_error(str(error)) from error

    def find_value(self, read: Callable[[S], R | None]) -> R | None:
        """Return what `read` finds in the task that has the key, or None."""
        return next((found for found in self.read_all_tasks(read) if found is not None), None)

    def iterate_tasks(self, read: Callable[[S], Iterator[R]]) -> Iterator[R]:
        """Return an iterator over what `read` yields, one task after another."""
        return self._translate_errors(chain(*self.read_all_tasks(read)))

    def merge_tasks(
        self, read: Callable[[S], Iterator[tuple[Any, R]]], *, reverse: bool = False
    ) -> Iterator[tuple[Any, R]]:
        """Return an iterator over the pairs of key and value that `read` yields, in order of keys.

        `read` yields those of one task by the keys' bytes, from the last to the first if `reverse`.
        """
        found = self.read_all_tasks(read)
        if len(found) < 2:
            return self._translate_errors(chain(*found))
        serialize = self.spec.key.serialize
        in_order = merge(*found, key=lambda pair: serialize(pair[0]), reverse=reverse)
        return self._translate_errors(in_order)

    def _open_stores(self) -> list[S]:
        """Return a view of each task's store as of its last commit."""
        stores = []
        for task in self._list_tasks():
            logged = task.stores.logged.get(self.spec.name)
            if logged is None:
                continue
            if task.state is not TaskState.RUNNING or logged.disk is None:
                raise self._unavailable_error(f"task {task.name} is {task.state.name}")
            stores.append(cast("S", open_store(self.spec, logged.disk)))
        if not stores:
            raise self._unavailable_error("no task of it is on this worker now")
        return stores

    def _translate_errors(self, items: Iterator[R]) -> Iterator[R]:
        """Yield the items; an error of a store that was closed since is StoreUnavailable."""
        try:
            yield from items
        except StateError as error:
            raise self._unavailable_error(str(error)) from error

    def _unavailable_error(self, reason: str) -> StoreUnavailable:
        """Return the error that says why the store can't be read now."""
        return StoreUnavailable(f"store {self.spec.name!r} can't be read now: {reason}")
