"""Serialise the writes of a transaction once, for the changelog, the disk and the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.cache import ENTRY_BYTES, StoreCache
from state.entry import SCALARS, StoreEntry, is_immutable
from state.errors import create_store_serde_error
from state.keys import pack_time
from state.store import ChangelogEntry


class DrainedWrites:
    """Holds the serialised writes of one transaction until its outcome is known."""

    __slots__ = (
        "admits_new",
        "cache_growth_bytes",
        "cached_count",
        "changes",
        "deleted",
        "entries",
        "mutable_entries",
        "new_keys",
    )

    def __init__(self, *, admits_new: bool) -> None:
        self.admits_new = admits_new
        """Entries that were not cached before will be."""
        self.entries: list[ChangelogEntry] = []
        self.changes: dict[bytes, bytes | None] = {}
        """The entries as they will be on disk."""
        self.new_keys: list[bytes] = []
        """Some of the changed keys that had no entry before this transaction."""
        self.deleted: list[bytes] = []
        self.mutable_entries: list[StoreEntry[Any, Any]] = []
        """The entries whose objects can be changed in place."""
        self.cache_growth_bytes = 0
        """The bytes by which the entries make the cache grow."""
        self.cached_count = 0
        """The number of entries that were cached before."""

    def commit_to_cache(
        self, cached: StoreCache, overlay: Mapping[bytes, StoreEntry[Any, Any]]
    ) -> None:
        """Put what is committed into the store's cache, but no object that can be changed."""
        if self.admits_new:
            cached.entries.update(overlay)
        elif self.cached_count:
            cached.entries.update({key: entry for key, entry in overlay.items() if entry.used})
        for key in self.deleted:
            cached.entries.pop(key, None)
        for entry in self.mutable_entries:
            entry.value = None  # to be decoded when it is used
        cached.bytes += self.cache_growth_bytes


def serialize_overlay(
    store_name: str,
    overlay: Mapping[bytes, StoreEntry[Any, Any]],
    encode_value: Callable[[Any], bytes],
    *,
    prefix_bytes: int,
    commit_count: int,
    admits_new: bool,
) -> DrainedWrites:
    """Serialise each entry of an overlay once, and note in it the bytes that it will have on disk.

    The changelog's keys are those of the disk without the first `prefix_bytes`. `admits_new`:
    whether entries that were not cached before will be. Raises StoreSerdeError for a value that
    the serde refuses.
    """
    drained = DrainedWrites(admits_new=admits_new)
    entries, changes = drained.entries, drained.changes
    deleted, mutable_entries = drained.deleted, drained.mutable_entries
    grown = cached_count = 0
    for key, entry in overlay.items():
        value = entry.value
        timestamp_ms = entry.timestamp_ms
        logged = key[prefix_bytes:] if prefix_bytes else key
        if value is None:
            if entry.used:  # it came from the cache, and is counted there
                cached_count += 1
                grown -= ENTRY_BYTES + 2 * (len(key) + len(entry.stored or b""))
            entries.append((logged, None, timestamp_ms))
            changes[key] = None
            deleted.append(key)
            continue
        try:
            encoded = encode_value(value)
        except Exception as error:
            raise create_store_serde_error(store_name, "value", value, error) from error
        entries.append((logged, encoded, timestamp_ms))
        changes[key] = stored = pack_time(timestamp_ms) + encoded
        if entry.used:
            cached_count += 1
            grown += 2 * (len(stored) - len(entry.stored or b""))
            entry.used = commit_count
        elif admits_new:
            grown += ENTRY_BYTES + 2 * (len(key) + len(stored))
            entry.used = commit_count
        entry.stored = stored
        if type(value) not in SCALARS and not is_immutable(value):
            mutable_entries.append(entry)
    drained.cache_growth_bytes, drained.cached_count = grown, cached_count
    return drained


def create_write_after_drain_error(store_name: str) -> RuntimeError:
    """Return the error of a write between `drain_writes` and the outcome of the transaction."""
    return RuntimeError(f"store {store_name!r}: a write after drain would miss the changelog")
