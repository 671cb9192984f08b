"""Read the checkpoint of a store's disk, clear it and close it, for stores of every kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from state.buffered import Headers
from state.cache import ObjectCache, Share
from state.early import RefusedChange
from state.store import Checkpoint, Disk


class OnDisk(ABC):
    """Owns a store's disk and its part of the cache above it."""

    _disk: Disk
    _cache: ObjectCache
    _cached: Share
    _committed_stream_time_ms: int
    changelog_headers: Headers | None = None
    """Headers of every value in the changelog."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the running transaction; the disk was never touched by it."""

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the committed state, or None if the store was never written."""
        return self._disk.checkpoint()

    def check(self) -> None:
        """Raise StoreCorrupted if a read has found damage, also if its error was caught."""
        self._disk.check()

    def serialize_early(self, on_refused: Callable[[], object] | None) -> None:
        """Do nothing: a store of this kind serialises each value as it is written anyway."""
        return

    def settle(self) -> list[RefusedChange]:
        """Return nothing: no object of the store can be changed in place."""
        return []

    def caught_up(self) -> None:
        """Make durable what was replayed, since the restore has ended or paused."""
        self._disk.loaded()

    def clear(self) -> None:
        """Delete all data, committed state included, for a store that may be wrong."""
        self._committed_stream_time_ms = -1
        self.rollback()
        self._cached.clear()
        self._disk.clear()

    def close(self) -> None:
        """Release the disk; what was not committed is lost."""
        self.rollback()
        self._cache.give_back(self._cached)
        self._disk.close()
