"""Query the stores of a driver over all its tasks, as RunningApp does those of a worker."""

from __future__ import annotations

from streams.queries.store_provider import S, StateStoreProvider


class DriverStoreProvider(StateStoreProvider[S]):
    """Reads a store as `RunningApp.store` does, also one without a changelog.

    That is safe here, since no thread writes meanwhile.
    """

    def _open_stores(self) -> list[tuple[str, S]]:
        """Return the store of each task, with the task's name."""
        if self.spec.logged:
            return super()._open_stores()
        name = self.spec.name
        tasks = [task for task in self._list_tasks() if name in task.stores.unlogged]
        return [(task.name, task.stores.unlogged[name]) for task in tasks]  # type: ignore[misc]
