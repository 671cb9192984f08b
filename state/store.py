"""Declare the interfaces of the state package: a store, its disk, and changelog entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from state.buffered_change import Headers
from state.database_statistics import DatabaseStatistic
from state.early_serialization import ChangeLimit, RefusedChange
from state.keys import DiskChange, DiskEntry
from state.store_checkpoint import StoreCheckpoint

ChangelogEntry = tuple[bytes, bytes | None, int]
"""One write in a changelog: key, value (None is a deletion) and timestamp in ms. It is a plain
tuple because one is made for each key that a transaction wrote."""


class StoreDisk(Protocol):
    """Stores committed state: values by key, as bytes, and a checkpoint that moves with the data.

    Any call may raise StateError: the machine is in trouble, and nothing is wiped; or
    StoreCorrupted: what is on disk can't be read, and `clear_all_data` makes it empty. A disk whose
    database can't even be opened exists all the same: each call raises StoreCorrupted, except
    `clear_all_data` and `close`.
    """

    def get(self, key: bytes) -> bytes | None: ...

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[DiskEntry]:
        """Yield entries from `first` up to, but without, `end`, in key order or in reverse.

        None is no bound. An iterator sees the disk as it was at its first step; it holds resources
        until it is exhausted, closed, or the disk is closed.
        """
        ...

    def raise_if_corrupted(self) -> None:
        """Raise StoreCorrupted if a call has found damage since the last clear; read nothing."""
        ...

    def approximate_count(self) -> int:
        """Return about how many entries there are."""
        ...

    def read_properties(self, names: Iterable[str]) -> dict[str, int]:
        """Return properties of RocksDB such as `rocksdb.background-errors`, those that it has.

        A disk in memory has none.
        """
        ...

    def read_statistics(self, names: Collection[str]) -> dict[str, DatabaseStatistic]:
        """Return RocksDB's statistics with these names, such as `rocksdb.bytes.written`.

        Nothing where they are not collected. It takes about half a millisecond.
        """
        ...

    def read_checkpoint(self) -> StoreCheckpoint | None:
        """Return the checkpoint of the last durable write, or None before the first."""
        ...

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        """Write `changes` (None deletes) and then the checkpoint.

        `new_keys` are some of the keys that had no entry before, so that a disk that lets changes
        wait may leave out what is deleted again before it is written.

        A crash in the middle leaves the old checkpoint beside a prefix of the changes, which a
        replay of the changelog from the old checkpoint corrects.
        """
        ...

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the entries from `first` up to, but without, `end`."""
        ...

    def load_changes(self, changes: Iterable[DiskChange], checkpoint: StoreCheckpoint) -> None:
        """Write `changes` in bulk for a restore; they are durable after `finish_load`.

        The last of several changes of a key wins. A crash before `finish_load` may take back whole
        calls, their checkpoints with them.

        One call costs some 20 us beside its changes: from 1 000 changes on a larger call is no
        faster. They are taken as they come (pass a generator, copy nothing). `read_checkpoint` goes
        on returning what is durable, which advances at intervals, and at `finish_load`. A restore
        that loads little goes through the log and makes `finish_load` free.
        """
        ...

    def finish_load(self) -> None:
        """Make durable what was loaded, since the restore has ended or paused."""
        ...

    def clear_all_data(self) -> None:
        """Delete all data, the checkpoint included."""
        ...

    def close(self) -> None: ...


class StateStore(Protocol):
    """Declares what the runtime needs of a store, whatever its kind (Kafka Streams' StateStore)."""

    name: str
    clock: Callable[[], int]
    """Returns the time in ms for a write without one: that of the record being processed."""
    changelog_headers: Headers | None
    """Headers of each value in the changelog."""

    @property
    def rebuild_reason(self) -> str:
        """Return why the store can't be used before `clear_all_data`; empty if it can be.

        What is on its disk has another layout (`state.disk_layout`). Only `read_checkpoint`,
        `finish_restore`, `rollback_transaction`, `clear_all_data` and `close` may be called then.
        """
        ...

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the running transaction's writes take, in bytes."""
        ...

    def raise_if_corrupted(self) -> None:
        """Raise StoreCorrupted if a read has found damage, also if its error was caught.

        It costs nothing. What was written after such a read may be wrong.
        """
        ...

    def serialize_early(
        self, on_refused: Callable[[], object] | None, limit: ChangeLimit | None = None
    ) -> None:
        """Serialise each value as it is written, and call `on_refused` for each refused one.

        One that is larger than `limit` is refused, too. None: serialise at the commit again. Call
        it only while the transaction has written nothing.
        """
        ...

    def serialize_mutated_objects(self) -> list[RefusedChange]:
        """Serialise the objects that the last record may have changed; return the refused ones.

        Does so where the store serialises early; a value that the serde refuses is taken back.
        """
        ...

    def drain_writes(self) -> list[ChangelogEntry]:
        """Serialise each dirty key once and return the changelog entries.

        Returns the same list until the outcome.
        """
        ...

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Write the drained entries and `checkpoint` to disk, after Kafka has committed them."""
        ...

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and every object that it handed out."""
        ...

    def read_checkpoint(self) -> StoreCheckpoint | None: ...

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Apply committed changelog entries in bulk; applying the same entries again is safe."""
        ...

    def finish_restore(self) -> None:
        """Make durable what was replayed, since the restore has ended or paused."""
        ...

    def clear_all_data(self) -> None:
        """Delete all data, committed state included, because it may not match the changelog."""
        ...

    def close(self) -> None: ...
