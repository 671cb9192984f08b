"""Buffer changes until stream time reaches the time at which they leave, one change for each key.

Theory of operation. Buffered changes are held in memory, as in Kafka Streams, and kept on disk, so
that a restart reads them there instead of the changelog. Their order is a heap of time and key: a
key that is buffered keeps its place when its change is replaced, and only the first ever leaves.

A transaction notes for each key that it touches what was buffered for it before. Those are the
dirty keys that `drain_writes` serialises; a rollback puts back what was before, and rebuilds the
heap. Memory is dropped where the disk changes on its own (restore, clear) and read again at the
next use.

The disk and the changelog have the same bytes: the key, and the change (`state.buffered_change`)
with its time (int64) behind it. A key that has left is a tombstone. Where the time is part of the
key (`time_of`), as in RocksDBTimeOrderedKeyValueBuffer, a 0 stands in its place. Source:
InMemoryTimeOrderedKeyValueChangeBuffer, BufferKey (order by time, then by key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TypeAlias

from state.buffered_change import (
    BufferedChange,
    Headers,
    RecordOrigin,
    change_size_bytes,
    decode_change,
    encode_change,
)
from state.cache import ObjectCache
from state.disk_backed import DiskBackedStore
from state.disk_layout import read_checkpoint_or_hold_disk_back
from state.keys import TIME_MAX, KeyBytes, pack_time, unpack_time
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import raise_no_record

MinTimeMs: TypeAlias = int

_TIME_BYTES = 8
_ENTRY_BYTES = 500
"""The memory that a change takes beside its values, with its places in the dicts and the heap."""
_SAMPLE = 8
"""The keys at each end of a transaction's writes that the estimate of their memory looks at."""

TimeAndKey = tuple[int, bytes]
"""The time in ms at which a key's change leaves, and the key."""
TimedChange = tuple[bytes | None, bytes | None, bytes | None, RecordOrigin, int]
"""The prior, old and new value and the origin of a change, and its time in ms."""


