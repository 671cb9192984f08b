"""Create tasks: lock the directory, open the stores, and read the committed offsets.

The offsets of a task that was rolled back are read again. The order matters (decision 10): first
the task's producer has fenced its predecessor, then the offsets are read, stable, then (`restorer`)
the changelogs' high watermarks, then the changelogs up to them. Nothing here waits: what is not to
be had yet is asked for again, and other tasks run meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from state.cache import ObjectCache
from state.directory import StateDirectory
from state.errors import Corrupt, DirectoryLocked
from state.memory import MemoryDisk
from state.rocksdb import MemoryBudget, RocksDisk
from state.store import Disk, StateStore
from state.subtopologies import Contents
from streams.errors import OutcomeUnknown, TopologyRefused
from streams.membership.connection import ConnectionLost
from streams.positions import Committed, CommittedOffsets, Partition
from streams.runtime.assignment import task_id
from streams.runtime.failures import FAILING, Failures
from streams.runtime.host import Host
from streams.runtime.leftover_stores import warn_of_leftovers
from streams.runtime.logged import LoggedStore
from streams.runtime.offsets import METADATA_BYTES_MAX, decode_metadata
from streams.runtime.queues import NO_TIME
from streams.runtime.resetting import Resetting
from streams.runtime.stores import open_store
from streams.runtime.task import Task
from streams.topology.build import Topology
from streams.topology.nodes import StoreSpec, Watch

log = logging.getLogger(__name__)

_PENDING_RETRY_S = 0.02
_PENDING_REPORT_S = 2.0


class Opener:
    """Creates the tasks of one application for one thread.

    `memory` bounds what RocksDB takes for the stores of the process; without one each store has its
    own. The thread's stores share `cache`. `on_part_written` is called in the middle of a store's
    write. `observer` is that of a test driver which runs the tasks by hand. `metadata_bytes_max` is
    the brokers' limit for the metadata of an offset. Kafka Streams' counterpart is
    ActiveTaskCreator.
    """

    def __init__(
        self,
        topology: Topology,
        directory: StateDirectory,
        resetting: Resetting,
        host: Host,
        *,
        committed_offsets: Callable[[list[Partition]], CommittedOffsets],
        failures: Failures = FAILING,
        memory: MemoryBudget | None = None,
        cache: ObjectCache | None = None,
        storing: Callable[[], object] | None = None,
        global_views: Mapping[str, Callable[[], Any]] | None = None,
        watch: Watch | None = None,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
    ) -> None:
        self._topology = topology
        self._directory = directory
        self._resetting = resetting
        self._host = host
        self._committed_offsets = committed_offsets
        self._failures = failures
        self._memory = memory
        self._cache = cache
        self._storing = storing
        self._global_views = global_views
        self._watch = watch
        self._metadata_bytes_max = metadata_bytes_max
        self._numbers: dict[int, int] | None = None
        self._told: set[str] = set()
        self._waiting: set[str] = set()
        self._pending: set[Partition] = set()
        self._ask_at = self._report_at = 0.0

    def task_of(self, topic: str, partition: int) -> str:
        """Return the name of a partition's task; raise TopologyRefused if no task reads it."""
        for subtopology in self._topology.subtopologies:
            if topic in subtopology.sources:
                return task_id(subtopology, partition)
        raise TopologyRefused(
            f"the group's leader has assigned topic {topic!r}, which this topology does not read: "
            "end all workers of the other version before, or choose another application id"
        )

    def create(self, name: str, partitions: list[Partition]) -> Task | None:
        """Lock a task's directory, open its stores and return the task.

        Returns None while another process still holds the directory.
        """
        number, partition = map(int, name.split("_"))
        subtopology = self._topology.subtopologies[number]
        directory = f"{self._directory_number(number)}_{partition}"
        with ExitStack() as opened:  # closed again unless all of it could be opened
            try:
                lock = self._directory.lock_task(directory)
                opened.callback(lock.release)
                stores: dict[str, LoggedStore] = {}
                unlogged: dict[str, StateStore] = {}
                self._warn_of_leftovers(directory, subtopology.stores)
                for spec in subtopology.stores:
                    store, disk = self._store(directory, spec)
                    opened.callback(store.close)
                    changelog = Partition(self._topology.changelog(spec.name), partition)
                    from_source = spec.source_topic is not None
                    if not spec.logged or (from_source and changelog not in partitions):
                        unlogged[spec.name] = store
                        continue
                    stores[spec.name] = LoggedStore(
                        store, changelog, "", position=0, disk=disk, from_source=from_source
                    )
            except DirectoryLocked as error:
                self._waits(name, error)
                return None
            opened.pop_all()
        self._waiting.discard(name)
        return Task(
            name,
            subtopology,
            partitions=partitions,
            stores=stores,
            unlogged=unlogged,
            lock=lock,
            directory=directory,
            failures=self._failures,
            global_views=self._global_views,
            watch=self._watch,
            metadata_bytes_max=self._metadata_bytes_max,
        )

    def _directory_number(self, subtopology: int) -> int:
        """Return the number that the directories of a sub-topology's tasks begin with."""
        if self._numbers is None:
            self._numbers = self._directory.number_subtopologies(
                {
                    sub.number: Contents(
                        frozenset(sub.sources), frozenset(spec.name for spec in sub.stores)
                    )
                    for sub in self._topology.subtopologies
                }
            )
        return self._numbers[subtopology]

    def _warn_of_leftovers(self, directory: str, specs: Iterable[StoreSpec]) -> None:
        """Warn of stores without a changelog that begin empty beside directories of unknown stores.

        For stores with a changelog `StreamsPartitionAssignor` does this when it creates the
        changelog.
        """
        there = self._directory.stores_in(directory)
        begun = {spec.name for spec in specs if spec.persistent and not spec.logged} - there
        left = there.difference(s.name for sub in self._topology.subtopologies for s in sub.stores)
        if begun - self._told and left:
            self._told |= begun
            path = self._directory.store_path(directory, "")
            log.warning(
                "%s", warn_of_leftovers(begun, [str(path / store) for store in sorted(left)])
            )

    def locate(self, tasks: Collection[Task]) -> list[Task]:
        """Start restoring the CREATED tasks whose committed offsets are stable, and return them.

        An offset is stable when no open transaction may change it any more. The tasks' producers
        must have fenced their predecessors. Raises OutcomeUnknown where no coordinator answers.
        """
        if not tasks or self._host.monotonic_s() < self._ask_at:
            return []
        try:
            committed = self._committed_offsets([p for task in tasks for p in task.partitions])
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error
        self._say_pending(committed.pending)
        stable = [task for task in tasks if self._pending.isdisjoint(task.partitions)]
        fresh = [p for task in stable for p in task.partitions if p not in committed.offsets]
        positions = {p: each.offset for p, each in committed.offsets.items()}
        positions |= self._resetting.begin(fresh)
        for task in stable:
            mine = {p: committed.offsets[p] for p in task.partitions if p in committed.offsets}
            metadata = {p: decode_metadata(held.metadata) for p, held in mine.items()}
            times = {p: each.time_ms for p, each in metadata.items()}
            steps = {
                step: max((each.time_of(step) for each in metadata.values()), default=NO_TIME)
                for step in task.timed_steps
            }
            begin = {p: positions[p] for p in task.partitions}
            for logged in task.stores.values():
                if logged.from_source:
                    held = mine.get(logged.changelog)
                    logged.committed = 0 if held is None else held.offset
            number = max((each.commit_number or 0 for each in metadata.values()), default=0)
            task.restore(begin, _required(task, mine), times, steps, number)
        return stable

    def _say_pending(self, pending: Iterable[Partition]) -> None:
        """Note the partitions whose offsets are not stable yet, and log them at an interval.

        An open transaction ends at the latest when the coordinator times it out.
        """
        now_s = self._host.monotonic_s()
        if not self._pending:
            self._report_at = now_s + _PENDING_REPORT_S
        self._pending = set(pending)
        if not self._pending:
            return
        self._ask_at = now_s + _PENDING_RETRY_S
        if now_s > self._report_at:
            self._report_at = now_s + _PENDING_REPORT_S
            waiting = ", ".join(map(str, sorted(self._pending)))
            log.info("waiting for an open transaction to end on %s", waiting)

    def _waits(self, name: str, error: DirectoryLocked) -> None:
        """Log once that a task waits for its directory."""
        if name not in self._waiting:
            self._waiting.add(name)
            log.warning("task %s waits: %s", name, error)

    def _store(self, directory: str, spec: StoreSpec) -> tuple[StateStore, Disk]:
        """Open the store that `spec` declares, and clear it if it is corrupt."""
        if not spec.persistent:
            memory = MemoryDisk()
            return open_store(spec, memory, cache=self._cache), memory
        disk = RocksDisk(
            self._directory.store_path(directory, spec.name),
            store=spec.name,
            budget=self._memory,
            tune=spec.rocksdb,
            wait=self._host.event().wait,
            part_written=self._storing,
        )
        try:
            return open_store(spec, disk, cache=self._cache), disk
        except Corrupt as damage:
            outcome = (
                "rebuilt from its changelog" if spec.logged else "emptied: it has no changelog"
            )
            log.warning("directory %s: %s. It is %s, alone", directory, damage, outcome)
            disk.clear()
            return open_store(spec, disk, cache=self._cache), disk


def _required(task: Task, committed: Mapping[Partition, Committed]) -> dict[Partition, int]:
    """Return the changelog positions that the metadata of the committed offsets name."""
    required: dict[Partition, int] = {}
    for held in committed.values():
        metadata = decode_metadata(held.metadata)
        for store, logged in task.stores.items():
            if logged.from_source:
                continue
            position = metadata.position_of(store) or 0
            required[logged.changelog] = max(position, required.get(logged.changelog, 0))
    return required
