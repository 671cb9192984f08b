"""Store the latest value of each key until it is `ttl_ms` behind the store's stream time.

The store's time is the largest timestamp that it was given, as with windows, and never the clock's,
so that reprocessing finds what was there the first time. A value whose timestamp is `ttl_ms` or
more behind is not returned. It is removed by a sweep (`state.ttl_sweep`), which writes a
deletion to the changelog: a restore and other readers of the changelog see the same.

The changelog has the last write of each key, which need not have the largest timestamp of the
transaction: the task commits the store's time with its offsets, and gives it back
(`advance_stream_time`) when it starts. So the moment at which a value expires does not depend on
where transactions end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from state.cache import ObjectCache
from state.drained_writes import DrainedWrites, create_write_after_drain_error
from state.entry import StoreEntry
from state.key_value import KeyValueStore
from state.keys import DiskKey, StoredBytes, unpack_time
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import raise_no_record
from state.ttl_sweep import TtlSweep

K = TypeVar("K")
V = TypeVar("V")


class TtlStore(KeyValueStore[K, V]):
    """Stores the latest value of each key until it is `ttl_ms` of stream time old.

    `put` and `delete` advance stream time; before `get_entry_for_update` the caller does, by
    `try_admit_write` or `advance_stream_time`. A value that has expired before it is put is
    dropped, and `dropped` counts it: the key keeps its value. Deletions are never dropped.
    """

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        *,
        ttl_ms: int,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        super().__init__(name, disk, codecs, cache=cache, clock=clock)
        self._ttl_ms = ttl_ms
        self._sweep = TtlSweep(disk)
        self.dropped = 0
        """The number of writes that came too late to be kept."""

    @property
    def stream_time_ms(self) -> int:
        """Return the largest timestamp that this store has been given, or -1 before the first."""
        return self._stream_time_ms

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes, and restart the search for expired entries."""
        super().rollback_transaction()
        self._sweep.restart()

    def _is_live(self, timestamp_ms: int) -> bool:
        return timestamp_ms > self._stream_time_ms - self._ttl_ms

    def _find_entry(self, disk_key: bytes, key: K) -> StoreEntry[K, V] | None:
        """Return the entry of a key as this transaction sees it, or None if it has expired."""
        held = super()._find_entry(disk_key, key)
        return held if held is not None and self._is_live(held.timestamp_ms) else None

    def get_entry_for_update(self, key: K) -> StoreEntry[K, V]:
        """Return the entry of `key`, counted as written; an expired one is reset to have no value.

        Its `value` is then None and its `timestamp_ms` -1, as for a key that was never written. The
        caller changes the entry in place.
        """
        held = super().get_entry_for_update(key)
        if not self._is_live(held.timestamp_ms):
            held.value, held.timestamp_ms = None, -1
        return held

    def advance_stream_time(self, timestamp_ms: int) -> None:
        """Advance stream time to `timestamp_ms`, unless it is further already."""
        if timestamp_ms > self._stream_time_ms:
            self._stream_time_ms = timestamp_ms

    def try_admit_write(self, timestamp_ms: int, *, deletes: bool) -> bool:
        """Return whether `put` would keep a write of `timestamp_ms`, and advance stream time if so.

        A deletion is always kept; a value that has expired is not, and is counted in `dropped`.
        """
        if not deletes and not self._is_live(timestamp_ms):
            self.dropped += 1
            return False
        self.advance_stream_time(timestamp_ms)
        return True

    def _write_value(
        self, disk_key: bytes, key: K, value: V | None, timestamp_ms: int | None
    ) -> None:
        """Set or delete a value; one that has expired is not kept, but counted in `dropped`."""
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        if value is not None and not self._is_live(timestamp_ms):
            if self._drained is not None:
                raise create_write_after_drain_error(self.name)
            self.dropped += 1
            return
        super()._write_value(disk_key, key, value, timestamp_ms)
        self.advance_stream_time(timestamp_ms)

    def _scan_range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[DiskKey, StoreEntry[K, V] | None, StoredBytes]]:
        """Yield keys and entries from `first` to before `end`, without expired ones."""
        for found in super()._scan_range(first, end, reverse=reverse):
            _, entry, stored = found
            if self._is_live(unpack_time(stored[:8])[0] if entry is None else entry.timestamp_ms):
                yield found

    def _serialize_writes(self) -> DrainedWrites:
        """Serialise the overlay, with deletions of the expired entries that the sweep finds."""
        times = [entry.timestamp_ms for entry in self._overlay.values()]
        self.advance_stream_time(max(times, default=-1))
        for key, stored in self._sweep.advance_to_next_entries(
            len(self._overlay), self._stream_time_ms
        ):
            if key not in self._overlay and not self._is_live(unpack_time(stored[:8])[0]):
                self._overlay[key] = self._pop_expired_as_deletion(key, stored)
        return super()._serialize_writes()

    def _pop_expired_as_deletion(self, disk_key: bytes, stored_value: bytes) -> StoreEntry[K, V]:
        """Take an expired entry out of the cache, and return it as a deletion to be written."""
        entry = self._cached.entries.pop(disk_key, None)
        if entry is None:
            return StoreEntry(self._decode_key(disk_key), None, self._stream_time_ms, stored_value)
        entry.value, entry.timestamp_ms = None, self._stream_time_ms
        return entry

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Replay changelog entries into the store; advance stream time to the largest timestamp."""
        entries = list(entries)
        self._stream_time_ms = max(self._stream_time_ms, *(time for _, _, time in entries), -1)
        super().replay_changelog(entries, checkpoint)
