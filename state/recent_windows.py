"""Keep the newest entries of stores in memory, so that joins and sessions are found without a scan.

A join looks up the last few moments of one key for each record, and so does an aggregation of
sessions. On disk that is an iterator; here it is a dict. The store stays the truth: this is a copy
of it, complete from a time on. Of sessions it has the bounds only, by their end, and may have some
that are no more: the store is asked for the value of each.

Theory of operation. `complete_from_ms` is a time such that every entry of the store, committed or
not, whose window starts then or later is here. A range that begins there or later is read here, any
other from the store. What is evicted raises that time, so a range never misses an entry.

    operation      when                                   complete from
    restart        open, rollback, replay of a changelog  after the store's stream time: nothing on
                                                          disk is newer, and nothing is here
    add_entry      a put                                  as before
    remove_entry   a session is merged into another, or   as before
                   is found to be no more
    evict_before   commit: what has expired               the end of what was evicted
    evict_oldest   commit: beyond the thread's budget     the end of what was evicted

Entries lie in buckets of time, which are evicted whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from state.keys import (
    TIME_MAX,
    WINDOW_SUFFIX_BYTES,
    StartMs,
    StoredBytes,
    pack_time,
    unpack_window,
)

RECENT_WINDOWS_MAX_BYTES = 32 << 20
"""The memory that the newest entries of all stores of a process may take, in bytes."""

_BUCKET_MS_MIN = 10
_BUCKET_BYTES = 400
"""The measured size of an empty bucket, with its places in the dict and the list of numbers."""
_ENTRY_BYTES = 200
"""The measured size of an entry and its place in a bucket, without the bytes of key and value."""
_AFTER_SEQUENCES = b"\xff"
"""Sorts after every sequence number."""


class _Bucket:
    """Holds the entries of a stretch of time by key, and their size in bytes.

    An entry is what the store has in its key after the key's own bytes (start and sequence number),
    and the value: entries sort as on disk, and the garbage collector need not visit them. A key has
    a single entry, or a list of them in order.
    """

    __slots__ = ("bytes", "entries_by_key")

    def __init__(self) -> None:
        self.entries_by_key: dict[bytes, bytes | list[bytes]] = {}
        self.bytes = _BUCKET_BYTES


class RecentWindows:
    """Holds the entries of one store whose windows start at `complete_from_ms` or later.

    Ranges are best as long as `window_size_ms`. A restore calls `restart` on a thread of its own;
    nothing is here then.
    """

    __slots__ = ("_bucket_ms", "_buckets", "_numbers", "bytes", "complete_from_ms")

    def __init__(self, window_size_ms: int) -> None:
        self._bucket_ms = max(window_size_ms // 2, _BUCKET_MS_MIN)
        self.restart(TIME_MAX)

    def restart(self, complete_from_ms: int) -> None:
        """Forget all entries; the store has none that starts at `complete_from_ms` or later."""
        self._buckets: dict[int, _Bucket] = {}
        self._numbers: list[int] = []
        """The numbers of the buckets, in order."""
        self.bytes = 0
        self.complete_from_ms = complete_from_ms

    def add_entry(self, key: bytes, start_ms: int, suffix: bytes, value: bytes) -> None:
        """Add a written entry to the memory, unless entries as old have been evicted.

        `suffix` is what follows the key on disk: start and sequence number. An entry that is there
        already is not added again.
        """
        if start_ms < self.complete_from_ms:
            return
        number = start_ms // self._bucket_ms
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket()
            insort(self._numbers, number)
            self.bytes += _BUCKET_BYTES
        entry = suffix + value
        entries = bucket.entries_by_key.setdefault(key, entry)
        if entries is not entry:
            if isinstance(entries, bytes):
                if entries == entry:
                    return
                entries = bucket.entries_by_key[key] = [entries]
            index = bisect_left(entries, entry)
            if entries[index : index + 1] == [entry]:
                return
            entries.insert(index, entry)
        size = _ENTRY_BYTES + len(key) + len(entry)
        bucket.bytes += size
        self.bytes += size

    def find_values(
        self, key: bytes, from_ms: int, to_ms: int
    ) -> list[tuple[StartMs, StoredBytes]]:
        """Return start and value of a key's entries that start between two times, in order.

        Both times are included, and `from_ms` is at least `complete_from_ms`.
        """
        return [
            (unpack_window(entry[:WINDOW_SUFFIX_BYTES])[0], entry[WINDOW_SUFFIX_BYTES:])
            for entry in self.find_entries(key, from_ms, to_ms)
        ]

    def find_entries(self, key: bytes, from_ms: int, to_ms: int) -> list[bytes]:
        """Return a key's entries between two times, each as suffix and value, in order.

        Both times are included, and `from_ms` is at least `complete_from_ms`.
        """
        found = self.find_entries_around(key, from_ms, to_ms)
        if not found:
            return found
        first, end = pack_time(from_ms), pack_time(min(to_ms, TIME_MAX)) + _AFTER_SEQUENCES
        if first <= found[0] and found[-1] < end:
            return found
        return found[bisect_left(found, first) : bisect_left(found, end)]

    def find_entries_around(self, key: bytes, from_ms: int, to_ms: int) -> list[bytes]:
        """Return the entries between two times, and perhaps some before and after these."""
        buckets, bucket_ms = self._buckets, self._bucket_ms
        found: list[bytes] = []
        numbers: Sequence[int] = range(from_ms // bucket_ms, to_ms // bucket_ms + 1)
        if len(numbers) > len(self._numbers):
            first = bisect_left(self._numbers, numbers[0])
            numbers = self._numbers[first : bisect_right(self._numbers, numbers[-1])]
        for number in numbers:
            bucket = buckets.get(number)
            entries = None if bucket is None else bucket.entries_by_key.get(key)
            if entries is None:
                continue
            if isinstance(entries, bytes):
                found.append(entries)
            else:
                found += entries
        return found

    def remove_entry(self, key: bytes, start_ms: int, entry: bytes) -> None:
        """Remove an entry that the store has no more; does nothing if it is not here."""
        bucket = self._buckets.get(start_ms // self._bucket_ms)
        entries = None if bucket is None else bucket.entries_by_key.get(key)
        if bucket is None or entries is None:
            return
        if isinstance(entries, list) and entry in entries:
            entries.remove(entry)
            if not entries:
                del bucket.entries_by_key[key]
        elif entries == entry:
            del bucket.entries_by_key[key]
        else:
            return
        size = _ENTRY_BYTES + len(key) + len(entry)
        bucket.bytes -= size
        self.bytes -= size

    def evict_before(self, time_ms: int) -> None:
        """Evict the buckets that end at `time_ms` or before."""
        while self._numbers and (self._numbers[0] + 1) * self._bucket_ms <= time_ms:
            self.evict_oldest()

    def evict_oldest(self) -> None:
        """Evict the oldest bucket; there is one."""
        number = self._numbers.pop(0)
        self.bytes -= self._buckets.pop(number).bytes
        self.complete_from_ms = max(self.complete_from_ms, (number + 1) * self._bucket_ms)


class RecentWindowsBudget:
    """Bounds the memory that the newest entries of a thread's stores take, in bytes.

    What a transaction adds is bounded with its other writes; the budget holds after each commit.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._windows: list[RecentWindows] = []

    @property
    def used_bytes(self) -> int:
        """Return about how much memory the entries of all stores take, in bytes."""
        return sum(windows.bytes for windows in self._windows)

    def add_store(self, window_size_ms: int) -> RecentWindows:
        """Register one more store and return the place for its newest entries."""
        windows = RecentWindows(window_size_ms)
        self._windows.append(windows)
        return windows

    def remove_store(self, windows: RecentWindows) -> None:
        """Remove the entries of a store that is closed; a second call does nothing."""
        windows.restart(TIME_MAX)
        if windows in self._windows:
            self._windows.remove(windows)

    def evict_to_fit(self) -> None:
        """Evict oldest buckets, of the store that takes most, until all fit the budget."""
        while self.used_bytes > self._max_bytes:
            max(self._windows, key=lambda windows: windows.bytes).evict_oldest()
