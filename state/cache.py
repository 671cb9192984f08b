"""Cache committed values of the keys used last, above the disks of several stores.

All stores of a thread share one budget of bytes; the entry used longest ago is evicted first, in
whichever store it is. Use is counted in commits: within one, order does not matter.

The cache has committed values only: the bytes as they are on disk, and the decoded object beside
them if it can't be changed in place. An object that can be changed is decoded anew for each
transaction that uses it: user code may still hold the one that was committed, in another store too,
and change it whenever it likes.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, TypeAlias

from state.entry import StoreEntry, is_immutable
from state.recent_windows import RECENT_WINDOWS_MAX_BYTES, RecentWindowsBudget

AverageMinMax: TypeAlias = tuple[float, float, float]

ENTRY_BYTES = 360
"""The measured size of an entry, the three objects that it surely has, and its place in a dict."""
_WRITES_JUDGED = 1_000
"""The number of writes after which a store's cache is judged by how many of them it had."""
_USEFUL_SHARE = 16
"""One write in so many has to be found in a full cache: else it costs more than it saves."""
_RATIOS_KEPT = 300
"""The number of commits of which the shares of keys that the cache had are kept."""
_COMMITS_SKIPPED = 15
"""The number of commits that a cache of little use skips, until one fills it again."""


class StoreCache:
    """Holds the cached entries of one store, the least recently used first.

    `bytes` counts what a transaction has taken out to write it, too, until its outcome. A restore
    clears the cache of a store that is behind, on a thread of its own.

    A store whose keys hardly ever come again gains nothing by a cache, and evicting the oldest
    entries costs more than the look-ups that it saves. Then what a commit has written is cached
    only if it was before (`admits_new`). Every 16th commit is cached nevertheless, so that keys
    that come again later are noticed.
    """

    __slots__ = (
        *("_found", "_hit_ratios", "_skipped", "_written"),
        *("admits_new", "bytes", "entries"),
    )

    def __init__(self) -> None:
        self.entries: dict[bytes, StoreEntry[Any, Any]] = {}
        self.bytes = 0
        self.admits_new = True
        """The next commit caches entries that were not cached before."""
        self._written = self._found = self._skipped = 0
        self._hit_ratios: deque[float] = deque(maxlen=_RATIOS_KEPT)

    @property
    def hit_ratio(self) -> AverageMinMax | None:
        """Return average, minimum and maximum of the shares of keys that the cache had.

        They are of the last commits that wrote to the store; None before the first.
        """
        ratios = list(self._hit_ratios)
        return (sum(ratios) / len(ratios), min(ratios), max(ratios)) if ratios else None

    def choose_caching_by_use(self, written_count: int, found_count: int, *, is_full: bool) -> None:
        """Choose whether the next commit caches new entries.

        `written_count`: how many entries this commit has; `found_count`: how many of them the cache
        had. `is_full`: whether a new entry has another one evicted.
        """
        self._written += written_count
        self._found += found_count
        if written_count:
            self._hit_ratios.append(found_count / written_count)
        if self._written < _WRITES_JUDGED:
            return
        is_useful = self._found * _USEFUL_SHARE >= self._written
        self._written = self._found = 0
        if is_useful or not is_full or self._skipped >= _COMMITS_SKIPPED:
            self.admits_new, self._skipped = True, 0
        else:
            self.admits_new = False
            self._skipped += 1

    def evict_all(self) -> None:
        """Evict all entries of the store."""
        self.entries = {}
        self.bytes = 0

    def recount_bytes(self) -> None:
        """Recompute `bytes` from the entries, after a rollback has discarded some of them."""
        self.bytes = sum(
            estimate_entry_bytes(key, entry.stored or b"") for key, entry in self.entries.items()
        )


