"""Open the disks of a task's stores, with what all stores of a thread have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from state.memory import MemoryDisk
from state.rocksdb import MemoryBudget, RocksDisk
from state.store import StoreDisk
from state.write_behind import WriteBehindDisk
from streams.common.host import Host
from streams.graph.nodes import StoreSpec
from streams.runtime.tasks.store_opening import is_written_behind


@dataclass(frozen=True, slots=True)
class StoreDiskOpener:
    """Opens disks that share the budget `memory`.

    `on_part_written` is called between the batches of one write. With `collect_statistics` RocksDB
    counts what it does.
    """

    host: Host
    memory: MemoryBudget | None = None
    on_part_written: Callable[[], object] | None = None
    collect_statistics: bool = False

    def open_disk(self, spec: StoreSpec, path: Path) -> StoreDisk:
        """Open the disk of the store that `spec` declares; `path` is its directory, if it has one.

        Raises: DirectoryLocked, StateError.
        """
        if not spec.persistent:
            return MemoryDisk()
        disk = RocksDisk(
            path,
            store_name=spec.name,
            budget=self.memory,
            tune=spec.rocksdb,
            wait=self.host.create_event().wait,
            on_batch_written=self.on_part_written,
            collect_statistics=self.collect_statistics,
        )
        if is_written_behind(spec):
            return WriteBehindDisk(disk, monotonic_s=self.host.monotonic_s)
        return disk
