"""Create tasks: lock the directory, open the stores, and read the committed offsets.

The offsets of a task that was rolled back are read again. The order matters (decision 10): first
the task's producer has fenced its predecessor, then the offsets are read, stable, then (`restorer`)
the changelogs' high watermarks, then the changelogs up to them. Nothing here waits: what is not to
be had yet is asked for again, and other tasks run meanwhile.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack

from state.cache import ObjectCache
from state.directory import StateDirectory
from state.errors import DirectoryLocked
from state.replica import TopicReplica
from state.rocksdb import MemoryBudget, RocksDisk
from state.store import StateStore, StoreDisk
from streams.common.host import Host
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, TopologyRefused
from streams.graph.internal_context import TaskObserver
from streams.graph.nodes import StoreSpec
from streams.membership.connection import ConnectionLost
from streams.runtime.assigning.internal_topics import find_changelog_expiry
from streams.runtime.assigning.leftover_stores import format_leftover_warning
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.missed_deletions import MissedDeletionCheck
from streams.runtime.offsets.offset_metadata import METADATA_BYTES_MAX, decode_metadata
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.offsets.preset_offsets import PRESET_ENTRY
from streams.runtime.offsets.repeated_writes import RepeatedWriteCheck, UntrustedInputs
from streams.runtime.offsets.topic_ids import find_offsets_of_former_topics
from streams.runtime.tasks.committed_inputs import find_missing_offsets, is_overtaken
from streams.runtime.tasks.empty_stores import EmptyStoreWarnings
from streams.runtime.tasks.failures import FAIL_ON_ANY_ERROR, FailureHandler
from streams.runtime.tasks.metered_stores import StoreMeter, meter_store
from streams.runtime.tasks.offset_proof import OffsetProof, prove_offsets
from streams.runtime.tasks.restore_start import start_restoring_task
from streams.runtime.tasks.store_disks import StoreDiskOpener
from streams.runtime.tasks.store_opening import open_store, with_read_back_check
from streams.runtime.tasks.table_rows import create_row_encoder
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_directories import assign_directory_numbers
from streams.runtime.tasks.task_lifetimes import TaskLifetimes
from streams.runtime.tasks.task_stores import TaskStores
from streams.runtime.tasks.unlogged_commits import KeptStore, to_kept_store
from streams.runtime.tasks.unlogged_damage import refuse_damaged_store
from streams.topology.build import Topology, format_task_id
from streams.topology.resolve import resolve_subtopology_of_task

log = logging.getLogger(__name__)

_UNSTABLE_RETRY_S = 0.02
_UNSTABLE_LOG_INTERVAL_S = 2.0
_LOCK_LOG_DELAY_S = 1.0


class TaskCreator:
    """Creates tasks for one thread, and starts to restore them from their committed offsets.

    `memory` bounds what RocksDB takes for the stores of the process; without one each store has its
    own. The thread's stores share `cache`. `on_part_written` is called in a store's write.
    `observer` is that of a test driver; with one, each value of a store is read back when it is
    serialised. `metadata_bytes_max` bounds an offset's metadata. Like Kafka's ActiveTaskCreator.
    """

    def __init__(
        self,
        topology: Topology,
        directory: StateDirectory,
        offset_resetter: OffsetResetter,
        host: Host,
        *,
        committed_offsets: Callable[[list[Partition] | None], CommittedOffsets],
        is_transactional: bool = True,
        failures: FailureHandler = FAIL_ON_ANY_ERROR,
        memory: MemoryBudget | None = None,
        cache: ObjectCache | None = None,
        on_part_written: Callable[[], object] | None = None,
        global_replicas: Mapping[str, TopicReplica] | None = None,
        observer: TaskObserver | None = None,
        metadata_bytes_max: int = METADATA_BYTES_MAX,
        repeated_writes: RepeatedWriteCheck | None = None,
        missed_deletions: MissedDeletionCheck | None = None,
        collect_statistics: bool = False,
    ) -> None:
        self._topology = topology
        self._directory = directory
        self._offset_resetter = offset_resetter
        self._host = host
        self._committed_offsets = committed_offsets
        self._is_transactional = is_transactional
        self._failures = failures
        self._cache = cache
        self.measures_details = collect_statistics
        self.lifetimes = TaskLifetimes(host.monotonic_s)
        self._disks = StoreDiskOpener(host, memory, on_part_written, collect_statistics)
        self._global_replicas = global_replicas
        self._observer = observer
        self._metadata_bytes_max = metadata_bytes_max
        self._repeated_writes = repeated_writes
        self._missed_deletions = missed_deletions
        self._directory_numbers: dict[int, int] | None = None
        self._warned_stores: set[str] = set()
        self._empty_store_warnings = EmptyStoreWarnings(directory.build_store_path)
        self._locked_since_s: dict[str, float] = {}
        self._unstable_partitions: set[Partition] = set()
        self._next_fetch_at_s = self._next_log_at_s = 0.0

    def task_name_of_partition(self, topic: str, partition: int) -> str:
        """Return the name of a partition's task; raise TopologyRefused if no task reads it."""
        for subtopology in self._topology.subtopologies:
            if topic in subtopology.sources or any(
                p.matches_topic(topic) for p in subtopology.patterns
            ):
                return format_task_id(subtopology, partition)
        raise TopologyRefused(
            f"the group's leader has assigned topic {topic!r}, which this topology does not read: "
            "end all workers of the other version before, or choose another application id"
        )

    def has_logged_stores(self, task_name: str) -> bool:
        """Return whether a task has a store that follows a topic."""
        return any(spec.logged for spec in self._list_stores(task_name))

    def _list_stores(self, task_name: str) -> Collection[StoreSpec]:
        """Return the declarations of the stores of a task."""
        return self._topology.subtopologies[int(task_name.partition("_")[0])].stores

    def create_task(self, task_name: str, partitions: list[Partition]) -> Task | None:
        """Lock a task's directory, open its stores and return the task, or None if it is locked.

        Another process that ends may still hold it.
        """
        number, partition = map(int, task_name.split("_"))
        declared = self._topology.subtopologies[number]
        subtopology = resolve_subtopology_of_task(declared, {p.topic for p in partitions})
        directory = f"{self._directory_number(number)}_{partition}"
        with ExitStack() as opened:  # closed again unless all of it could be opened
            try:
                lock = self._directory.lock_task(directory)
                opened.callback(lock.release)
                stores: dict[str, LoggedStore] = {}
                unlogged: dict[str, StateStore] = {}
                kept: dict[str, KeptStore] = {}
                meters: dict[str, StoreMeter] = {}
                self._warn_of_leftovers(directory, subtopology.stores)
                for spec in subtopology.stores:
                    store, disk = self._open_store(directory, spec)
                    opened.callback(store.close)
                    meters[spec.name] = meter_store(
                        store, spec.kind, self._host, details=self.measures_details
                    )
                    changelog = Partition(self._topology.restore_topic_of(spec.name), partition)
                    from_source = spec.source_topic is not None
                    if not spec.logged or (from_source and changelog not in partitions):
                        unlogged[spec.name] = store
                        if isinstance(disk, RocksDisk):
                            kept[spec.name] = to_kept_store(self._directory, directory, store, disk)
                        continue
                    stores[spec.name] = LoggedStore(
                        store,
                        changelog,
                        "",
                        changelog_position=0,
                        disk=disk,
                        is_source_topic=from_source,
                        encode_row=create_row_encoder(
                            spec, subtopology.sources, task_name, self._failures
                        ),
                        expiry=find_changelog_expiry(spec),
                    )
            except DirectoryLocked as error:
                self._log_locked_directory(task_name, error)
                return None
            opened.pop_all()
        self._locked_since_s.pop(task_name, None)
        self.lifetimes.note_created()
        return Task(
            task_name,
            subtopology,
            partitions=partitions,
            stores=TaskStores(task_name, stores, unlogged, kept, meters),
            lock=lock,
            directory=directory,
            failures=self._failures,
            global_replicas=self._global_replicas,
            observer=self._observer,
            metadata_bytes_max=self._metadata_bytes_max,
            is_transactional=self._is_transactional,
        )

    def _directory_number(self, subtopology: int) -> int:
        """Return the number with which the names of a sub-topology's task directories begin."""
        if self._directory_numbers is None:
            self._directory_numbers = assign_directory_numbers(self._topology, self._directory)
        return self._directory_numbers[subtopology]

    def _warn_of_leftovers(self, directory: str, specs: Iterable[StoreSpec]) -> None:
        """Warn of stores without a changelog that begin empty beside directories of unknown stores.

        For stores with a changelog `StreamsPartitionAssignor` does this when it creates the
        changelog.
        """
        there = self._directory.list_store_names(directory)
        begun = {spec.name for spec in specs if spec.persistent and not spec.logged} - there
        left = there.difference(s.name for sub in self._topology.subtopologies for s in sub.stores)
        if begun - self._warned_stores and left:
            self._warned_stores |= begun
            path = self._directory.build_store_path(directory, "")
            log.warning(
                "%s", format_leftover_warning(begun, [str(path / store) for store in sorted(left)])
            )

    def start_restoring_from_committed(self, tasks: Collection[Task]) -> list[Task]:
        """Start restoring the CREATED tasks whose offsets no open transaction may still change.

        Returns these tasks. The tasks' producers must have fenced their predecessors. Raises
        OutcomeUnknown where no coordinator answers.
        """
        if not tasks or self._host.monotonic_s() < self._next_fetch_at_s:
            return []
        own = [p for task in tasks for p in task.partitions]
        committed = self._fetch_committed(own)
        siblings = self._fetch_sibling_offsets(committed, own)
        self._postpone_unstable_offsets([*committed.pending, *siblings.pending])
        stable = [task for task in tasks if self._unstable_partitions.isdisjoint(task.partitions)]
        inputs = [p for task in stable for p in task.partitions]
        topic_ids = self._offset_resetter.fetch_topic_ids({p.topic for p in inputs})
        known = {p: committed.offsets[p] for p in inputs if p in committed.offsets}
        former = find_offsets_of_former_topics(known, topic_ids)
        missing = find_missing_offsets(stable, known)
        deleted = self._offset_resetter.find_and_note_recreated(missing, topic_ids)
        untrusted = self._find_untrusted_inputs(stable, known, deleted)
        if untrusted.waiting:
            self._postpone_unstable_offsets([*self._unstable_partitions, *untrusted.waiting])
            stable = [t for t in stable if self._unstable_partitions.isdisjoint(t.partitions)]
        proofs = self._prove_offsets_and_check_stores(stable, committed.offsets, deleted)
        if self._missed_deletions is not None:
            self._missed_deletions.warn_of_missed_deletions(known)
        fresh = [p for p in missing if p not in untrusted.waiting]
        positions = {p: each.offset for p, each in known.items()}
        self._offset_resetter.note_committed((p, h) for p, h in known.items() if p not in former)
        positions |= self._offset_resetter.choose_start_offsets(fresh, siblings.offsets, topic_ids)
        positions |= self._offset_resetter.reset_offsets_in_recreated_topics(former)
        # A policy might choose others another time, and what is known of a topic is not kept.
        chosen = {*former, *deleted, *self._offset_resetter.list_unsettled(fresh)}
        # At least once what is written before a commit stays; what a tool has set is taken once.
        chosen |= {p for p in untrusted.inputs if p in known or not self._is_transactional}
        for task in stable:
            mine = {p: known[p] for p in task.partitions if p in known}
            task.first_starts = self._offset_resetter.find_first_starts(
                [p for p in task.partitions if p not in former],
                {p: decode_metadata(held.metadata) for p, held in mine.items()},
            )
            start_restoring_task(
                task,
                mine,
                positions,
                proofs[task.name],
                must_commit_positions=not chosen.isdisjoint(task.partitions),
            )
            if (preset := untrusted.preset_by_task.get(task.name)) is not None:
                task.start_entries = {PRESET_ENTRY: int(preset)}
            topics = {p.topic for p in task.partitions}
            task.topic_ids = {t: topic_ids[t] for t in sorted(topics & topic_ids.keys())}
        return stable

    def _find_untrusted_inputs(
        self,
        tasks: Collection[Task],
        committed: Mapping[Partition, OffsetAndMetadata],
        deleted: Collection[Partition],
    ) -> UntrustedInputs:
        """Return the inputs whose records may be in repartition topics. Raises PositionRefused."""
        if self._repeated_writes is None:
            return UntrustedInputs([], [], {})
        by_task = {task.name: task.partitions for task in tasks}
        return self._repeated_writes.find_untrusted_inputs(by_task, committed, deleted)

    def _fetch_sibling_offsets(
        self, committed: CommittedOffsets, partitions: Collection[Partition]
    ) -> CommittedOffsets:
        """Fetch the group's offsets of the other partitions of inputs that have no offset.

        They say whether such a partition was added, which only matters where a policy may skip its
        records. While another worker's first commit is under way, its partitions and those that
        wait for it are pending. Raises OutcomeUnknown.
        """
        fresh = [p for p in partitions if p not in committed.offsets]
        siblings = self._offset_resetter.list_partitions_of_same_topics(fresh)
        if not siblings:
            return CommittedOffsets({}, [])
        # All of a group's offsets would not name those whose first commit is under way.
        held = self._fetch_committed(siblings)
        known = {p.topic for p in held.offsets}
        first_commits = {p.topic for p in held.pending} - known
        return CommittedOffsets(held.offsets, [p for p in fresh if p.topic in first_commits])

    def find_overtaken_tasks(self, tasks: Collection[Task]) -> list[Task]:
        """Return the tasks that another member has committed since this one knows their offsets.

        Among them are those that an open transaction commits. Raises OutcomeUnknown.
        """
        committed = self._fetch_committed([p for task in tasks for p in task.partitions])
        return [task for task in tasks if is_overtaken(task, committed)]

    def _prove_offsets_and_check_stores(
        self,
        tasks: Collection[Task],
        committed: Mapping[Partition, OffsetAndMetadata],
        deleted: Collection[Partition],
    ) -> dict[str, OffsetProof]:
        """Return the proof, by task name, of which records the committed offsets account for.

        `deleted` are inputs whose offsets are gone with their topics.

        Raises: StreamsError where a store without a changelog proves that offsets are gone.
        """
        proofs: dict[str, OffsetProof] = {}
        all_committed: Mapping[Partition, OffsetAndMetadata] | None = None
        for task in tasks:
            is_unknown = committed.keys().isdisjoint(task.partitions)
            if is_unknown and task.stores.logged and all_committed is None:
                all_committed = self._fetch_committed(None).offsets
            proofs[task.name] = proof = prove_offsets(
                self._topology.application_id,
                task.partitions,
                task.stores,
                committed,
                all_committed or {},
                is_transactional=self._is_transactional,
                deleted=deleted,
                internal_topics=self._topology.repartition_topics,
            )
            for name, store in task.stores.unlogged.items():
                proof.check_unlogged_store(name, is_written=store.read_checkpoint() is not None)
        declared = [(task, self._list_stores(task.name)) for task in tasks]
        self._empty_store_warnings.warn_of_empty_stores(declared, committed)
        for task in tasks:
            own = [
                decode_metadata(committed[p].metadata) for p in task.partitions if p in committed
            ]
            task.stores.unlogged_commits.refuse_differing_stores(self._topology.application_id, own)
        return proofs

    def _fetch_committed(self, partitions: list[Partition] | None) -> CommittedOffsets:
        """Fetch committed offsets, all of the group's for None. Raises OutcomeUnknown."""
        try:
            return self._committed_offsets(partitions)
        except ConnectionLost as error:
            raise OutcomeUnknown(f"read the committed offsets: {error}") from error

    def _postpone_unstable_offsets(self, unstable: Iterable[Partition]) -> None:
        """Note partitions whose offsets an open transaction may change, and delay the next fetch.

        An open transaction ends at the latest when the coordinator times it out.
        """
        now_s = self._host.monotonic_s()
        if not self._unstable_partitions:
            self._next_log_at_s = now_s + _UNSTABLE_LOG_INTERVAL_S
        self._unstable_partitions = set(unstable)
        if not self._unstable_partitions:
            return
        self._next_fetch_at_s = now_s + _UNSTABLE_RETRY_S
        if now_s > self._next_log_at_s:
            self._next_log_at_s = now_s + _UNSTABLE_LOG_INTERVAL_S
            waiting = ", ".join(map(str, sorted(self._unstable_partitions)))
            log.info("waiting for an open transaction to end on %s", waiting)

    def _log_locked_directory(self, task_name: str, error: DirectoryLocked) -> None:
        """Log once that a task has waited for its directory, which another process has locked.

        A worker that stops leaves the group before it closes its stores, which is no news.
        """
        now_s = self._host.monotonic_s()
        since_s = self._locked_since_s.setdefault(task_name, now_s)
        if now_s - since_s >= _LOCK_LOG_DELAY_S:
            self._locked_since_s[task_name] = math.inf
            log.warning("task %s waits: %s", task_name, error)

    def _open_store(self, directory: str, spec: StoreSpec) -> tuple[StateStore, StoreDisk]:
        """Open the store that `spec` declares, also if it can't be used as it is.

        Raises StreamsError for such a store if it has no changelog. Another is emptied when its
        changelog is known to have everything (`streams.runtime.restoring.changelog_reader`).
        """
        spec = spec if self._observer is None else with_read_back_check(spec)
        path = self._directory.build_store_path(directory, spec.name)
        disk = self._disks.open_disk(spec, path)
        store = open_store(spec, disk, cache=self._cache)
        if spec.persistent and not spec.logged:
            refuse_damaged_store(spec.name, store, path)
        return store, disk
