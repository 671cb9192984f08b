"""Collect what commits change in a store, and write it to the store's disk about once a second.

A key that each commit changes is then written once a second, and not once a commit; one that comes
and goes in between, as sessions do that are extended, is not written at all. Meanwhile the
disk is behind the changelog, as a store of Kafka Streams is until its write buffer is flushed. A
crash loses nothing: the checkpoint goes to disk with the changes, and the store catches up from the
position in it. So this is for stores that a changelog restores.

    operation                         waiting changes                the disk below
    write_changes                     have these too                 as before
    write_changes, much or long ago   none                           has all, and their checkpoint
    write_if_due, long ago            none                           has all, and their checkpoint
    get, range, read_checkpoint       are seen before the disk's     as before
    delete_range, load_changes,
    close                             none                           has all before the operation
    clear_all_data                    none                           empty
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from threading import Lock
from typing import Final

from state.database_statistics import DatabaseStatistic
from state.errors import StateError
from state.keys import DiskChange, DiskEntry
from state.overlay import SortedOverlayKeys, merge_overlay
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint

log = logging.getLogger(__name__)

WAITING_BYTES_MAX = 512 << 10
"""The keys and values that wait at most; as objects they take up to four times that."""
WAITING_S_MAX = 1.0
_SAMPLE = 16
_NOT_WAITING: Final = b"compared by identity"


class WriteBehindDisk:
    """Lets the changes of commits wait above the disk of a store, and shows both as one.

    The first commit after `WAITING_S_MAX` seconds of `monotonic_s` writes them, or the one that
    makes them more than `WAITING_BYTES_MAX`. One thread writes, others may read meanwhile.
    """

    def __init__(self, disk: StoreDisk, *, monotonic_s: Callable[[], float]) -> None:
        self._disk = disk
        self._monotonic_s = monotonic_s
        self._changing = Lock()
        """Held while the waiting changes change, and while a range begins."""
        self._due_at_s = 0.0
        self._checkpoint: StoreCheckpoint | None = None
        """That of the waiting changes; None if there are none."""
        self._waiting: dict[bytes, bytes | None] = {}
        self._order = SortedOverlayKeys(self._waiting)
        self._unwritten: set[bytes] = set()
        """Waiting keys that the disk below surely does not have."""

    def get(self, key: bytes) -> bytes | None:
        waiting = self._waiting.get(key, _NOT_WAITING)
        return self._disk.get(key) if waiting is _NOT_WAITING else waiting

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[DiskEntry]:
        with self._changing:
            keys = self._order.keys_between(first, end)
            waiting = {key: (self._waiting[key],) for key in keys}
            stored = self._disk.range(first, end, reverse=reverse)
            head = list(islice(stored, 1))  # from its first step on it sees no later write
        if not keys:
            yield from chain(head, stored)
            return
        if reverse:
            keys.reverse()
        for key, found, value in merge_overlay(chain(head, stored), waiting, keys, reverse=reverse):
            if found is None:
                yield key, value
            elif found[0] is not None:
                yield key, found[0]

    def raise_if_corrupted(self) -> None:
        self._disk.raise_if_corrupted()

    def approximate_count(self) -> int:
        """Return about how many entries there are; a waiting value counts as new."""
        with self._changing:
            changes = len(self._waiting)
            deleted = sum(value is None for value in self._waiting.values())
        return max(self._disk.approximate_count() + changes - 2 * deleted, 0)

    def read_properties(self, names: Iterable[str]) -> dict[str, int]:
        return self._disk.read_properties(names)

    def read_statistics(self, names: Collection[str]) -> dict[str, DatabaseStatistic]:
        return self._disk.read_statistics(names)

    def read_checkpoint(self) -> StoreCheckpoint | None:
        return self._checkpoint or self._disk.read_checkpoint()

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        if self._checkpoint is None:
            self._due_at_s = self._monotonic_s() + WAITING_S_MAX
        with self._changing:
            # A new key that waits already is a deletion, of an entry that the disk may have.
            self._unwritten.update(set(new_keys).difference(self._waiting))
            self._waiting.update(changes)
            if self._unwritten:
                self._drop_deleted_unwritten(changes)
        self._checkpoint = checkpoint
        if _estimate_bytes(self._waiting) > WAITING_BYTES_MAX:
            self._write_waiting_changes()
        else:
            self.write_if_due()

    def write_if_due(self) -> None:
        """Write the waiting changes if the first of them has waited long enough.

        Raises StateError.
        """
        if self._checkpoint is not None and self._monotonic_s() >= self._due_at_s:
            self._write_waiting_changes()

    def delete_range(self, first: bytes, end: bytes) -> None:
        self._write_waiting_changes()
        self._disk.delete_range(first, end)

    def load_changes(self, changes: Iterable[DiskChange], checkpoint: StoreCheckpoint) -> None:
        self._write_waiting_changes()
        self._disk.load_changes(changes, checkpoint)

    def finish_load(self) -> None:
        self._disk.finish_load()

    def clear_all_data(self) -> None:
        with self._changing:
            self._clear_waiting_changes()
        self._disk.clear_all_data()

    def close(self) -> None:
        """Write the waiting changes, and close the disk even if they can't be written."""
        try:
            self._write_waiting_changes()
        except StateError as error:
            log.info("%s. Its last changes will be restored from the changelog", error)
        finally:
            self._disk.close()

    def _drop_deleted_unwritten(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Drop the keys that `changes` delete and that the disk below does not have."""
        unwritten, waiting = self._unwritten, self._waiting
        gone = [key for key in unwritten.intersection(changes) if changes[key] is None]
        if gone:
            for key in gone:
                del waiting[key]
            unwritten.difference_update(gone)
            self._order = SortedOverlayKeys(waiting)

    def _write_waiting_changes(self) -> None:
        """Write the waiting changes, if there are any, with their checkpoint."""
        if self._checkpoint is None:
            return
        self._unwritten = set()  # also if the write fails, which may have written some of them
        # Readers see them in both places, until they are dropped here.
        self._disk.write_changes(self._waiting, self._checkpoint)
        with self._changing:
            self._clear_waiting_changes()

    def _clear_waiting_changes(self) -> None:
        self._checkpoint = None
        self._waiting = {}
        self._order = SortedOverlayKeys(self._waiting)
        self._unwritten = set()


def _estimate_bytes(changes: Mapping[bytes, bytes | None]) -> int:
    """Return about how many bytes all keys and values have, from the first few."""
    sample = list(islice(changes.items(), _SAMPLE))
    if not sample:
        return 0
    return sum(len(key) + len(value or b"") for key, value in sample) * len(changes) // len(sample)
