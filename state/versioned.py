"""Store the versions of each key's value, to read it as of a time in the history.

Each version is an entry of its own: on disk by key and timestamp, one byte (1: a value follows, 0:
deleted) and the value; in the changelog the plain key and value, the timestamp in the record, as
Kafka Streams writes it. The end of a version's validity is not stored: it holds until the next one.
So a version that arrives late changes no other entry, and replaying any part of the changelog twice
is safe.

A version is encoded when it is put, once: it never changes afterwards.

A changelog of versions can't be compacted by a broker, which knows only the last record of a key:
that may be an earlier version, put late. Instead the store writes what it has into the changelog
again (`state.version_rewrite`), and the records below are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from state.cache import ObjectCache, estimate_entry_bytes
from state.disk_backed import DiskBackedStore
from state.disk_layout import read_checkpoint_or_hold_disk_back
from state.drained_writes import create_write_after_drain_error
from state.entry import StoreEntry
from state.errors import create_store_serde_error
from state.guessed_names import explain_guessed_names
from state.keys import (
    TIME_MAX,
    VERSION_SUFFIX_BYTES,
    DiskChange,
    StoredBytes,
    TimestampMs,
    pack_time,
    unpack_time,
)
from state.overlay import SortedOverlayKeys, merge_overlay
from state.state_serdes import StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.transaction import raise_no_record
from state.ttl_sweep import TtlSweep
from state.version_rewrite import VersionRewrite

V = TypeVar("V")

VALID_TO_UNDEFINED = -1
"""Returned by `put` for a version that is the latest of its key."""
NOT_PUT = -(2**63)
"""Returned by `put` for a version that is older than the store's history, and was not kept."""
_LAYOUT = "versioned"
_DELETED = b"\0"
_VALUE = b"\1"
_ENTRY_BYTES = 200


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[V]):
    """Represents a value that is valid from `timestamp_ms` to `valid_to_ms`, which is excluded.

    `valid_to_ms` is None for the latest version.
    """

    value: V
    timestamp_ms: int
    valid_to_ms: int | None


