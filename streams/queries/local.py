"""Reading the stores of a running worker from outside: what is committed, of the tasks it has.

A view may be kept and asked from any thread. It asks all tasks of the store that this worker has
now: a key is looked for in each, ranges go through one task after another (within a task in key
order). What other workers have is not seen. Source: Kafka Streams' interactive queries.

While a task is restored or has just moved there is no answer rather than an old one:
StoreUnavailable; ask again a little later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from state.errors import Refused, StateError
from streams.errors import SerdeError, StoreUnavailable
from streams.runtime.stores import KINDS, Store, open_store
from streams.runtime.task import Task, TaskState
from streams.topology.nodes import StoreSpec

READS = frozenset(
    {
        *("get", "entry", "range", "reverse_range", "prefix_scan", "all", "reverse_all"),
        *("approximate_count", "backward_all", "fetch", "backward_fetch", "fetch_range"),
        *("backward_fetch_range", "fetch_all", "backward_fetch_all", "fetch_session"),
        *("find_sessions", "backward_find_sessions"),
    }
)
"""What a store of any kind can be asked; see state/key_value.py, window.py, session.py and
versioned.py for what each takes and gives."""
_READABLE = (TaskState.RUNNING, TaskState.SUSPENDED)


class LocalStore:
    """A read-only view of the store that `spec` declares, with the methods of its kind in `READS`.

    Each read raises StoreUnavailable where a task of the store is not running here, or goes away
    while an iterator is used; SerdeError for a key that the store's serde refuses, which asking
    again does not mend.
    """

    def __init__(self, spec: StoreSpec, tasks: Callable[[], Iterable[Task]]) -> None:
        self._spec = spec
        self._tasks = tasks

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in READS or not hasattr(KINDS[self._spec.kind], method):
            kind = self._spec.kind.name.lower()
            reads = sorted(name for name in READS if hasattr(KINDS[self._spec.kind], name))
            can = ", ".join(reads) or "nothing"
            raise AttributeError(
                f"{method}: a view of a {kind} store can be asked for {can}; only a processor "
                "writes to it"
            )

        def read(*arguments: Any, **named: Any) -> Any:
            try:
                found = [getattr(view, method)(*arguments, **named) for view in self._views()]
            except Refused as error:
                raise SerdeError(
                    f"{error}; the serde of its keys is {self._spec.key.name!r}"
                ) from error
            except StateError as error:
                raise self._unavailable(str(error)) from error
            if method == "approximate_count":
                return sum(found)
            if found and isinstance(found[0], Iterator):
                return self._guarded(chain(*found))
            return next((value for value in found if value is not None), None)

        return read

    def _views(self) -> list[Store]:
        """The store of each task, as of its last commit: nothing of the running transaction."""
        views = []
        for task in self._tasks():
            logged = task.stores.get(self._spec.name)
            if logged is None:
                continue
            if task.state not in _READABLE or logged.disk is None:
                raise self._unavailable(f"task {task.name} is {task.state.name}")
            views.append(open_store(self._spec, logged.disk))
        if not views:
            raise self._unavailable("no task of it is on this worker now")
        return views

    def _guarded(self, items: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from items
        except StateError as error:
            raise self._unavailable(str(error)) from error

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable(f"store {self._spec.name!r} can't be read now: {why}")
