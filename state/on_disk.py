"""What stores of every kind do with their disk beside transactions: position, clearing, closing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from state.buffered import Headers
from state.cache import ObjectCache, Share
from state.early import RefusedChange
from state.store import Checkpoint, Disk


class OnDisk(ABC):
    """A store's disk, and its share of the cache above it."""

    _disk: Disk
    _cache: ObjectCache
    _cached: Share
    _committed_stream_time_ms: int
    changelog_headers: Headers | None = None
    """Of every value in the changelog."""

    @abstractmethod
    def rollback(self) -> None:
        """Forget the transaction. The disk was never touched by it."""

    def checkpoint(self) -> Checkpoint | None:
        """Where the committed state stands in the changelog; None for a store never written."""
        return self._disk.checkpoint()

    def check(self) -> None:
        """Raise Corrupt if a read has found damage, also where its error was caught."""
        self._disk.check()

    def serialize_early(self, on_refused: Callable[[], object] | None) -> None:
        """Go on: a store of this kind serialises each value as it is written anyway."""
        return

    def settle(self) -> list[RefusedChange]:
        """Return nothing: no object of the store can be changed in place."""
        return []

    def caught_up(self) -> None:
        """The restore has ended, or paused: make durable what was replayed."""
        self._disk.loaded()

    def clear(self) -> None:
        """Forget everything, committed state included: only for a store that could lie."""
        self._committed_stream_time_ms = -1
        self.rollback()
        self._cached.clear()
        self._disk.clear()

    def close(self) -> None:
        """Release the disk. What was not committed is forgotten."""
        self.rollback()
        self._cache.give_back(self._cached)
        self._disk.close()