@explain_guessed_names({})
class VersionedStore(DiskBackedStore, Generic[V]):
    """Stores versions of values by key and timestamp (Kafka Streams' VersionedKeyValueStore).

    `history_ms` says how far behind stream time, the largest timestamp put, a value can be read and
    a version can be put. `is_source_topic`: the store is restored from the topic of its table,
    which also has the versions that came too late.
    """

    _stream_time_ms: int
    _overlay: dict[bytes, bytes]
    _latest_written: dict[bytes, StoreEntry[None, None]]
    """The latest version, as bytes, of each key that this transaction has written."""
    _drained: list[ChangelogEntry] | None
    _expired_keys: list[bytes]
    """The keys on disk of versions that have expired."""

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        *,
        history_ms: int,
        is_source_topic: bool = False,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        self.name = name
        self.clock = clock
        self._disk, checkpoint = read_checkpoint_or_hold_disk_back(disk, _LAYOUT, name)
        self._cache = ObjectCache(0) if cache is None else cache
        self._cached = self._cache.add_store_cache()
        self._sweep = TtlSweep(disk)
        self._swept_last: bytes | None = None
        """The key on disk of the last version that the sweep has seen."""
        self._encode_key, self._decode_key, self._encode_value, self._decode_value = codecs
        self._history_ms = history_ms
        self._is_source_topic = is_source_topic
        self._rewrite: VersionRewrite | None = None
        self.dropped = 0
        """The number of versions that came too late to be kept."""
        self._committed_stream_time_ms = -1 if checkpoint is None else checkpoint.stream_time_ms
        self._begin_transaction()

    def put(self, key: Any, value: V | None, timestamp_ms: int | None = None) -> int:
        """Add the version of `key` as of `timestamp_ms`, and return when its validity ends.

        None as value is a deletion. Returns VALID_TO_UNDEFINED if it is the latest version, NOT_PUT
        if it is older than the history and was not kept. A second version of the same time replaces
        the first.
        """
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        encoded = self._serialize_key(key)
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        if timestamp_ms < self._stream_time_ms - self._history_ms:
            self.dropped += 1
            return NOT_PUT
        stored = _DELETED if value is None else _VALUE + self._serialize_value(value)
        if self._size_limit is not None:
            self._refuse_large_change(key, len(encoded) + len(stored) - 1)
        self._stream_time_ms = max(self._stream_time_ms, timestamp_ms)
        latest = self._find_latest_version(encoded)
        self._overlay[encoded + pack_time(timestamp_ms)] = stored
        self._overlay_bytes += _ENTRY_BYTES + 3 * len(encoded) + len(stored)
        if latest is None or timestamp_ms >= latest.timestamp_ms:
            self._latest_written[encoded] = StoreEntry(None, None, timestamp_ms, stored)
            return VALID_TO_UNDEFINED
        until: int
        until, _ = next(
            self._iterate_versions_between(encoded, timestamp_ms + 1, TIME_MAX, reverse=False)
        )
        return until

    def delete(self, key: Any, timestamp_ms: int | None = None) -> VersionedRecord[V] | None:
        """Put a deletion of `key`, and return the version that was valid at that time.

        Returns None if none was, or if the time is older than the history.
        """
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        own = type(self)  # a caller may count calls of all three methods
        was = own.get(self, key, timestamp_ms)
        return None if own.put(self, key, None, timestamp_ms) == NOT_PUT else was

    def get(self, key: Any, as_of_ms: int | None = None) -> VersionedRecord[V] | None:
        """Return the latest version of `key`, or the one that was valid at `as_of_ms`, or None.

        None: there is none, or it was deleted. For a time older than the history only the latest
        version is returned, if it was valid then.
        """
        encoded = self._serialize_key(key)
        latest = self._find_latest_version(encoded)
        if latest is None:
            return None
        if as_of_ms is None or as_of_ms >= latest.timestamp_ms:
            return self._to_record(latest.timestamp_ms, latest.stored or _DELETED, None)
        if as_of_ms < self._stream_time_ms - self._history_ms:
            return None
        found = next(self._iterate_versions_between(encoded, 0, as_of_ms, reverse=True), None)
        if found is None:
            return None
        following = self._iterate_versions_between(
            encoded, as_of_ms + 1, latest.timestamp_ms, reverse=False
        )
        return self._to_record(*found, next(following)[0])

    def fetch_versions(self, key: Any, from_ms: int, to_ms: int) -> Iterator[VersionedRecord[V]]:
        """Yield the versions of `key` that were valid at some time between two, oldest first.

        Both times are included. Deletions, and what was valid before the history only, are left
        out. Kafka Streams' MultiVersionedKeyQuery.
        """
        versions = list(
            self._iterate_versions_between(self._serialize_key(key), 0, TIME_MAX, reverse=False)
        )
        ends_ms = [timestamp_ms for timestamp_ms, _ in versions[1:]]
        begin_ms = self._stream_time_ms - self._history_ms
        found = [
            self._to_record(timestamp_ms, stored, valid_to_ms)
            for (timestamp_ms, stored), valid_to_ms in zip(versions, [*ends_ms, None], strict=False)
            if timestamp_ms <= to_ms
            and (
                valid_to_ms is None or (valid_to_ms > max(from_ms, begin_ms) and to_ms >= begin_ms)
            )
        ]
        return (record for record in found if record is not None)

    def backward_fetch_versions(
        self, key: Any, from_ms: int, to_ms: int
    ) -> Iterator[VersionedRecord[V]]:
        """Yield the versions of `key` that were valid between two times, the latest first."""
        return reversed(list(self.fetch_versions(key, from_ms, to_ms)))

    def _to_record(
        self, timestamp_ms: int, stored_version: bytes, valid_to_ms: int | None
    ) -> VersionedRecord[V] | None:
        if stored_version == _DELETED:
            return None
        return VersionedRecord(self._decode_value(stored_version[1:]), timestamp_ms, valid_to_ms)

    @property
    def stream_time_ms(self) -> int:
        """Return the largest timestamp that this store has been given, or -1 before the first."""
        return self._stream_time_ms

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the running transaction's writes take, in bytes."""
        return self._overlay_bytes

    @property
    def is_rewriting(self) -> bool:
        """Return whether a rewrite has begun that is not committed to its end."""
        return self._rewrite is not None

    @property
    def ended_rewrite(self) -> VersionRewrite | None:
        """Return the rewrite that ends with the running transaction; None if none does."""
        rewrite = self._rewrite
        return rewrite if rewrite is not None and rewrite.is_complete else None

    def begin_rewrite(self, changelog_offset: int) -> None:
        """Begin to write all versions on disk into the changelog again, some with each commit.

        `changelog_offset` is the position at which the committed state is. A rollback ends it.
        """
        self._rewrite = VersionRewrite(self._disk, changelog_offset)

    def drain_writes(self) -> list[ChangelogEntry]:
        """Return the changelog entries of the versions put; the same list until the outcome.

        While the store is rewritten, the next versions on disk are among them.
        """
        if self._drained is None:
            self._expired_keys = self._advance_sweep_and_list_expired()
            changes = self._overlay
            if self._rewrite is not None:
                again = self._rewrite.advance_to_next_entries(len(changes), self._overlay_bytes)
                for key in self._expired_keys:
                    again.pop(key, None)
                changes = again | changes
            self._drained = [
                (
                    key[:-VERSION_SUFFIX_BYTES],
                    None if stored == _DELETED else stored[1:],
                    unpack_time(key[-VERSION_SUFFIX_BYTES:])[0],
                )
                for key, stored in changes.items()
            ]
        return self._drained

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Write the drained versions and `checkpoint` to disk, after Kafka has committed them.

        Raises RuntimeError before `drain_writes`.
        """
        if self._drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        if self._drained or self._expired_keys:
            changes: dict[bytes, bytes | None] = dict.fromkeys(self._expired_keys)
            self._disk.write_changes(
                changes | self._overlay, self._add_store_state_to_checkpoint(checkpoint)
            )
        self._committed_stream_time_ms = self._stream_time_ms
        for encoded, entry in self._latest_written.items():
            self._cache_latest_version(encoded, entry)
        self._cache.count_commit_and_evict()
        if self.ended_rewrite is not None:
            self._rewrite = None
        self._begin_transaction()

    def rollback_transaction(self) -> None:
        """Discard the transaction's versions; the disk was never touched by it."""
        self._sweep.restart()
        self._rewrite = None
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        """Start a new transaction that has put no version."""
        self._overlay = {}
        self._overlay_bytes = 0
        self._order = SortedOverlayKeys(self._overlay)
        self._latest_written = {}
        self._drained = None
        self._expired_keys = []
        self._stream_time_ms = self._committed_stream_time_ms

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Write committed changelog entries to disk; replaying the same entries again is safe."""
        changes: list[DiskChange] = []
        for key, value, timestamp_ms in entries:
            if self._is_source_topic and timestamp_ms < self._stream_time_ms - self._history_ms:
                continue  # it was dropped when it was read
            stored = _DELETED if value is None else _VALUE + value
            changes.append((key + pack_time(timestamp_ms), stored))
            self._stream_time_ms = max(self._stream_time_ms, timestamp_ms)
        self._disk.load_changes(changes, self._add_store_state_to_checkpoint(checkpoint))
        self._committed_stream_time_ms = self._stream_time_ms
        self._cached.evict_all()

    def _find_latest_version(self, key_bytes: bytes) -> StoreEntry[None, None] | None:
        """Return the latest version of a key, as bytes, or None if there is none."""
        held = self._latest_written.get(key_bytes)
        if held is None:
            held = self._cached.entries.get(key_bytes)
        if held is None:
            # The bound is stream time and not the end of time: between two versions of a key lie
            # all keys that begin with it and go on with less than the first byte of a timestamp.
            to_ms = max(self._stream_time_ms, 0)
            found = next(self._iterate_versions_between(key_bytes, 0, to_ms, reverse=True), None)
            if found is None:
                return None
            held = StoreEntry(None, None, *found)
            self._cache_latest_version(key_bytes, held)
            self._cache.drop_oldest_to_budget()
        return held

    def _cache_latest_version(self, key_bytes: bytes, entry: StoreEntry[None, None]) -> None:
        """Cache a key's latest version in place of the one cached before, and count its bytes."""
        replaced = self._cached.entries.pop(key_bytes, None)
        if replaced is not None:
            self._cached.bytes -= estimate_entry_bytes(key_bytes, replaced.stored or b"")
        entry.used = self._cache.commit_count
        self._cached.entries[key_bytes] = entry
        self._cached.bytes += estimate_entry_bytes(key_bytes, entry.stored or b"")

    def _advance_sweep_and_list_expired(self) -> list[bytes]:
        """Find expired versions among the sweep's next entries, and return their keys on disk.

        The older versions of a key come first. A version has expired if its successor is as old as
        the history, and a deletion of that age if it has nothing before it: without it what was
        before would be the latest again. For the same reason all deletions stay during a rewrite:
        a version that they have ended may be in the changelog above the rewrite's beginning.
        """
        horizon_ms = self._stream_time_ms - self._history_ms
        dead: dict[bytes, None] = {}
        for disk_key, stored in self._sweep.advance_to_next_entries(
            len(self._overlay), self._stream_time_ms
        ):
            key = disk_key[:-VERSION_SUFFIX_BYTES]
            (timestamp_ms,) = unpack_time(disk_key[-VERSION_SUFFIX_BYTES:])
            before, self._swept_last = self._swept_last, disk_key
            if timestamp_ms > horizon_ms:
                continue
            if before is not None and before[:-VERSION_SUFFIX_BYTES] == key and before < disk_key:
                dead[before] = None
            # The one of the latest time is kept, since a restore takes stream time from it.
            if stored == _DELETED and not self.is_rewriting and timestamp_ms < self._stream_time_ms:
                older = self._iterate_versions_between(key, 0, timestamp_ms - 1, reverse=False)
                if all(key + pack_time(each) in dead for each, _ in older):
                    dead[disk_key] = None
        return list(dead)

    def _iterate_versions_between(
        self, key_bytes: bytes, from_ms: int, to_ms: int, *, reverse: bool
    ) -> Iterator[tuple[TimestampMs, StoredBytes]]:
        """Yield timestamp and stored bytes of a key's versions between two times, both included."""
        first = key_bytes + pack_time(from_ms)
        last = key_bytes + pack_time(to_ms) + b"\0"
        length = len(key_bytes) + VERSION_SUFFIX_BYTES
        keys = self._order.keys_between(first, last)
        if reverse:
            keys.reverse()
        disk = self._disk.range(first, last, reverse=reverse)
        for key, fresh, stored in merge_overlay(disk, self._overlay, keys, reverse=reverse):
            if len(key) == length:
                (timestamp_ms,) = unpack_time(key[-VERSION_SUFFIX_BYTES:])
                yield timestamp_ms, stored if fresh is None else fresh

    def _add_store_state_to_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Return `checkpoint` with the store's stream time and layout in it."""
        return replace(checkpoint, stream_time_ms=self._stream_time_ms, layout=_LAYOUT)

    def _serialize_key(self, key: Any) -> bytes:
        try:
            return self._encode_key(key)
        except Exception as error:
            raise create_store_serde_error(self.name, "key", key, error) from error

    def _serialize_value(self, value: V) -> bytes:
        try:
            return self._encode_value(value)
        except Exception as error:
            raise create_store_serde_error(self.name, "value", value, error) from error
