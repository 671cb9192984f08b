"""Store entries that belong to a time and expire by it, as the base of windows and sessions.

A store's stream time is the largest time it has been given; what lies `retention_ms` or more behind
it has expired: it is not returned, and a write there is dropped and counted. On disk a key stands
in the segment of its time, so that whole segments are deleted when the last time in them expires.

A store may also index its entries by time (`by_time`): beside each, under its time and then its
key, is an empty value on disk, so that the entries of a stretch of time are found without reading
the rest. Rule: AbstractRocksDBSegmentedBytesStore and InMemoryWindowStore of Kafka Streams 4.3,
which drops a write to a RocksDB store only when its whole segment has expired, and never returns it
before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from state.cache import ObjectCache
from state.drained_writes import DrainedWrites
from state.entry import SCALARS
from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    TIME_BYTES,
    TIME_MAX,
    DiskChange,
    DiskKey,
    TimestampMs,
    choose_segment_ms,
    pack_time,
    unpack_time,
)
from state.overlay import SortedOverlayKeys, merge_overlay
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import TransactionalStore, raise_no_record
from state.windowed import Windowed

V = TypeVar("V")


class WindowSettings(NamedTuple):
    """Holds how long windows or sessions are kept, and how they lie on disk."""

    retention_ms: int
    window_size_ms: int = 0
    segment_ms: int | None = None
    """The length of a segment on disk; None for half of the retention."""
    by_time: bool = False
    """Entries are indexed by their time, too, if this is set."""


class SegmentedStore(TransactionalStore[Windowed[Any], V]):
    """Stores entries by key and time until they are `retention_ms` behind stream time."""

    _prefix_bytes = SEGMENT_BYTES
    _kind: str
    _entries_are_replaced = False
    """Most entries are soon deleted again, as a session is that another one replaces."""

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        settings: WindowSettings,
        *,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        self._retention_ms = settings.retention_ms
        self._segment_ms = settings.segment_ms or choose_segment_ms(settings.retention_ms)
        self._by_time = settings.by_time
        self._layout = f"{self._kind} in segments of {self._segment_ms} ms"
        if settings.by_time:
            self._layout += ", and by time"
        super().__init__(name, disk, codecs, cache=cache, clock=clock)
        self._expired_segments = 0
        """Segments below this number are deleted from disk."""
        self.dropped = 0
        """The number of writes that came too late to be kept."""

    @property
    def stream_time_ms(self) -> int:
        """Return the largest time that this store has been given, or -1 before the first."""
        return self._stream_time_ms

    @property
    def deleted_before_ms(self) -> int:
        """Return the time below which every entry has been deleted from the disk, in segments."""
        return self._expired_segments * self._segment_ms

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Commit the transaction's windows, then delete the segments that have expired."""
        super().commit(checkpoint)
        self._delete_expired_segments()

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Replay changelog entries into the store, then delete segments that have expired."""
        super().replay_changelog(entries, checkpoint)
        self._delete_expired_segments()

    def clear_all_data(self) -> None:
        super().clear_all_data()
        self._expired_segments = 0

    def iterate_entries_in_time_order(
        self, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], V, TimestampMs]]:
        """Yield key, value and timestamp of the entries between two times, in order of time.

        Both times are included. Entries of the same time come by their key's bytes; the timestamp
        is that of the record that wrote the entry. Requires a store that is indexed `by_time`;
        includes entries that have expired but are not deleted yet.
        """
        for at in self._iterate_time_keys(from_ms, to_ms):
            disk_key, window = self._to_disk_key_and_window(at)
            held = self._find_entry(disk_key, window)
            if held is not None and held.value is not None:
                yield held.key, held.value, held.timestamp_ms

    def find_first_entry_time(self, from_ms: int) -> int:
        """Return the first time from `from_ms` on that may have an entry, or `TIME_MAX`.

        Requires a store that is indexed `by_time`.
        """
        for at in self._iterate_time_keys(from_ms, TIME_MAX - 1):
            return unpack_time(at[len(BY_TIME) :][:TIME_BYTES])[0]  # type: ignore[no-any-return]
        return TIME_MAX

    def _iterate_time_keys(self, from_ms: int, to_ms: int) -> Iterator[bytes]:
        """Yield the keys by time from one time to another, of disk and overlay, in order."""
        assert self._by_time, f"store {self.name!r} is not kept by time"
        if to_ms < max(from_ms, 0):
            return
        added = len(self._overlay) - len(self._overlay_time_keys)
        for disk_key in islice(reversed(self._overlay), added):
            self._overlay_time_keys[self._to_time_key(disk_key)] = None
        first, last = BY_TIME + pack_time(max(from_ms, 0)), BY_TIME + pack_time(to_ms + 1)
        keys = self._timed_order.keys_between(first, last)
        for time_key, _, _ in merge_overlay(
            self._disk.range(first, last), self._overlay_time_keys, keys, reverse=False
        ):
            yield time_key

    def _to_time_key(self, disk_key: bytes) -> bytes:
        """Return the key by time for an entry's key on disk."""
        raise NotImplementedError

    def _to_disk_key_and_window(self, time_key: bytes) -> tuple[DiskKey, Windowed[Any]]:
        """Return the key on disk and the key as users see it for a key by time."""
        raise NotImplementedError

    def _begin_transaction(self) -> None:
        super()._begin_transaction()
        self._overlay_time_keys: dict[bytes, None] = {}
        self._timed_order = SortedOverlayKeys(self._overlay_time_keys)

    def _serialize_writes(self) -> DrainedWrites:
        """Serialise the overlay, and add the changes of the index of keys by time."""
        entries = self._overlay.items()
        absent: list[bytes] = []
        if self._entries_are_replaced:
            absent = [key for key, entry in entries if entry.stored is None]
        new = [key for key, entry in entries if not entry.stored] if self._by_time else []
        drained = super()._serialize_writes()
        drained.new_keys = absent
        if not self._by_time:
            return drained
        drained.new_keys += list(map(self._to_time_key, absent))
        changes = drained.changes
        changes.update({self._to_time_key(key): b"" for key in new if changes.get(key) is not None})
        changes.update({self._to_time_key(key): None for key in drained.deleted})
        return drained

    def _copy_key(self, key: Windowed[Any], disk_key: bytes) -> Windowed[Any]:
        """Return the windowed key itself if its key is a scalar, else a copy for the cache."""
        if type(key.key) in SCALARS:
            return key
        return replace(key, key=self._decode_key(self._serialize_key(key.key)))

    def _decode_changelog_time_ms(self, changelog_key: bytes) -> int:
        """Return the time by which a key of the changelog is kept."""
        raise NotImplementedError

    @property
    def _live_from_ms(self) -> int:
        return max(self._stream_time_ms - self._retention_ms + 1, 0)

    def _try_admit_write(self, time_ms: int) -> bool:
        """Advance stream time to `time_ms` and return whether a write at that time is kept.

        A write that has expired is counted in `dropped`. Raises ValueError for a negative time.
        """
        if time_ms < 0:
            raise ValueError(f"store {self.name!r}: windows begin at 0 or later, not {time_ms}")
        if time_ms > self._stream_time_ms:
            self._stream_time_ms = time_ms
        elif time_ms < self._live_from_ms:
            self.dropped += 1
            return False
        return True

    def _encode_segment(self, time_ms: int) -> bytes:
        return pack_time(time_ms // self._segment_ms)

    def _iterate_live_segments(self, from_ms: int, to_ms: int, *, reverse: bool) -> Iterable[bytes]:
        """Return the segments with live entries between two times, both included."""
        first = max(from_ms, self._live_from_ms) // self._segment_ms
        last = min(to_ms, self._stream_time_ms) // self._segment_ms
        numbers = range(first, last + 1)
        return map(pack_time, reversed(numbers) if reverse else numbers)

    def _delete_expired_segments(self) -> None:
        dead = self._live_from_ms // self._segment_ms
        if dead > self._expired_segments:
            self._expired_segments = dead
            self._disk.delete_range(pack_time(0), pack_time(dead))
            if self._by_time:
                gone = pack_time(dead * self._segment_ms)
                self._disk.delete_range(BY_TIME, BY_TIME + gone)

    def _to_disk_changes(self, entries: Iterable[ChangelogEntry]) -> Iterable[DiskChange]:
        entries = list(entries)
        time_of = self._decode_changelog_time_ms
        times = [time_of(key) for key, _, _ in entries]
        if times:
            self._stream_time_ms = max(self._stream_time_ms, *times)
        replayed = [
            (
                self._encode_segment(time_ms) + key,
                None if value is None else pack_time(timestamp_ms) + value,
            )
            for time_ms, (key, value, timestamp_ms) in zip(times, entries, strict=True)
        ]
        if self._by_time:
            replayed += [
                (self._to_time_key(key), None if stored is None else b"")
                for key, stored in replayed
            ]
        return replayed
