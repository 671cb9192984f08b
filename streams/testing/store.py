"""What the stores of a driver hold, over all its tasks: the product's own view of a worker's."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streams.queries.local import LocalStore
from streams.runtime.stores import Store
from streams.runtime.task import Task
from streams.topology.nodes import StoreSpec


class DriverStore(LocalStore):
    """As `running.store`, and of a store without a changelog too: nobody writes meanwhile."""

    def __init__(self, spec: StoreSpec, tasks: Callable[[], Iterable[Task]]) -> None:
        super().__init__(spec, tasks)
        self._unlogged = not spec.logged

    def _views(self) -> list[Store]:
        if not self._unlogged:
            return super()._views()
        name = self._spec.name
        return [task.unlogged[name] for task in self._tasks() if name in task.unlogged]  # type: ignore[misc]
