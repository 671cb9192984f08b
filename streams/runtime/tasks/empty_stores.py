"""Warn of stores without a changelog that begin empty although offsets are committed.

Nothing fills such a store again. It begins empty, rightly, on a new machine, where it is new in the
topology or was never written to, or when its directory was removed. So does one whose files were
lost or damaged such that nothing of it can be read: RocksDB opens it as an empty one. The committed
offsets don't tell these cases apart, and a refusal would keep each new machine out; so the log
names the store, and where it is. A database that has lost what was in it is found
when it is opened, if the file with its last commit is left (`state.rocksdb.commit_mark`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.graph.nodes import StoreSpec
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.tasks.task import Task

log = logging.getLogger(__name__)


class EmptyStoreWarnings:
    """Warns once of each store on disk that begins empty in a task that has committed offsets.

    `store_path` returns where the store of a name is, given the name of its task's directory.
    """

    def __init__(self, store_path: Callable[[str, str], Path]) -> None:
        self._store_path = store_path
        self._warned: set[tuple[str, str]] = set()

    def warn_of_empty_stores(
        self,
        tasks: Collection[tuple[Task, Collection[StoreSpec]]],
        committed: Mapping[Partition, OffsetAndMetadata],
    ) -> None:
        """Warn of the stores of `tasks`, each with what it declares, that hold no commit.

        `committed` are the offsets of the group. One line names all tasks that a store is empty in.
        """
        begun: dict[str, list[Task]] = {}
        for task, specs in tasks:
            if not _has_progress(task.partitions, committed):
                continue
            for spec in specs:
                is_kept = spec.persistent and not spec.logged
                if not is_kept or (spec.name, task.name) in self._warned:
                    continue
                if task.stores.unlogged[spec.name].read_checkpoint() is None:
                    self._warned.add((spec.name, task.name))
                    begun.setdefault(spec.name, []).append(task)
        for name, empty_in in begun.items():
            log.warning(
                "store %r begins empty in %s: it has no changelog, nothing of it is in %s, and "
                "offsets are committed. That is right on a new machine, for a new store, if its "
                "directory was removed, or if nothing was written to it yet. If not, what it held "
                "is lost: stop the application, and bring a copy of the directory back before it "
                "goes on",
                name,
                ", ".join(f"task {task.name}" for task in empty_in),
                ", ".join(str(self._store_path(task.directory, name)) for task in empty_in),
            )


def _has_progress(
    partitions: Collection[Partition], committed: Mapping[Partition, OffsetAndMetadata]
) -> bool:
    """Return whether a task has committed an offset other than those that a reset has set."""
    held = [committed[p] for p in partitions if p in committed]
    return any(each.offset > 0 and not decode_metadata(each.metadata).is_reset for each in held)