class BufferStore(DiskBackedStore):
    """Buffers one change for each key, in the order of their times (TimeOrderedKeyValueBuffer).

    Keys and values are bytes; times are in ms and not negative. `time_of` returns the time that a
    key of the changelog has in it, where keys have one. A write between `drain_writes` and the
    outcome of the transaction raises RuntimeError.
    """

    _layout = "buffer"
    changelog_headers: Headers | None = (("v", b"\x03"),)
    """Headers of every change in the changelog: the version of its bytes."""

    _before_transaction: dict[bytes, TimedChange | None]
    """The buffered change of each key from before the transaction touched it, or None."""
    _drained: list[ChangelogEntry] | None

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        *,
        time_of: Callable[[bytes], int] | None = None,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        self.name = name
        self.clock = clock
        self._disk, _ = read_checkpoint_or_hold_disk_back(disk, self._layout, name)
        self._time_of = time_of
        self._cache = ObjectCache(0) if cache is None else cache
        self._cached = self._cache.add_store_cache()
        self._changes: dict[bytes, TimedChange] | None = None
        """Each key's change and time; None: they are not read from disk yet."""
        self._heap: list[TimeAndKey] = []
        self._max_timestamp_ms = 0
        """The largest timestamp of a change: changelog entries are written with it."""
        self._size_bytes: int | None = None
        """The size of all changes; None: nobody has asked for it since they were read."""
        self._begin_transaction()

    def put(
        self,
        key: bytes,
        time_ms: int,
        old_value: bytes | None,
        new_value: bytes | None,
        origin: RecordOrigin,
    ) -> MinTimeMs:
        """Buffer a change of `key` until `time_ms`; return when the first buffered change leaves.

        A change of the key that is buffered already is replaced: the new one keeps its time and its
        prior value.
        """
        changes = self._changes
        if changes is None or self._drained is not None:
            changes = self._require_changes_to_write()
        waits = changes.get(key)
        if self._size_limit is not None:
            written = (old_value if waits is None else waits[0], old_value, new_value, origin)
            self._refuse_large_change(key, len(key) + len(encode_change(written)) + _TIME_BYTES)
        self._before_transaction.setdefault(key, waits)
        if waits is None:
            prior = old_value
            heappush(self._heap, (time_ms, key))
        else:
            prior, _, _, _, time_ms = waits
        changes[key] = change = prior, old_value, new_value, origin, time_ms
        if self._size_bytes is not None:
            replaced_bytes = 0 if waits is None else _count_bytes(key, waits)
            self._size_bytes += _count_bytes(key, change) - replaced_bytes
        if origin.timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms = origin.timestamp_ms
        return self._heap[0][0]

    @property
    def min_time_ms(self) -> int:
        """Return the time in ms at which the first change leaves.

        Without any it is later than every time, also than that of a record at `TIME_MAX`.
        """
        if self._changes is None:
            self._get_or_read_changes()
        return self._heap[0][0] if self._heap else TIME_MAX + 1

    def peek_first(self) -> tuple[KeyBytes, BufferedChange]:
        """Return the key and the change that leave first: the earliest time, then the smallest key.

        Raises IndexError if the buffer is empty.
        """
        if self._changes is None:
            self._get_or_read_changes()
        assert self._changes is not None
        key = self._heap[0][1]
        return key, _to_change(self._changes[key])

    def evict_first(self) -> None:
        """Remove the change that `peek_first` returns."""
        changes = self._require_changes_to_write()
        _, key = heappop(self._heap)
        left = changes.pop(key)
        self._before_transaction.setdefault(key, left)
        if self._size_bytes is not None:
            self._size_bytes -= _count_bytes(key, left)

    def find_change(self, key: bytes) -> BufferedChange | None:
        """Return the buffered change of `key`, or None."""
        if self._changes is None:
            self._get_or_read_changes()
        assert self._changes is not None
        waits = self._changes.get(key)
        return None if waits is None else _to_change(waits)

    def buffered_keys(self) -> Iterable[bytes]:
        """Return the keys of all buffered changes, in no order."""
        if self._changes is None:
            self._get_or_read_changes()
        assert self._changes is not None
        return self._changes.keys()

    @property
    def record_count(self) -> int:
        """Return the number of buffered changes."""
        if self._changes is None:
            self._get_or_read_changes()
        return len(self._heap)

    @property
    def size_bytes(self) -> int:
        """Return the memory in bytes that the buffered changes take, as Kafka Streams counts it.

        The first call counts all changes; writes keep the count from then on.
        """
        changes = self._get_or_read_changes() if self._changes is None else self._changes
        if self._size_bytes is None:
            self._size_bytes = sum(_count_bytes(key, change) for key, change in changes.items())
        return self._size_bytes

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the running transaction's writes take, in bytes.

        It is estimated by a sample, the first and the last keys that were written.
        """
        written, changes = self._before_transaction, self._changes or {}
        sample = list(islice(written, _SAMPLE))
        sample += islice(reversed(written), min(len(written) - len(sample), _SAMPLE))
        if not sample:
            return 0
        waiting = ((key, changes[key]) for key in sample if key in changes)
        counted = sum(_count_bytes(key, change) for key, change in waiting)
        return (_ENTRY_BYTES * len(sample) + counted) * len(written) // len(sample)

    def drain_writes(self) -> list[ChangelogEntry]:
        """Serialise each key that the transaction touched once and return the changelog entries.

        Returns the same list until the outcome. A key that came and went is a tombstone too, as in
        Kafka Streams.
        """
        if self._drained is None:
            changes, has_time = self._changes or {}, self._time_of is None
            timestamp_ms = self._max_timestamp_ms
            self._drained = drained = []
            for key in self._before_transaction:
                change = changes.get(key)
                stored = None
                if change is not None:
                    stored = encode_change(change[:-1]) + pack_time(change[-1] if has_time else 0)
                drained.append((key, stored, timestamp_ms))
        return self._drained

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Write the drained entries and `checkpoint` to disk, after Kafka has committed them.

        Raises RuntimeError before `drain_writes`.
        """
        if self._drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        if self._drained:
            written = {key: value for key, value, _ in self._drained}
            self._disk.write_changes(written, self._add_store_state_to_checkpoint(checkpoint))
        self._begin_transaction()

    def rollback_transaction(self) -> None:
        """Undo the transaction's changes in memory; the disk was never touched by it."""
        changes = self._changes
        if changes is not None and self._before_transaction:
            for key, was in self._before_transaction.items():
                if was is None:
                    changes.pop(key, None)
                else:
                    changes[key] = was
            self._rebuild_heap(changes)
        self._begin_transaction()

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Write committed changelog entries to disk and drop the changes that memory has.

        Replaying the same entries again is safe.
        """
        self._disk.load_changes(
            ((key, value) for key, value, _ in entries),
            self._add_store_state_to_checkpoint(checkpoint),
        )
        self._changes = None

    def clear_all_data(self) -> None:
        super().clear_all_data()
        self._changes = None

    def _begin_transaction(self) -> None:
        """Start a new transaction that has touched no key."""
        self._before_transaction = {}
        self._drained = None

    def _require_changes_to_write(self) -> dict[bytes, TimedChange]:
        """Return the changes, read from disk if needed, or raise RuntimeError after the drain."""
        if self._drained is not None:
            raise RuntimeError(f"store {self.name!r}: a write after drain would miss the changelog")
        return self._get_or_read_changes() if self._changes is None else self._changes

    def _get_or_read_changes(self) -> dict[bytes, TimedChange]:
        """Read all buffered changes from disk into memory and return them by key."""
        changes: dict[bytes, TimedChange] = {}
        for key, stored in self._disk.range(None, None):
            change, at = decode_change(stored)
            (time_ms,) = unpack_time(stored[at : at + _TIME_BYTES])
            if self._time_of is not None:
                time_ms = self._time_of(key)
            changes[key] = (*change, time_ms)
        self._changes = changes
        self._rebuild_heap(changes)
        return changes

    def _rebuild_heap(self, changes: dict[bytes, TimedChange]) -> None:
        """Rebuild the heap from the changes; their size is counted when it is asked for."""
        self._heap = [(change[-1], key) for key, change in changes.items()]
        heapify(self._heap)
        self._size_bytes = None

    def _add_store_state_to_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Return `checkpoint` with this store's disk layout in it."""
        return replace(checkpoint, layout=self._layout)


def _to_change(timed_change: TimedChange) -> BufferedChange:
    """Return a buffered change without its time."""
    return BufferedChange(*timed_change[:-1])


def _count_bytes(key: bytes, timed_change: TimedChange) -> int:
    """Return the bytes that a key and its change count in the buffer's size."""
    return _TIME_BYTES + len(key) + change_size_bytes(timed_change[:-1])
