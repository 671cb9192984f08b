"""Open the copies of global tables, which `streams.runtime.global_tables.tables` fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from state.memory import MemoryDisk
from state.replica import TopicReplica
from state.rocksdb import MemoryBudget, RocksDisk
from state.store import StoreDisk
from streams.graph.nodes import GlobalTableSpec
from streams.runtime.tasks.store_opening import create_codecs


def open_replicas(
    tables: Iterable[GlobalTableSpec], path_of: Callable[[str], Path], memory: MemoryBudget | None
) -> dict[str, TopicReplica]:
    """Open the copies of `tables` as they were left, and return them by store name."""
    replicas = {}
    for table in tables:
        spec = table.store
        disk: StoreDisk = MemoryDisk()
        if spec.persistent:
            path = path_of(spec.name)
            disk = RocksDisk(path, store_name=spec.name, budget=memory, tune=spec.rocksdb)
        replicas[spec.name] = TopicReplica(spec.name, disk, create_codecs(spec))
    return replicas
