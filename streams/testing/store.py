"""Query the stores of a driver over all its tasks, as RunningApp does those of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streams.graph.nodes import StoreSpec
from streams.queries.local import LocalStore
from streams.runtime.stores import AnyStore
from streams.runtime.task import Task


class DriverStore(LocalStore):
    """Reads a store as `RunningApp.store` does, also one without a changelog.

    That is safe here, since no thread writes meanwhile.
    """

    def __init__(self, spec: StoreSpec, tasks: Callable[[], Iterable[Task]]) -> None:
        super().__init__(spec, tasks)
        self._unlogged = not spec.logged

    def _open_views(self) -> list[AnyStore]:
        """Return the store of each task."""
        if not self._unlogged:
            return super()._open_views()
        name = self._spec.name
        tasks = [task for task in self._tasks() if name in task.unlogged_stores]
        return [task.unlogged_stores[name] for task in tasks]  # type: ignore[misc]
