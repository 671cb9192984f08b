"""Measure the stores of a worker when its metrics are read: entries and bytes on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from state.errors import StateError
from streams.runtime.tasks.task import Task


@dataclass(frozen=True, slots=True)
class StoreSize:
    """Reports the size of one store of an active task; `disk_bytes` is 0 for one in memory."""

    task: str
    store: str
    entries: int
    disk_bytes: int


def measure_store_sizes(
    tasks: Iterable[Task], find_store_path: Callable[[str, str], Path]
) -> Iterator[StoreSize]:
    """Yield the size of each store that has a changelog; one that is being closed is left out.

    `find_store_path` returns the directory of a store by task directory and name.
    """
    for task in tasks:
        for name, logged in list(task.stores.logged.items()):
            disk = logged.disk
            if disk is None:
                continue
            with suppress(StateError):
                path = find_store_path(task.directory, name)
                yield StoreSize(
                    task.name, name, disk.approximate_count(), _measure_directory_bytes(path)
                )


def _measure_directory_bytes(path: Path) -> int:
    """Return the bytes of the files in a directory, 0 if there is none."""
    total = 0
    with suppress(FileNotFoundError):
        for entry in os.scandir(path):
            with suppress(FileNotFoundError):  # RocksDB removes files as it compacts
                total += entry.stat().st_size
    return total
