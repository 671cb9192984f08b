"""Read the checkpoint of a store's disk, clear it and close it, for stores of every kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from state.buffered_change import Headers
from state.cache import ObjectCache, StoreCache
from state.disk_layout import HeldBackDisk
from state.early_serialization import ChangeLimit, RefusedChange
from state.errors import StoreSerdeError
from state.shown_values import quote_value
from state.store import StoreDisk
from state.store_checkpoint import StoreCheckpoint


class DiskBackedStore(ABC):
    """Owns a store's disk and its part of the cache above it."""

    name: str
    _disk: StoreDisk
    _cache: ObjectCache
    _cached: StoreCache
    _committed_stream_time_ms: int
    changelog_headers: Headers | None = None
    """Headers of every value in the changelog."""
    _size_limit: tuple[Callable[[], object], ChangeLimit] | None = None
    """The limit of the changelog, where it has refused a larger change, and what to call then."""

    @abstractmethod
    def rollback_transaction(self) -> None:
        """Undo the running transaction; the disk was never touched by it."""

    def read_checkpoint(self) -> StoreCheckpoint | None:
        """Return the checkpoint of the committed state, or None if the store was never written."""
        return self._disk.read_checkpoint()

    @property
    def rebuild_reason(self) -> str:
        """Return why the store can't be used before `clear_all_data`; empty if it can be.

        What is on its disk has another layout. Damage is raised by each call instead.
        """
        return self._disk.reason if isinstance(self._disk, HeldBackDisk) else ""

    def raise_if_corrupted(self) -> None:
        """Raise StoreCorrupted if a read has found damage, also if its error was caught."""
        self._disk.raise_if_corrupted()

    def serialize_early(
        self, on_refused: Callable[[], object] | None, limit: ChangeLimit | None = None
    ) -> None:
        """Refuse changes larger than `limit` from the next write on; None accepts any size again.

        A store of this kind serialises each value as it is written anyway. `on_refused` is called
        for each change that is refused.
        """
        is_limited = on_refused is not None and limit is not None
        self._size_limit = (on_refused, limit) if is_limited else None  # type: ignore[assignment]

    def _refuse_large_change(self, key: object, size: int) -> None:
        """Raise StoreSerdeError if a change has more bytes than the changelog takes.

        The caller has changed nothing yet, and calls it only where `_size_limit` is not None.
        """
        assert self._size_limit is not None
        on_refused, limit = self._size_limit
        if size > limit.bytes_max:
            on_refused()
            raise StoreSerdeError(
                f"store {self.name!r} can't keep the value of key {quote_value(key)}: it has "
                f"{size} bytes, and its changelog takes {limit.bytes_max} with the key "
                f"({limit.reason}): keep less in one value, or raise that setting"
            )

    def serialize_mutated_objects(self) -> list[RefusedChange]:
        """Return nothing: no object of the store can be changed in place."""
        return []

    def finish_restore(self) -> None:
        """Make durable what was replayed, since the restore has ended or paused."""
        self._disk.finish_load()

    def clear_all_data(self) -> None:
        """Delete all data, committed state included, because it may not match the changelog."""
        self._committed_stream_time_ms = -1
        # Before the rollback, which walks over the cached entries: a restorer clears on a thread of
        # its own while a commit of another store may evict from them.
        self._cached.evict_all()
        self.rollback_transaction()
        self._disk.clear_all_data()
        if isinstance(self._disk, HeldBackDisk):
            self._disk = self._disk.disk

    def close(self) -> None:
        """Release the disk; what was not committed is lost."""
        self.rollback_transaction()
        self._cache.remove_store_cache(self._cached)
        self._disk.close()
