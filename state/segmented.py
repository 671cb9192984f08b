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
from typing import Any, TypeVar

from state.cache import ObjectCache
from state.entry import SCALARS
from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    TIME_BYTES,
    TIME_MAX,
    pack_time,
    segment_ms_for,
    unpack_time,
)
from state.overlay import Order, merged
from state.store import ChangelogEntry, Checkpoint, Disk
from state.transaction import Codecs, TransactionalStore, no_record
from state.windowed import Windowed

V = TypeVar("V")


class SegmentedStore(TransactionalStore[Windowed[Any], V]):
    """Stores entries by key and time until they are `retention_ms` behind stream time."""

    _prefix_bytes = SEGMENT_BYTES
    _kind: str

    def __init__(
        self,
        name: str,
        disk: Disk,
        codecs: Codecs,
        *,
        retention_ms: int,
        segment_ms: int | None = None,
        by_time: bool = False,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = no_record,
    ) -> None:
        self._retention_ms = retention_ms
        self._segment_ms = segment_ms or segment_ms_for(retention_ms)
        self._by_time = by_time
        self._layout = f"{self._kind} in segments of {self._segment_ms} ms"
        if by_time:
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

    def commit(self, checkpoint: Checkpoint) -> None:
        """Commit as any store does, then delete the segments that have expired."""
        super().commit(checkpoint)
        self._expire()

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        """Replay as any store does, then delete the segments that have expired."""
        super().replay(entries, checkpoint)
        self._expire()

    def clear(self) -> None:
        super().clear()
        self._expired_segments = 0

    def in_time_order(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], V, int]]:
        """Yield key, value and timestamp of the entries between two times, in order of time.

        Both times are included. Entries of the same time come by their key's bytes; the timestamp
        is that of the record that wrote the entry. Requires a store that is indexed `by_time`;
        includes entries that have expired but are not deleted yet.
        """
        for at in self._times(from_ms, to_ms):
            disk_key, window = self._found_at(at)
            held = self._find(disk_key, window)
            if held is not None and held.value is not None:
                yield held.key, held.value, held.timestamp_ms

    def first_time(self, from_ms: int) -> int:
        """Return the first time from `from_ms` on that may have an entry, or `TIME_MAX`.

        Requires a store that is indexed `by_time`.
        """
        for at in self._times(from_ms, TIME_MAX - 1):
            return unpack_time(at[len(BY_TIME) :][:TIME_BYTES])[0]  # type: ignore[no-any-return]
        return TIME_MAX

    def _times(self, from_ms: int, to_ms: int) -> Iterator[bytes]:
        """Yield the keys by time from one time to another, of disk and overlay, in order."""
        assert self._by_time, f"store {self.name!r} is not kept by time"
        if to_ms < max(from_ms, 0):
            return
        added = len(self._overlay) - len(self._timed)
        for disk_key in islice(reversed(self._overlay), added):
            self._timed[self._at_time(disk_key)] = None
        first, last = BY_TIME + pack_time(max(from_ms, 0)), BY_TIME + pack_time(to_ms + 1)
        keys = self._timed_order.between(first, last)
        for time_key, _, _ in merged(
            self._disk.range(first, last), self._timed, keys, reverse=False
        ):
            yield time_key

    def _at_time(self, disk_key: bytes) -> bytes:
        """Return the key by time for an entry's key on disk."""
        raise NotImplementedError

    def _found_at(self, at: bytes) -> tuple[bytes, Windowed[Any]]:
        """Return the key on disk and the key as users see it for a key by time."""
        raise NotImplementedError

    def _begin(self) -> None:
        super()._begin()
        self._timed: dict[bytes, None] = {}
        self._timed_order = Order(self._timed)

    def _serialised(self) -> list[ChangelogEntry]:
        if not self._by_time:
            return super()._serialised()
        new = [key for key, entry in self._overlay.items() if not entry.stored]
        drained = super()._serialised()
        changes = self._changes
        changes.update({self._at_time(key): b"" for key in new if changes.get(key) is not None})
        changes.update({self._at_time(key): None for key in self._deleted})
        return drained

    def _own_key(self, key: Windowed[Any], encoded: bytes) -> Windowed[Any]:
        if type(key.key) in SCALARS:
            return key
        return replace(key, key=self._decode_key(self._encoded(key.key)))

    def _time_of(self, logged: bytes) -> int:
        """Return the time by which a key of the changelog is kept."""
        raise NotImplementedError

    @property
    def _live_from_ms(self) -> int:
        return max(self._stream_time_ms - self._retention_ms + 1, 0)

    def _arrives(self, time_ms: int) -> bool:
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

    def _segment(self, time_ms: int) -> bytes:
        return pack_time(time_ms // self._segment_ms)

    def _segments(self, from_ms: int, to_ms: int, *, reverse: bool) -> Iterable[bytes]:
        """Return the segments with live entries between two times, both included."""
        first = max(from_ms, self._live_from_ms) // self._segment_ms
        last = min(to_ms, self._stream_time_ms) // self._segment_ms
        numbers = range(first, last + 1)
        return map(pack_time, reversed(numbers) if reverse else numbers)

    def _expire(self) -> None:
        dead = self._live_from_ms // self._segment_ms
        if dead > self._expired_segments:
            self._expired_segments = dead
            self._disk.delete_range(pack_time(0), pack_time(dead))
            if self._by_time:
                gone = pack_time(dead * self._segment_ms)
                self._disk.delete_range(BY_TIME, BY_TIME + gone)

    def _replayed(self, entries: Iterable[ChangelogEntry]) -> Iterable[tuple[bytes, bytes | None]]:
        entries = list(entries)
        time_of = self._time_of
        times = [time_of(key) for key, _, _ in entries]
        if times:
            self._stream_time_ms = max(self._stream_time_ms, *times)
        replayed = [
            (
                self._segment(time_ms) + key,
                None if value is None else pack_time(timestamp_ms) + value,
            )
            for time_ms, (key, value, timestamp_ms) in zip(times, entries, strict=True)
        ]
        if self._by_time:
            replayed += [
                (self._at_time(key), None if stored is None else b"") for key, stored in replayed
            ]
        return replayed
