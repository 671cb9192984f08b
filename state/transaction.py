"""Collect a transaction's writes in an overlay that the task reads through (base of stores).

Theory of operation. A store is at any time in one of these phases:

    OPEN      reads see the overlay first, then the disk; writes go to the overlay
    DRAINED   each dirty key has been serialised once, for the changelog; nothing more is written
              until the outcome of the transaction is known

    phase     operation             next      what becomes true
    OPEN      put, get_entry_for_update     OPEN      the overlay has the key
    OPEN      drain_writes          DRAINED   the changelog entries exist; the disk is untouched
    DRAINED   commit                OPEN      the disk has the entries and the checkpoint after them
    any       rollback_transaction  OPEN      the overlay is gone, with every object handed out

Values are kept as objects while the transaction runs, by the key's bytes on disk (a key need not be
hashable). User code may change an object in place: one that the transaction has written counts as
changed, one that it has only read does not. No object that could be changed outlives it; what does
is in the cache (`state.cache`): bytes as they were serialised, and objects that nobody can change.

On disk a value is the record's timestamp (int64, big-endian) and the value; in the changelog it is
the plain value, with the timestamp in the record: the layout of Kafka Streams' timestamped stores.
A value that the serde refuses shows at the drain. Then the transaction is rolled back, and repeated
with `serialize_early`: each write serialises its value, and raises StoreSerdeError itself
(`state.early_serialization`). This is the base of key-value, window and session stores, which
differ in their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from state.cache import ObjectCache
from state.disk_backed import DiskBackedStore
from state.disk_layout import read_checkpoint_or_hold_disk_back
from state.drained_writes import DrainedWrites, create_write_after_drain_error, serialize_overlay
from state.early_serialization import (
    ChangeLimit,
    EarlySerializedEntries,
    RefusedChange,
    serialize_written_entries,
)
from state.entry import SCALARS, StoreEntry, ValueAndTimestamp
from state.errors import create_store_serde_error
from state.keys import DiskChange, DiskKey, StoredBytes, pack_time, unpack_time
from state.overlay import SortedOverlayKeys, estimate_overlay_bytes, merge_overlay
from state.read_back import ReadBackSample
from state.state_serdes import StateSerdes, StoreCodecs
from state.store import ChangelogEntry, StoreDisk
from state.store_checkpoint import StoreCheckpoint
from state.stored_value import TIMESTAMP_BYTES, decode_stored_entry

K = TypeVar("K")
V = TypeVar("V")

_UNREAD = b""
"""Stands for the bytes on disk of a key whose bytes have not been read."""


def raise_no_record() -> int:
    """Raise RuntimeError: a store outside of a task has no record whose time a write could take."""
    raise RuntimeError("no record is being processed: give timestamp_ms")


class TransactionalStore(DiskBackedStore, Generic[K, V]):
    """Reads its own uncommitted writes, serialises each dirty key once, and rolls back.

    `clock` returns the time of a write without one: that of the record being processed, in ms.
    Stores of one thread may share a `cache`.
    """

    _prefix_bytes = 0
    """The number of bytes that a key has before it on disk and not in the changelog."""
    _layout = ""
    _overlay: dict[bytes, StoreEntry[K, V]]
    _drained: DrainedWrites | None

    def __init__(
        self,
        name: str,
        disk: StoreDisk,
        codecs: StoreCodecs,
        *,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = raise_no_record,
    ) -> None:
        self.name = name
        self.clock = clock
        self._disk, checkpoint = read_checkpoint_or_hold_disk_back(disk, self._layout, name)
        self._encode_key, self._decode_key, self._encode_value, self._decode_value = codecs
        self._serdes = StateSerdes(name, codecs)
        self._serialize_key = self._serdes.serialize_key
        self._read_back_sample = ReadBackSample(name, self._decode_value)
        self._cache = ObjectCache(0) if cache is None else cache
        self.store_cache = self._cached = self._cache.add_store_cache()
        self._on_refused: Callable[[], object] | None = None
        self._change_limit: ChangeLimit | None = None
        self._committed_stream_time_ms = -1 if checkpoint is None else checkpoint.stream_time_ms
        self._begin_transaction()

    def read_committed_value(self, entry: StoreEntry[K, V]) -> V | None:
        """Return the value of an entry's key as it was committed before this transaction, or None.

        It is decoded anew from its bytes: never an object that user code was handed, and may have
        changed in place.
        """
        stored = entry.stored
        if stored == _UNREAD:
            stored = entry.stored = self._disk.get(self._to_disk_key(entry.key))
        return None if stored is None else self._decode_value(stored[TIMESTAMP_BYTES:])

    def copy_entry(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return a copy of the value of `key`, for the caller to change, and its timestamp.

        Returns None for a key without a value. The value is never the object that the running
        transaction has put, which is to be written as it is.
        """
        disk_key = self._to_disk_key(key)
        held = self._find_entry(disk_key, key)
        if held is None or held.value is None:
            return None
        value = held.value
        if disk_key in self._overlay:
            value = self._serdes.copy_value(value)
        return ValueAndTimestamp(value, held.timestamp_ms)

    def copy_emitted_entry(
        self, key: K, unemitted: Container[StoreEntry[K, V]]
    ) -> ValueAndTimestamp[V] | None:
        """Return a copy of the value of `key` as emitted downstream last, and its timestamp.

        For a key whose change is among those not emitted yet (`unemitted`), that is the value from
        before this transaction.
        """
        held = self._overlay.get(self._to_disk_key(key))
        if held is None or held not in unemitted:
            return self.copy_entry(key)
        value = self.read_committed_value(held)
        if value is None:
            return None
        stored = held.stored or b""
        return ValueAndTimestamp(value, unpack_time(stored[:TIMESTAMP_BYTES])[0])

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the running transaction's writes take, in bytes.

        It is estimated by a sample. That takes some tens of microseconds: call it between batches,
        not for each record.
        """
        return estimate_overlay_bytes(self._overlay)

    def list_written_entries(self) -> list[StoreEntry[K, V]]:
        """Return the entries written in this transaction, in the order of their first write.

        It is for tests: a commit takes the writes with `drain_writes`.
        """
        return list(self._overlay.values())

    def drain_writes(self) -> list[ChangelogEntry]:
        """Serialise each dirty key once and return the changelog entries.

        Returns the same list until the outcome. Raises StoreSerdeError for a value that the serde
        refuses: then the transaction can't be committed.
        """
        if self._drained is None:
            self._drained = self._serialize_writes()
        return self._drained.entries

    def commit(self, checkpoint: StoreCheckpoint) -> None:
        """Hand the drained entries and `checkpoint` to the disk, after Kafka has committed them.

        Raises RuntimeError before `drain_writes`.
        """
        drained = self._drained
        if drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        if drained.changes:
            self._disk.write_changes(
                drained.changes, self._add_store_state_to_checkpoint(checkpoint), drained.new_keys
            )
        self._committed_stream_time_ms = self._stream_time_ms
        if self._early is None and self._cache.is_enabled:
            drained.commit_to_cache(self._cached, self._overlay)
            self._cached.choose_caching_by_use(
                len(self._overlay), drained.cached_count, is_full=self._cache.is_full
            )
        else:
            self._cached.evict_all()
        self._cache.count_commit_and_evict()
        self._begin_transaction()

    def rollback_transaction(self) -> None:
        """Discard the transaction's writes; the disk was never touched by it."""
        self._begin_transaction()
        self._cached.recount_bytes()

    def serialize_early(
        self, on_refused: Callable[[], object] | None, limit: ChangeLimit | None = None
    ) -> None:
        """Serialise each value as it is written, and call `on_refused` for each refused one.

        One that is larger than `limit` is refused, too. None: serialise at the commit again. Call
        it only while the transaction has written nothing; it holds from the next write on.
        """
        assert not self._overlay, f"store {self.name!r} has written already"
        self._on_refused, self._change_limit = on_refused, limit
        self._begin_transaction()

    def check_value(self, value: V | None) -> None:
        """Raise StoreSerdeError if the serde refuses a value that is serialised before the commit.

        These are scalars, and all values where the store serialises early. Callers that set the
        value of an entry call this before.
        """
        if self._early is not None:
            if value is not None:
                self._early.serialize(value)
        elif type(value) in SCALARS and value is not None:
            try:
                self._encode_value(value)
            except Exception as error:
                raise create_store_serde_error(self.name, "value", value, error) from error

    def serialize_mutated_objects(self) -> list[RefusedChange]:
        """Serialise the objects that the last record may have changed; return the refused ones.

        Does so where the store serialises early; a value that the serde refuses is taken back.
        """
        return [] if self._early is None else self._early.serialize_mutated_objects()

    def replay_changelog(
        self, entries: Iterable[ChangelogEntry], checkpoint: StoreCheckpoint
    ) -> None:
        """Write committed changelog entries to disk; replaying the same entries again is safe."""
        self._disk.load_changes(
            self._to_disk_changes(entries), self._add_store_state_to_checkpoint(checkpoint)
        )
        self._committed_stream_time_ms = self._stream_time_ms
        self._cached.evict_all()

    def _begin_transaction(self) -> None:
        """Start a new transaction that has written nothing."""
        self._overlay = {}
        self._order = SortedOverlayKeys(self._overlay)
        self._early: EarlySerializedEntries | None = None
        if self._on_refused is not None:
            self._early = EarlySerializedEntries(
                self.name,
                self._serdes.serialize_value,
                self._decode_value,
                self._on_refused,
                self._change_limit,
            )
        self._drained = None
        self._stream_time_ms = self._committed_stream_time_ms

    def _serialize_writes(self) -> DrainedWrites:
        """Serialise the overlay into changelog entries; prepare the writes to disk and cache."""
        overlay: Mapping[bytes, StoreEntry[Any, Any]] = self._overlay
        encode = self._encode_value
        if self._early is not None:
            overlay, encode = serialize_written_entries(overlay), bytes
        drained = serialize_overlay(
            self.name,
            overlay,
            encode,
            prefix_bytes=self._prefix_bytes,
            commit_count=self._cache.commit_count,
            admits_new=self._cached.admits_new,
        )
        if self._early is None:
            self._read_back_sample.warn_if_read_back_differently(self._overlay, drained.entries)
        return drained

    def _to_disk_changes(self, entries: Iterable[ChangelogEntry]) -> Iterable[DiskChange]:
        """Convert changelog entries to keys and values as they are on disk; None deletes.

        It is called before the checkpoint is completed: a store with windows advances stream time
        here.
        """
        return [
            (key, None if value is None else pack_time(timestamp_ms) + value)
            for key, value, timestamp_ms in entries
        ]

    def _add_store_state_to_checkpoint(self, checkpoint: StoreCheckpoint) -> StoreCheckpoint:
        """Return `checkpoint` with the store's stream time and layout in it."""
        if self._stream_time_ms < 0 and not self._layout:
            return checkpoint
        return replace(checkpoint, stream_time_ms=self._stream_time_ms, layout=self._layout)

    def _to_disk_key(self, key: K) -> bytes:
        """Return the bytes that an entry's key has on disk, or raise StoreSerdeError."""
        raise NotImplementedError

    def _find_entry(self, disk_key: bytes, key: K) -> StoreEntry[K, V] | None:
        """Return the entry of a key, for reading, as this transaction sees it, or None."""
        held = self._overlay.get(disk_key)
        if held is not None:
            return None if held.value is None else held
        entries = self._cached.entries
        held = entries.pop(disk_key, None)
        if held is not None:
            held.used = self._cache.commit_count
            entries[disk_key] = held
            if held.value is None:
                stored = held.stored or b""
                value = self._decode_value(stored[TIMESTAMP_BYTES:])
                return StoreEntry(key, value, held.timestamp_ms, stored)
            return held
        held = decode_stored_entry(key, self._disk.get(disk_key), self._decode_value, self.name)
        if held.stored is None:
            return None
        held.key = self._copy_key(key, disk_key)
        self._cache.add_read_entry(self._cached, disk_key, held)
        return held

    def _move_to_overlay_for_update(self, disk_key: bytes, key: K) -> StoreEntry[K, V]:
        """Move the entry of a key from cache or disk to the overlay, for changing, and return it.

        It belongs to this transaction from now on, and is discarded with it in a rollback.
        """
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        held = self._cached.entries.pop(disk_key, None)
        if held is None:
            copied = self._copy_key(key, disk_key)
            held = decode_stored_entry(
                copied, self._disk.get(disk_key), self._decode_value, self.name
            )
        elif held.value is None:
            held.value = self._decode_value((held.stored or b"")[TIMESTAMP_BYTES:])
        if self._early is not None:
            key_bytes = len(disk_key) - self._prefix_bytes
            held = self._early.create_entry(held.key, held.timestamp_ms, held.stored, key_bytes)
        self._overlay[disk_key] = held
        return held

    def _write_value(
        self, disk_key: bytes, key: K, value: V | None, timestamp_ms: int | None
    ) -> None:
        if self._drained is not None:
            raise create_write_after_drain_error(self.name)
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        held = self._overlay.get(disk_key)
        if self._early is not None:
            if held is None:
                own_key, size = self._copy_key(key, disk_key), len(disk_key) - self._prefix_bytes
                held = self._early.create_entry(own_key, -1, _UNREAD, size)
            held.value, held.timestamp_ms = value, timestamp_ms
            self._overlay[disk_key] = held
            return
        self.check_value(value)
        if held is not None:
            self._serdes.check_replaced_value(held.value, value)
            held.value, held.timestamp_ms = value, timestamp_ms
        else:
            held = self._cached.entries.pop(disk_key, None)
            if held is None:
                held = StoreEntry(self._copy_key(key, disk_key), value, timestamp_ms, _UNREAD)
            else:
                held.value, held.timestamp_ms = value, timestamp_ms
            self._overlay[disk_key] = held

    def _scan_range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[DiskKey, StoreEntry[K, V] | None, StoredBytes]]:
        """Yield keys from `first` to before `end`, with overlay entry and bytes on disk of each.

        Keys are as on disk; the entry is None, the bytes are b"", where there is none. The keys are
        those of the first step; a key's value is the one it has when it is reached. The iterator
        may not outlive the transaction.
        """
        overlay = self._overlay
        keys = self._order.keys_between(first, end)
        if reverse:
            keys.reverse()
        disk = self._disk.range(first, end, reverse=reverse)
        for found in merge_overlay(disk, overlay, keys, reverse=reverse):
            if found[1] is None or found[1].value is not None:
                yield found
            if overlay is not self._overlay:
                raise RuntimeError(f"store {self.name!r}: a range outlived its transaction")

    def _read_entry_value(self, entry: StoreEntry[K, V] | None, stored_value: bytes) -> V:
        if entry is not None and entry.value is not None:
            return entry.value
        return self._decode_value(stored_value[TIMESTAMP_BYTES:])  # type: ignore[no-any-return]

    def _copy_key(self, key: K, disk_key: bytes) -> K:
        """Return `key` itself if it is a scalar, else a copy of it for the cached entry to keep."""
        return key if type(key) in SCALARS else self._decode_key(disk_key)
