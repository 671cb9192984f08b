"""Read the figures of RocksDB of a worker's stores when its metrics are read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from state.errors import StateError
from state.linux_calls import list_open_files
from state.store import StoreDisk
from streams.graph.nodes import StoreSpec
from streams.monitoring.definitions.rocksdb import (
    DATABASE_PROPERTIES,
    IN_MEMORY_METRIC,
    name_state_label,
)
from streams.monitoring.rocksdb_statistics import STATISTICS_NAMES, RocksStatisticsRecorder
from streams.runtime.tasks.task import Task


@dataclass(frozen=True, slots=True)
class DatabaseFigures:
    """Reports properties and statistics of RocksDB of one store, by Kafka Streams' names.

    `label` is the label that names a store of its kind.
    """

    thread: str
    task: str
    store: str
    label: str
    values: Mapping[str, float]


class DatabaseFigureReader:
    """Reads the figures of all stores on disk; those that are being closed are left out.

    `find_store_path` returns the directory of a store by task directory and name.
    """

    def __init__(
        self, find_store_path: Callable[[str, str], Path], monotonic_s: Callable[[], float]
    ) -> None:
        self._find_store_path = find_store_path
        self._recorder = RocksStatisticsRecorder(monotonic_s)

    def read_figures(
        self, tasks_by_thread: Mapping[str, Iterable[Task]]
    ) -> Iterator[DatabaseFigures]:
        """Yield the figures of each store; one in memory has the number of its keys alone."""
        seen = set[tuple[str, ...]]()
        open_files: Counter[str] | None = None
        for thread, tasks in tasks_by_thread.items():
            for task in tasks:
                specs = task.store_specs
                for name, logged in list(task.stores.logged.items()):
                    if logged.disk is None:
                        continue
                    with suppress(StateError):
                        spec = specs[name]
                        values = _read_properties(logged.disk, spec)
                        seen.add((task.name, name))
                        if recorded := self._recorder.record_and_compute_figures(
                            (task.name, name), logged.disk.read_statistics(STATISTICS_NAMES)
                        ):
                            values |= recorded
                            open_files = _count_open_files() if open_files is None else open_files
                            path = os.path.realpath(self._find_store_path(task.directory, name))
                            if open_files:
                                values["number-open-files"] = open_files[path]
                        label = name_state_label(spec.kind, persistent=spec.persistent)
                        yield DatabaseFigures(thread, task.name, name, label, values)
        self._recorder.forget_other_stores(seen)


def _read_properties(disk: StoreDisk, spec: StoreSpec) -> dict[str, float]:
    """Return the properties of a store's database, or of one in memory the number of its keys."""
    found = disk.read_properties(DATABASE_PROPERTIES.values())
    values: dict[str, float] = {
        metric: found[property_name]
        for metric, property_name in DATABASE_PROPERTIES.items()
        if property_name in found
    }
    if values:  # what waits in memory to be written counts, too
        values["estimate-num-keys"] = disk.approximate_count()
    elif not spec.persistent:
        values[IN_MEMORY_METRIC] = disk.approximate_count()
    return values


def _count_open_files() -> Counter[str]:
    """Count the open files of this process by directory; empty where the system doesn't tell."""
    return Counter(os.path.dirname(path) for path in list_open_files() or ())
