"""Opening tasks: own the directory, read the committed offsets, catch the stores up.

A task that was rolled back goes through the last two again. The order matters (decision 10): first
the task's producer has fenced its predecessor, then the offsets are read, stable, then the
changelogs' high watermarks, then the changelogs up to them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack

from state.directory import StateDirectory
from state.errors import DirectoryLocked
from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store import StateStore
from streams.config import StreamsConfig
from streams.errors import OutcomeUnknown, TaskMigrated
from streams.membership.connection import ConnectionLost
from streams.positions import Committed, CommittedOffsets, Partition
from streams.runtime.assignment import task_id
from streams.runtime.clients import Admin, DataConsumer
from streams.runtime.offsets import decode_metadata
from streams.runtime.restore import restore
from streams.runtime.stores import open_store
from streams.runtime.task import LoggedStore, Task
from streams.topology.build import Topology
from streams.topology.nodes import StoreSpec

log = logging.getLogger(__name__)

_PENDING_WAIT_S = 0.02
_PENDING_REPORT_S = 2.0


class Opener:
    """Opens tasks of one application for one thread. `wait` takes seconds, and ends at a stop."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        directory: StateDirectory,
        admin: Admin,
        restore_consumer: DataConsumer,
        *,
        committed_offsets: Callable[[list[Partition]], CommittedOffsets],
        wait: Callable[[float], object],
    ) -> None:
        self._topology = topology
        self._config = config
        self._directory = directory
        self._admin = admin
        self._consumer = restore_consumer
        self._committed_offsets = committed_offsets
        self._wait = wait
        self._waiting: set[str] = set()

    def task_of(self, topic: str, partition: int) -> str:
        """The task that reads a partition."""
        for subtopology in self._topology.subtopologies:
            if topic in subtopology.sources:
                return task_id(subtopology, partition)
        raise TaskMigrated(f"the group's leader knows a source topic {topic!r} that we don't")

    def create(self, name: str, partitions: list[Partition]) -> Task | None:
        """Own a task's directory and databases. None while another process still has them."""
        number, partition = map(int, name.split("_"))
        subtopology = self._topology.subtopologies[number]
        changelogs = [self._topology.changelog(spec.name) for spec in subtopology.stores]
        ids = self._admin.topic_ids(changelogs)
        with ExitStack() as opened:  # closed again unless all of it is ours
            try:
                lock = self._directory.lock_task(name)
                opened.callback(lock.release)
                stores = {}
                for spec, topic in zip(subtopology.stores, changelogs, strict=True):
                    store = self._store(name, spec)
                    opened.callback(store.close)
                    changelog = Partition(topic, partition)
                    stores[spec.name] = LoggedStore(store, changelog, ids[topic], position=0)
            except DirectoryLocked as error:
                self._waits(name, error)
                return None
            opened.pop_all()
        self._waiting.discard(name)
        return Task(name, subtopology, partitions=partitions, stores=stores, lock=lock)

    def locate(self, tasks: Collection[Task], interrupted: Callable[[], bool]) -> bool:
        """Read the committed offsets of CREATED tasks back, which makes them RESTORING. False if
        interrupted: they are as they were. Their producer must have fenced its predecessor."""
        partitions = [p for task in tasks for p in task.partitions]
        committed = self._stable_offsets(partitions, interrupted)
        if committed is None:
            return False
        positions = self._positions(partitions, committed)
        for task in tasks:
            mine = {p: committed[p] for p in task.partitions if p in committed}
            task.restore({p: positions[p] for p in task.partitions}, _required(task, mine))
        return True

    def catch_up(self, tasks: Collection[Task], interrupted: Callable[[], bool]) -> int | None:
        """Bring the stores of RESTORING tasks to what was committed. How many records that took;
        None if interrupted: what they have got so far they keep."""
        required: dict[Partition, int] = {}
        for task in tasks:
            required |= task.required
        return restore(
            [logged for task in tasks for logged in task.stores.values()],
            self._consumer,
            self._admin,
            required=required,
            interrupted=interrupted,
        )

    def _waits(self, name: str, error: DirectoryLocked) -> None:
        if name not in self._waiting:
            self._waiting.add(name)
            log.warning("task %s waits: %s", name, error)

    def _store(self, task: str, spec: StoreSpec) -> StateStore:
        path = self._directory.store_path(task, spec.name)
        return open_store(spec, RocksDisk(path) if spec.persistent else MemoryDisk())

    def _stable_offsets(
        self, partitions: list[Partition], interrupted: Callable[[], bool]
    ) -> dict[Partition, Committed] | None:
        """The committed offsets once no open transaction may change them; None if interrupted.

        An open transaction ends at the latest when the coordinator times it out.
        """
        if not partitions:
            return {}
        report_at = time.monotonic() + _PENDING_REPORT_S
        while not interrupted():
            try:
                found = self._committed_offsets(partitions)
            except ConnectionLost as error:
                raise OutcomeUnknown(f"read the committed offsets: {error}") from error
            if not found.pending:
                return found.offsets
            if time.monotonic() > report_at:
                report_at = time.monotonic() + _PENDING_REPORT_S
                waiting = ", ".join(map(str, found.pending))
                log.info("waiting for an open transaction to end on %s", waiting)
            self._wait(_PENDING_WAIT_S)
        return None

    def _positions(
        self, partitions: list[Partition], committed: Mapping[Partition, Committed]
    ) -> dict[Partition, int]:
        fresh = [p for p in partitions if p not in committed]
        earliest = self._config.auto_offset_reset == "earliest"
        # A repartition topic is ours: its records are never skipped.
        internal = self._topology.repartition_topics
        first = [p for p in fresh if earliest or p.topic in internal]
        last = [p for p in fresh if p not in first]
        positions = {p: each.offset for p, each in committed.items()}
        return positions | self._admin.earliest(first) | self._admin.latest(last)


def _required(task: Task, committed: Mapping[Partition, Committed]) -> dict[Partition, int]:
    """The changelog positions that the committed offsets name."""
    required: dict[Partition, int] = {}
    for held in committed.values():
        metadata = decode_metadata(held.metadata)
        for store, logged in task.stores.items():
            position = metadata.position_of(store) or 0
            required[logged.changelog] = max(position, required.get(logged.changelog, 0))
    return required
