"""Hold the stores of one task: those with a changelog, and those without one.

A transaction's writes are drained, sent to the changelogs, and committed on disk when Kafka has
committed the transaction; or rolled back. See `streams.runtime.threads.commit` for the order.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from state.cache import StoreCache
from state.errors import StoreCorrupted
from state.segmented import SegmentedStore
from state.store import StateStore
from state.ttl_store import TtlStore
from state.versioned import VersionedStore
from state.write_behind import WriteBehindDisk
from streams.common.counted import join_distinct
from streams.common.topic_id_hashes import hash_topic_ids
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskCorrupted
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.changelogs.version_expiry import (
    advance_version_expiry,
    begin_changelog_rewrite_if_due,
)
from streams.runtime.changelogs.window_expiry import (
    ExpiredRecords,
    WindowExpiry,
    name_expiry_entries,
    read_window_expiry,
    to_metadata_entries,
)
from streams.runtime.clients.interfaces import ProducerClient
from streams.runtime.offsets.offset_metadata import (
    OffsetMetadata,
    count_optional_entries,
    decode_metadata,
    do_entries_fit,
)
from streams.runtime.offsets.store_commits import ENTRIES_PER_STORE
from streams.runtime.tasks.metered_stores import StoreMeter
from streams.runtime.tasks.unlogged_commits import KeptStore, UnloggedCommits
from streams.runtime.tasks.unlogged_damage import explain_unlogged_damage

StoreName: TypeAlias = str

log = logging.getLogger(__name__)


class TaskStores:
    """Holds the stores of the task `task_name` and their positions in the changelogs.

    Kafka Streams' counterpart is ProcessorStateManager.
    """

    def __init__(
        self,
        task_name: str,
        logged: Mapping[str, LoggedStore],
        unlogged: Mapping[str, StateStore] | None = None,
        kept: Mapping[str, KeptStore] | None = None,
        meters: Mapping[str, StoreMeter] | None = None,
    ) -> None:
        self.logged = dict(logged)
        """The stores with a changelog, by name."""
        self.unlogged = dict(unlogged or {})
        """Stores without a changelog: they commit like the others, and nothing restores them."""
        self.unlogged_commits = UnloggedCommits(task_name, kept or {})
        """Which commits wrote those of them that are on disk, `kept`."""
        self.meters = dict(meters or {})
        """What measures the operations of each store."""
        self.names_expired = True
        """Says whether the offsets' metadata have room for what has expired of changelogs."""
        self._task_name = task_name
        self._undelivered: list[str] = []
        self._written_unlogged: set[str] = set()

    def all_stores(self) -> dict[str, StateStore]:
        """Return every store by its name, those without a changelog included."""
        return {name: each.store for name, each in self.logged.items()} | self.unlogged

    def list_caches(self) -> dict[str, StoreCache]:
        """Return the cache of each store that has one, by name."""
        stores = {name: getattr(s, "store_cache", None) for name, s in self.all_stores().items()}
        return {name: each for name, each in stores.items() if isinstance(each, StoreCache)}

    def list_ttl_stores(self) -> Iterator[tuple[StoreName, TtlStore[Any, Any]]]:
        """Yield name and store of those whose values expire."""
        for name, store in self.all_stores().items():
            if isinstance(store, TtlStore):
                yield name, store

    def find_committed_positions_and_note_ids(
        self, committed: Mapping[Partition, OffsetAndMetadata]
    ) -> dict[Partition, int]:
        """Return where each changelog ended when offsets were committed, by their metadata.

        It is 0 where that is not known. A table's own topic, in place of a changelog, is left out.
        The ids that the changelogs had then are noted with the stores.
        """
        positions: dict[Partition, int] = {}
        decoded = [decode_metadata(held.metadata) for held in committed.values()]
        for store, logged in self.logged.items():
            logged.committed_id_hash = None
            if logged.is_source_topic or not decoded:
                continue
            # The largest position is of the last commit: an input may have been removed since.
            latest = max(decoded, key=partial(_position_of_store_or_zero, store))
            positions[logged.changelog] = _position_of_store_or_zero(store, latest)
            logged.committed_id_hash = latest.changelog_id_hash(store)
        return positions

    def note_committed_expiry(self, committed: Mapping[Partition, OffsetAndMetadata]) -> None:
        """Note by the metadata of a commit which records of changelogs may have expired."""
        decoded = [decode_metadata(held.metadata) for held in committed.values()]
        stream_time_ms = max((each.partition_time_ms for each in decoded), default=-1)
        for store, logged in self.logged.items():
            expiries = [
                read_window_expiry(
                    store, {name: each.find_entry(name) for name in name_expiry_entries(store)}
                )
                for each in decoded
            ]
            # Partitions of a task are committed together; one may be left of an earlier commit.
            known = [each for each in expiries if each.expired_offset is not None]
            latest = max(known, key=lambda each: each.expired_offset or 0, default=WindowExpiry())
            logged.window_expiry = latest
            logged.expiry = logged.expiry._replace(
                stream_time_ms=stream_time_ms, expired_offset=latest.expired_offset
            )

    def list_windowed_stores(self) -> Iterator[tuple[StoreName, LoggedStore, SegmentedStore[Any]]]:
        """Yield name, changelog and store of windows and sessions with a changelog."""
        for name, logged in self.logged.items():
            if logged.expiry.is_windowed and isinstance(logged.store, SegmentedStore):
                yield name, logged, logged.store

    def list_rewritten_stores(self) -> Iterator[tuple[StoreName, LoggedStore, VersionedStore[Any]]]:
        """Yield name, changelog and store of those that write their changelog again."""
        for name, logged in self.logged.items():
            if logged.expiry.is_rewritten and isinstance(logged.store, VersionedStore):
                yield name, logged, logged.store

    def count_expiry_entries(self) -> int:
        """Return at most how many entries of the metadata say what has expired of changelogs."""
        expiring = [*self.list_windowed_stores(), *self.list_rewritten_stores()]
        return sum(len(name_expiry_entries(name)) for name, *_ in expiring)

    def choose_metadata_entries_that_fit(
        self, step_count: int, inputs: Collection[str], bytes_max: int
    ) -> None:
        """Note which entries of the offsets' metadata there is room for, in `bytes_max`.

        `step_count` steps have a time of their own.
        """
        # Without room nothing proves that records have expired: then none are deleted.
        count = len(self.logged) + step_count + self.count_expiry_entries() + 1
        self.names_expired = do_entries_fit(count, bytes_max)
        # What tells a reset, or the guarantee, comes before the commits of unlogged stores.
        count += count_optional_entries(inputs, self.logged)
        count += ENTRIES_PER_STORE * len(self.unlogged_commits)
        self.unlogged_commits.has_room = do_entries_fit(count, bytes_max)

    def advance_expiry(self) -> dict[str, int]:
        """Advance the expired offset of each changelog; return them as metadata entries."""
        entries: dict[str, int] = {}
        if not self.names_expired:
            return entries
        for name, logged, store in self.list_windowed_stores():
            expiry = logged.window_expiry
            expiry.advance(store.stream_time_ms, store.deleted_before_ms, logged.changelog_position)
            entries |= to_metadata_entries(name, expiry)
        for name, logged, versions in self.list_rewritten_stores():
            advance_version_expiry(logged.window_expiry, versions)
            if logged.window_expiry.expired_offset is not None:
                entries |= to_metadata_entries(name, logged.window_expiry)
        return entries

    def pop_expired_records(self, inputs: Iterable[Partition]) -> list[ExpiredRecords]:
        """Return the changelogs whose expired offset has advanced since the last call."""
        expired: list[ExpiredRecords] = []
        if not self.names_expired:
            return expired
        for name, logged in self.logged.items():
            expiry = logged.window_expiry
            offset = expiry.expired_offset or 0
            if offset > expiry.purged_offset:
                expiry.purged_offset = offset
                expired.append(ExpiredRecords(logged.changelog, offset, name, tuple(inputs)))
        return expired

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how many bytes of memory the uncommitted writes of all stores take."""
        return sum(store.uncommitted_bytes for store in self.all_stores().values())

    def mark_stores_for_rebuild(self, store_names: Collection[str], reason: str) -> None:
        """Have the named stores, which can't be trusted, rebuilt from their changelogs.

        Each is cleared when its changelog is known to have everything. Raises StreamsError for one
        without a changelog: nothing could fill it again, so it is left as it is.
        """
        for name in store_names:
            if name in self.unlogged:
                raise StreamsError(explain_unlogged_damage(name, reason))
            self.logged[name].damage = reason

    def serialize_changes(self) -> None:
        """Serialize the new value of each changed key of every store.

        Raises: StoreCorrupted; StoreSerdeError for a value that a store's serde refuses.
        """
        for store in self.all_stores().values():
            # A user's `except Exception` may have caught what a read raised.
            store.raise_if_corrupted()
        if self.names_expired:
            for _, logged, versions in self.list_rewritten_stores():
                begin_changelog_rewrite_if_due(
                    versions, logged.changelog_position, logged.window_expiry
                )
        for each in self.logged.values():
            each.store.drain_writes()
        self._written_unlogged = {n for n, each in self.unlogged.items() if each.drain_writes()}

    def name_unlogged_commits(self, commit_number: int) -> dict[str, int]:
        """Return, as entries of the metadata, which commits wrote stores without a changelog."""
        return self.unlogged_commits.prepare_commit(commit_number, self._written_unlogged)

    def send_changes_to_changelog(self, producer: ProducerClient) -> None:
        """Send each changed key of every logged store to the store's changelog."""
        for logged in self.logged.values():
            logged.send_changes_to_changelog(producer, self._undelivered)

    def find_store_of_changelog(self, topic: str) -> str | None:
        """Return the name of the store that a changelog is of, or None."""
        return next((n for n, each in self.logged.items() if each.changelog.topic == topic), None)

    def list_source_topics(self) -> dict[str, str]:
        """Return by store name the table's topic that restores it in the place of a changelog."""
        return {
            name: logged.changelog.topic
            for name, logged in self.logged.items()
            if logged.is_source_topic
        }

    def list_written_changelogs(self) -> list[Partition]:
        """Return the changelog partitions that the task writes."""
        return [each.changelog for each in self.logged.values() if not each.is_source_topic]

    def set_changelog_positions(self, end_offsets: Mapping[Partition, int]) -> None:
        """Set the positions of the logged stores to the ends of their changelogs.

        For a producer that reports failed deliveries only, and so tells no offsets.
        """
        for logged in self.logged.values():
            if not logged.is_source_topic:
                logged.changelog_position = end_offsets[logged.changelog]
                logged.committed_end = logged.changelog_position

    def hash_changelog_ids(self) -> dict[str, int]:
        """Return by store name the hash of the id of each changelog that the task writes."""
        ids = {
            name: logged.changelog_topic_id
            for name, logged in self.logged.items()
            if logged.changelog_topic_id and not logged.is_source_topic
        }
        return hash_topic_ids(ids)

    def set_source_positions(self, positions: Mapping[Partition, int]) -> None:
        """Set the position of each store whose changelog is an input to the task's offset there."""
        for logged in self.logged.values():
            if logged.is_source_topic:
                logged.changelog_position = positions[logged.changelog]

    def committable_positions(self) -> dict[str, int]:
        """Return the changelog position of each store that writes its changelog, by store name.

        Raises: OutcomeUnknown if a changelog record was not delivered.
        """
        if self._undelivered:
            raise OutcomeUnknown(f"changelog not delivered: {join_distinct(self._undelivered)}")
        return {
            name: each.changelog_position
            for name, each in self.logged.items()
            if not each.is_source_topic
        }

    def commit_changes(self, now_ms: int) -> None:
        """Hand the stores' changes to their disks after Kafka has committed the transaction.

        `now_ms` is a wall-clock time at which nothing was in the changelogs above the stores'
        positions. A store that fails keeps no other one from its changes: those without a changelog
        would lose a committed transaction. The first error is raised at the end.
        """
        failure: Exception | None = None
        for name, store in self.all_stores().items():
            if (logged := self.logged.get(name)) is not None:
                position, topic_id = logged.changelog_position, logged.changelog_topic_id
                checkpoint = logged.create_checkpoint(position, topic_id, now_ms)
            else:
                checkpoint = self.unlogged_commits.create_checkpoint(name, now_ms)
            try:
                store.commit(checkpoint)
                self.unlogged_commits.note_stored(name)
            except Exception as error:
                failure = failure or error
        if isinstance(failure, StoreCorrupted):
            raise self.translate_damage(failure) from failure
        if failure is not None:
            raise failure

    def write_waiting_changes(self) -> None:
        """Write changes to disk that have waited for long, also where no commit follows them."""
        try:
            for logged in self.logged.values():
                if isinstance(logged.disk, WriteBehindDisk):
                    logged.disk.write_if_due()
        except StoreCorrupted as error:
            raise self.translate_damage(error) from error

    def roll_back_changes(self) -> None:
        """Discard what the transaction wrote, delivery reports that are still to come included."""
        for store in self.all_stores().values():
            store.rollback_transaction()
        # Delivery reports of the discarded producer may still come: they change the objects from
        # before, which nobody reads any more.
        self.logged = {name: replace(logged) for name, logged in self.logged.items()}
        self._undelivered = []

    def translate_damage(self, error: StoreCorrupted) -> StreamsError | TaskCorrupted:
        """Return the error that a corrupt store stands for.

        It is TaskCorrupted, or StreamsError for the copy of a global table, which is not the
        task's.
        """
        if error.store in self.logged or error.store in self.unlogged:
            return TaskCorrupted(self._task_name, [error.store], str(error))
        return StreamsError(
            f"{error}. It is the worker's copy of a global table: start again, and it is "
            "copied anew"
        )


def _position_of_store_or_zero(store: str, metadata: OffsetMetadata) -> int:
    """Return the changelog position of a store that an offset's metadata name; 0 if unknown."""
    return metadata.position_of_store(store) or 0
