"""Read the stores of a running worker from outside: what its tasks have committed.

A view may be kept and used from any thread. It reads all tasks of the store that this worker has
now: a key is looked up in each, ranges go through one task after another (within a task in key
order). What other workers have is not seen. Source: Kafka Streams' interactive queries.

While a task is restored or has just moved, a read raises StoreUnavailable rather than return old
values; try again a little later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from inspect import Signature, signature
from itertools import chain
from typing import Any

from state.errors import StateError, StoreSerdeError
from streams.errors import SerdeError, StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.runtime.stores import STORE_CLASSES, AnyStore, open_store
from streams.runtime.task import Task, TaskState

READ_METHODS = frozenset(
    {
        *("get", "entry", "range", "reverse_range", "prefix_scan", "all", "reverse_all"),
        *("approximate_count", "backward_all", "fetch", "backward_fetch", "fetch_range"),
        *("backward_fetch_range", "fetch_all", "backward_fetch_all", "fetch_session"),
        *("find_sessions", "backward_find_sessions"),
    }
)
"""The read methods of the stores of all kinds; state/key_value.py, window.py, session.py and
versioned.py describe them."""
_READABLE_STATES = (TaskState.RUNNING, TaskState.SUSPENDED)


@cache
def _bound_signature(method: Callable[..., Any]) -> Signature:
    """Return the signature of a class's method as a caller of an object sees it."""
    declared = signature(method)
    return declared.replace(parameters=list(declared.parameters.values())[1:])


class LocalStore:
    """Reads the store that `spec` declares, by the methods of its kind that `READ_METHODS` names.

    Each read raises StoreUnavailable where a task of the store is not running here, or goes away
    while an iterator is used; SerdeError for a key that the store's serde refuses, where another
    attempt fails as well.
    """

    def __init__(self, spec: StoreSpec, list_tasks: Callable[[], Iterable[Task]]) -> None:
        self._spec = spec
        self._tasks = list_tasks

    def __dir__(self) -> list[str]:
        """Return what a notebook completes: the read methods of the store's kind."""
        return [*super().__dir__(), *self._read_methods()]

    def _read_methods(self) -> list[str]:
        """Return the names of the read methods of the store's kind."""
        store_class = STORE_CLASSES[self._spec.kind]
        return sorted(name for name in READ_METHODS if hasattr(store_class, name))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in READ_METHODS or not hasattr(STORE_CLASSES[self._spec.kind], method):
            kind = self._spec.kind.name.lower()
            can = ", ".join(self._read_methods()) or "nothing"
            raise AttributeError(
                f"{method}: a view of a {kind} store can be asked for {can}; only a processor "
                "writes to it"
            )

        store_method = getattr(STORE_CLASSES[self._spec.kind], method)

        @wraps(store_method)
        def read_all_tasks(*arguments: Any, **keywords: Any) -> Any:
            try:
                found = [
                    getattr(view, method)(*arguments, **keywords) for view in self._open_views()
                ]
            except StoreSerdeError as error:
                raise SerdeError(
                    f"{error}; the serde of its keys is {self._spec.key.name!r}"
                ) from error
            except StateError as error:
                raise self._unavailable_error(str(error)) from error
            if method == "approximate_count":
                return sum(found)
            if found and isinstance(found[0], Iterator):
                return self._translate_errors(chain(*found))
            return next((value for value in found if value is not None), None)

        read_all_tasks.__signature__ = _bound_signature(store_method)  # type: ignore[attr-defined]
        return read_all_tasks

    def _open_views(self) -> list[AnyStore]:
        """Return a view of each task's store as of its last commit."""
        views = []
        for task in self._tasks():
            logged = task.stores.get(self._spec.name)
            if logged is None:
                continue
            if task.state not in _READABLE_STATES or logged.disk is None:
                raise self._unavailable_error(f"task {task.name} is {task.state.name}")
            views.append(open_store(self._spec, logged.disk))
        if not views:
            raise self._unavailable_error("no task of it is on this worker now")
        return views

    def _translate_errors(self, items: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from items
        except StateError as error:
            raise self._unavailable_error(str(error)) from error

    def _unavailable_error(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(f"store {self._spec.name!r} can't be read now: {reason}")
