"""What window and session stores share: entries belong to a time, and are forgotten by it.

A store's stream time is the largest time it has been given; what lies `retention_ms` or more behind
it has expired: it is not returned, and a write there is dropped and counted. On disk a key stands
in the segment of its time, so that whole segments go at once when the last time in them expires.
Rule: AbstractRocksDBSegmentedBytesStore and InMemoryWindowStore of Kafka Streams 4.3, which drops a
write to a RocksDB store only when its whole segment has expired, and never returns it before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from state.cache import ObjectCache
from state.keys import SEGMENT_BYTES, pack_time, segment_ms_for
from state.store import ChangelogEntry, Checkpoint, Disk
from state.transaction import Codecs, TransactionalStore, no_record
from state.windowed import Windowed

V = TypeVar("V")


class SegmentedStore(TransactionalStore[Windowed[Any], V]):
    """Entries by key and time, kept for `retention_ms` behind the store's stream time."""

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
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = no_record,
    ) -> None:
        self._retention_ms = retention_ms
        self._segment_ms = segment_ms or segment_ms_for(retention_ms)
        self._layout = f"{self._kind} in segments of {self._segment_ms} ms"
        super().__init__(name, disk, codecs, cache=cache, clock=clock)
        self._expired_segments = 0
        """Segments below are gone from the disk."""
        self.dropped = 0
        """How many writes came too late to be kept."""

    @property
    def stream_time_ms(self) -> int:
        """The largest time that this store has been given; -1: none yet."""
        return self._stream_time_ms

    def commit(self, checkpoint: Checkpoint) -> None:
        super().commit(checkpoint)
        self._expire()

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        super().replay(entries, checkpoint)
        self._expire()

    def clear(self) -> None:
        super().clear()
        self._expired_segments = 0

    def _time_of(self, logged: bytes) -> int:
        """The time by which a changelog's key is kept."""
        raise NotImplementedError

    @property
    def _live_from_ms(self) -> int:
        return max(self._stream_time_ms - self._retention_ms + 1, 0)

    def _arrives(self, time_ms: int) -> bool:
        """Whether a write at `time_ms` is kept; moves stream time."""
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
        """The segments that have something alive between the two times, both included."""
        first = max(from_ms, self._live_from_ms) // self._segment_ms
        last = min(to_ms, self._stream_time_ms) // self._segment_ms
        numbers = range(first, last + 1)
        return map(pack_time, reversed(numbers) if reverse else numbers)

    def _expire(self) -> None:
        dead = self._live_from_ms // self._segment_ms
        if dead > self._expired_segments:
            self._expired_segments = dead
            self._disk.delete_range(pack_time(0), pack_time(dead))

    def _replayed(self, entries: Iterable[ChangelogEntry]) -> Iterable[tuple[bytes, bytes | None]]:
        entries = list(entries)
        time_of = self._time_of
        times = [time_of(key) for key, _, _ in entries]
        if times:
            self._stream_time_ms = max(self._stream_time_ms, *times)
        return [
            (
                self._segment(time_ms) + key,
                None if value is None else pack_time(timestamp_ms) + value,
            )
            for time_ms, (key, value, timestamp_ms) in zip(times, entries, strict=True)
        ]
