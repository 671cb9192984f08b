"""Query the stores of a driver over all its tasks, as RunningApp does those of a worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streams.queries.store_provider import S, StateStoreProvider
from streams.runtime.tasks.task import Task


class DriverStoreProvider(StateStoreProvider[S]):
    """Reads a store as `RunningApp.store` does, also one without a changelog.

    That is safe here, since no thread writes meanwhile.
    """

    def _find_stores(self, partitions: object = None) -> list[tuple[Task, Callable[[], S]]]:
        """Return each task of the store, with what returns its store."""
        if self.spec.logged:
            return super()._find_stores(None)
        name = self.spec.name
        tasks = [task for task in self._list_tasks() if name in task.stores.unlogged]
        return [(task, partial(task.stores.unlogged.__getitem__, name)) for task in tasks]  # type: ignore[misc]
