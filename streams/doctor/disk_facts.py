"""Read the checkpoints of stores on this machine's disk that no worker uses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from state.directory import is_task_directory
from state.errors import DirectoryLocked, StateError
from state.locks import exclude_owner
from state.rocksdb import read_stored_checkpoint
from streams.commands.state_command import find_stores_on_disk


class StoreWithoutWorker(NamedTuple):
    """Holds the task and name of a store, the first offset that it lacks, and its last write."""

    task: str
    store: str
    position: int
    written_ms: int

    @property
    def partition_number(self) -> int:
        return int(self.task.rpartition("_")[2])


def read_stores_without_worker(path: Path) -> list[StoreWithoutWorker]:
    """Return the stores of tasks with a checkpoint; those that a worker uses are left out."""
    found = []
    for store in find_stores_on_disk(path) if path.is_dir() else ():
        if not is_task_directory(store.owner):
            continue
        with suppress(DirectoryLocked, StateError), exclude_owner(store.lock):
            checkpoint = read_stored_checkpoint(store.path)
            if checkpoint is not None and checkpoint.position is not None:
                found.append(
                    StoreWithoutWorker(
                        store.owner, store.store, checkpoint.position, checkpoint.written_ms or 0
                    )
                )
    return found
