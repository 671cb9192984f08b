"""Simulate a state directory that several processes share: how far each store is, and its locks."""

from __future__ import annotations

from streams.runtime.tasks.task_offsets import DormantTask
from tests.simulation.runtime.process import Process


class LightDirectory:
    """Holds the positions of stores, which outlive processes, and who has locked each task."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.positions: dict[str, dict[str, int]] = {}
        self._locks: dict[str, Process] = {}

    def try_lock(self, task: str, process: Process) -> bool:
        """Lock a task for a process; return False if another process that lives has it."""
        holder = self._locks.get(task)
        if holder is not None and not holder.is_dead:
            return False
        self._locks[task] = process
        return True

    def release(self, task: str) -> None:
        self._locks.pop(task, None)

    def list_store_names(self, task: str) -> list[str]:
        return list(self.positions.get(task, ()))

    def find_dormant_tasks(self, stores: tuple[str, ...]) -> dict[str, DormantTask]:
        """Return what is there of a version's stores and not locked, as a worker does at start."""
        return {
            task: DormantTask(task, sum(positions.get(store, 0) for store in stores))
            for task, positions in self.positions.items()
            if task not in self._locks or self._locks[task].is_dead
        }