class ObjectCache:
    """Keeps a cache for each store of a thread and evicts the oldest entries beyond `max_bytes`.

    Reads evict once they have added a share of that, so that all entries may take 3 % more.

    Beside it, with a budget of their own, are the newest entries of stores that joins scan.
    """

    def __init__(
        self, max_bytes: int, *, recent_windows_max_bytes: int = RECENT_WINDOWS_MAX_BYTES
    ) -> None:
        self._max_bytes = max_bytes
        self._slack_bytes = max_bytes // 32
        self._bytes_read = 0
        """What was added by reads since the last eviction."""
        self.recent_windows = RecentWindowsBudget(recent_windows_max_bytes)
        self._store_caches: list[StoreCache] = []
        self.commit_count = 1
        """The number of commits; an entry has the number of the one that used it last, or 0."""

    @property
    def is_enabled(self) -> bool:
        """Return whether the cache has any room for entries."""
        return self._max_bytes > 0

    @property
    def is_full(self) -> bool:
        """Return whether entries are evicted for new ones, now or soon."""
        return self.used_bytes > self._max_bytes - 4 * self._slack_bytes

    @property
    def used_bytes(self) -> int:
        """Return about how much memory all entries take, in bytes."""
        return sum(share.bytes for share in self._store_caches)

    def add_store_cache(self) -> StoreCache:
        """Register one more store and return its part of the cache."""
        store_cache = StoreCache()
        self._store_caches.append(store_cache)
        return store_cache

    def remove_store_cache(self, store_cache: StoreCache) -> None:
        """Remove the cache of a store that is closed; a second call does nothing."""
        store_cache.evict_all()
        if store_cache in self._store_caches:
            self._store_caches.remove(store_cache)

    def add_read_entry(
        self, store_cache: StoreCache, disk_key: bytes, entry: StoreEntry[Any, Any]
    ) -> None:
        """Cache an entry that was read; only its bytes if the reader could change the object."""
        if not self._max_bytes:
            return
        kept = entry
        stored = entry.stored or b""
        if not is_immutable(entry.value):
            kept = StoreEntry(entry.key, None, entry.timestamp_ms, stored)
        kept.used = self.commit_count
        store_cache.entries[disk_key] = kept
        size = estimate_entry_bytes(disk_key, stored)
        store_cache.bytes += size
        self._bytes_read += size
        if self._bytes_read > self._slack_bytes:  # looking at all stores takes longer than a read
            self.drop_oldest_to_budget()

    def count_commit_and_evict(self) -> None:
        """Count a commit and evict to the budget.

        A store calls this after it has put what it committed into its cache.
        """
        self.commit_count += 1
        self.drop_oldest_to_budget()

    def drop_oldest_to_budget(self) -> None:
        """Drop the entries used longest ago until all entries together fit the budget."""
        self._bytes_read = 0
        excess = self.used_bytes - self._max_bytes
        while excess > 0:
            filled = [store_cache for store_cache in self._store_caches if store_cache.entries]
            if not filled:
                return
            oldest = min(filled, key=_find_commit_of_oldest_use)
            age = _find_commit_of_oldest_use(oldest)
            excess -= _evict_oldest_and_count_bytes(oldest, age, excess)


def estimate_entry_bytes(key: bytes, stored_value: bytes) -> int:
    """Return about how much memory an entry takes, in bytes, from its key and its value on disk.

    Key and value are there as bytes and as objects.
    """
    return ENTRY_BYTES + 2 * (len(key) + len(stored_value))


def _find_commit_of_oldest_use(store_cache: StoreCache) -> int:
    """Return the number of the commit at which the oldest entry was used last."""
    return next((entry.used for entry in store_cache.entries.values()), sys.maxsize)


def _evict_oldest_and_count_bytes(
    store_cache: StoreCache, last_used_commit: int, excess_bytes: int
) -> int:
    """Evict entries last used at that commit or before, and return how many bytes they took.

    Stops when `excess_bytes` are free.
    """
    dropped = 0
    gone = []
    entries = store_cache.entries
    for key, entry in entries.items():
        if entry.used > last_used_commit or dropped >= excess_bytes:
            break
        dropped += estimate_entry_bytes(key, entry.stored or b"")
        gone.append(key)
    for key in gone:
        del entries[key]
    if store_cache.entries is entries:  # else a restore has cleared it meanwhile
        store_cache.bytes -= dropped
    return dropped
