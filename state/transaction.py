"""Collect a transaction's writes in an overlay that the task reads through (base of stores).

Theory of operation. A store is at any time in one of these phases:

    OPEN      reads see the overlay first, then the disk; writes go to the overlay
    DRAINED   each dirty key has been serialised once, for the changelog; nothing more is written
              until the outcome of the transaction is known

    phase     operation             next      what becomes true
    OPEN      put, entry_for_update     OPEN      the overlay has the key
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
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from state.cache import ENTRY_BYTES, ObjectCache, size
from state.early import EarlyEntries, RefusedChange, written_as_bytes
from state.entry import SCALARS, Entry, ValueAndTimestamp, immutable, size_of
from state.errors import Refused, RefusedLate, refused
from state.keys import pack_time, unpack_time
from state.layout import checkpoint_in
from state.on_disk import OnDisk
from state.overlay import Order, merged
from state.store import ChangelogEntry, Checkpoint, Disk

K = TypeVar("K")
V = TypeVar("V")

_TIMESTAMP_BYTES = 8
_ENTRY_BYTES = 300
"""The measured size of an entry without its value, with its place in the overlay."""
_SAMPLE = 16
_UNREAD = b""
"""Stands for the bytes on disk of a key whose bytes have not been read."""


class Codecs(NamedTuple):
    """Holds the functions that serialise and deserialise the keys and values of a store.

    What a function refuses is reported as StoreSerdeError.
    """

    encode_key: Callable[[Any], bytes]
    decode_key: Callable[[bytes], Any]
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[[bytes], Any]


def no_record() -> int:
    """Raise RuntimeError: a store outside of a task has no record whose time a write could take."""
    raise RuntimeError("no record is being processed: give timestamp_ms")


class TransactionalStore(OnDisk, Generic[K, V]):
    """Reads its own uncommitted writes, serialises each dirty key once, and rolls back.

    `clock` returns the time of a write without one: that of the record being processed, in ms.
    Stores of one thread may share a `cache`.
    """

    _prefix_bytes = 0
    """The number of bytes that a key has before it on disk and not in the changelog."""
    _layout = ""
    _overlay: dict[bytes, Entry[K, V]]
    _drained: list[ChangelogEntry] | None
    _changes: dict[bytes, bytes | None]
    """The drained entries as they will be on disk."""
    _deleted: list[bytes]
    _changeable: list[Entry[K, V]]
    """Of the drained entries: the deleted keys, and the entries whose objects can be changed."""
    _grown: int
    """The bytes by which the drained entries make the cache grow."""

    def __init__(
        self,
        name: str,
        disk: Disk,
        codecs: Codecs,
        *,
        cache: ObjectCache | None = None,
        clock: Callable[[], int] = no_record,
    ) -> None:
        self.name = name
        self.clock = clock
        self._disk = disk
        self._encode_key, self._decode_key, self._encode_value, self._decode_value = codecs
        self._cache = ObjectCache(0) if cache is None else cache
        self._cached = self._cache.share()
        self._on_refused: Callable[[], object] | None = None
        checkpoint = checkpoint_in(disk, self._layout, name)
        self._committed_stream_time_ms = -1 if checkpoint is None else checkpoint.stream_time_ms
        self._begin()

    def before(self, entry: Entry[K, V]) -> V | None:
        """Return the value of an entry's key as it was committed before this transaction, or None.

        It is decoded anew from its bytes: never an object that user code was handed, and may have
        changed in place.
        """
        stored = entry.stored
        if stored == _UNREAD:
            stored = entry.stored = self._disk.get(self._disk_key_of(entry.key))
        return None if stored is None else self._decode_value(stored[_TIMESTAMP_BYTES:])

    def copy(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return a copy of the value of `key`, for the caller to change, and its timestamp.

        Returns None for a key without a value.
        """
        raise NotImplementedError

    def copy_passed_on(
        self, key: K, waiting: Container[Entry[K, V]]
    ) -> ValueAndTimestamp[V] | None:
        """Return a copy of the value of `key` that the steps downstream know, and its timestamp.

        For a key whose change is among those not emitted yet (`unemitted`), that is the value from
        before this transaction.
        """
        held = self._overlay.get(self._disk_key_of(key))
        if held is None or held not in waiting:
            return self.copy(key)
        value = self.before(held)
        if value is None:
            return None
        stored = held.stored or b""
        return ValueAndTimestamp(value, unpack_time(stored[:_TIMESTAMP_BYTES])[0])

    @property
    def uncommitted_bytes(self) -> int:
        """Return about how much memory the running transaction's writes take, in bytes.

        It is estimated by a sample. That takes some tens of microseconds: call it between batches,
        not for each record.
        """
        overlay = self._overlay
        sample = list(islice(overlay.items(), _SAMPLE))
        sample += islice(reversed(overlay.items()), min(len(overlay) - len(sample), _SAMPLE))
        if not sample:
            return 0
        sizes = (_ENTRY_BYTES + 2 * len(key) + size_of(entry.value) for key, entry in sample)
        return sum(sizes) * len(overlay) // len(sample)

    @property
    def uncommitted_keys(self) -> int:
        """Return the number of keys that the running transaction has written."""
        return len(self._overlay)

    def dirty(self) -> list[Entry[K, V]]:
        """Return the entries written in this transaction, in the order of their first write."""
        return list(self._overlay.values())

    def drain(self) -> list[ChangelogEntry]:
        """Serialise each dirty key once and return the changelog entries.

        Returns the same list until the outcome. Raises StoreSerdeError for a value that the serde
        refuses: then the transaction can't be committed.
        """
        if self._drained is None:
            self._drained = self._serialised()
        return self._drained

    def commit(self, checkpoint: Checkpoint) -> None:
        """Write the drained entries and `checkpoint` to disk, after Kafka has committed them.

        Raises RuntimeError before `drain_writes`.
        """
        if self._drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        if self._changes:
            self._disk.write(self._changes, self._noted(checkpoint))
        self._committed_stream_time_ms = self._stream_time_ms
        cached = self._cached
        if self._early is None:
            cached.entries.update(self._overlay)
            for key in self._deleted:
                del cached.entries[key]
            for entry in self._changeable:
                entry.value = None  # to be decoded when it is used
            cached.bytes += self._grown
        else:
            cached.clear()
        self._cache.commit()
        self._begin()

    def rollback(self) -> None:
        """Discard the transaction's writes; the disk was never touched by it."""
        self._begin()
        self._cached.count()

    def serialize_early(self, on_refused: Callable[[], object] | None) -> None:
        """Serialise each value as it is written, and call `on_refused` for each refused one.

        None: serialise at the commit again. Call it only while the transaction has written nothing;
        it holds from the next write on.
        """
        assert not self._overlay, f"store {self.name!r} has written already"
        self._on_refused = on_refused
        self._begin()

    def check_value(self, value: V | None) -> None:
        """Raise StoreSerdeError for a value that the serde refuses, as far as that shows now.

        Before the commit it shows for scalars, and for any value where the store serialises early.
        Callers that set the value of an entry call this before.
        """
        if self._early is not None:
            if value is not None:
                self._early.serialize(value)
        elif type(value) in SCALARS and value is not None:
            try:
                self._encode_value(value)
            except Exception as error:
                raise self._refused("value", value, error) from error

    def settle(self) -> list[RefusedChange]:
        """Serialise the objects that the last record may have changed; return the refused ones.

        Does so where the store serialises early; a value that the serde refuses is taken back.
        """
        return [] if self._early is None else self._early.settle()

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        """Write committed changelog entries to disk; replaying the same entries again is safe."""
        self._disk.load(self._replayed(entries), self._noted(checkpoint))
        self._committed_stream_time_ms = self._stream_time_ms
        self._cached.clear()

    def _begin(self) -> None:
        """Start a new transaction that has written nothing."""
        self._overlay = {}
        self._order = Order(self._overlay)
        self._early: EarlyEntries | None = None
        if self._on_refused is not None:
            self._early = EarlyEntries(self._encoded_value, self._decode_value, self._on_refused)
        self._drained = None
        self._changes = {}
        self._deleted = []
        self._changeable = []
        self._grown = 0
        self._stream_time_ms = self._committed_stream_time_ms

    def _serialised(self) -> list[ChangelogEntry]:
        """Serialise the overlay into changelog entries; prepare the writes to disk and cache."""
        overlay: Mapping[bytes, Entry[Any, Any]] = self._overlay
        encode = self._encode_value
        if self._early is not None:
            overlay, encode = written_as_bytes(overlay), bytes
        prefix = self._prefix_bytes
        now = self._cache.now
        drained: list[ChangelogEntry] = []
        changes: dict[bytes, bytes | None] = {}
        deleted: list[bytes] = []
        changeable: list[Entry[K, V]] = []
        grown = 0
        for key, entry in overlay.items():
            value = entry.value
            timestamp_ms = entry.timestamp_ms
            logged = key[prefix:] if prefix else key
            if value is None:
                if entry.used:  # it came from the cache, and is counted there
                    grown -= size(key, entry.stored or b"")
                drained.append((logged, None, timestamp_ms))
                changes[key] = None
                deleted.append(key)
                continue
            try:
                encoded = encode(value)
            except Exception as error:
                raise self._refused("value", value, error) from error
            drained.append((logged, encoded, timestamp_ms))
            changes[key] = stored = pack_time(timestamp_ms) + encoded
            if entry.used:
                grown += 2 * (len(stored) - len(entry.stored or b""))
            else:
                grown += ENTRY_BYTES + 2 * (len(key) + len(stored))
            entry.stored, entry.used = stored, now
            if type(value) not in SCALARS and not immutable(value):
                changeable.append(entry)
        self._changes, self._grown = changes, grown
        self._deleted, self._changeable = deleted, changeable
        return drained

    def _replayed(self, entries: Iterable[ChangelogEntry]) -> Iterable[tuple[bytes, bytes | None]]:
        """Return changelog entries as they are on disk.

        It is called before the checkpoint is completed: a store with windows advances stream time
        here.
        """
        return [
            (key, None if value is None else pack_time(timestamp_ms) + value)
            for key, value, timestamp_ms in entries
        ]

    def _noted(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return `checkpoint` with the store's stream time and layout in it."""
        if self._stream_time_ms < 0 and not self._layout:
            return checkpoint
        return replace(checkpoint, stream_time_ms=self._stream_time_ms, layout=self._layout)

    def _disk_key_of(self, key: K) -> bytes:
        """Return the bytes that an entry's key has on disk, or raise StoreSerdeError."""
        raise NotImplementedError

    def _encoded(self, key: Any) -> bytes:
        try:
            return self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error

    def _encoded_value(self, value: Any) -> bytes:
        try:
            return self._encode_value(value)
        except Exception as error:
            raise self._refused("value", value, error) from error

    def _find(self, encoded: bytes, key: K) -> Entry[K, V] | None:
        """Return the entry of a key, for reading, as this transaction sees it, or None."""
        held = self._overlay.get(encoded)
        if held is not None:
            return None if held.value is None else held
        entries = self._cached.entries
        held = entries.pop(encoded, None)
        if held is not None:
            held.used = self._cache.now
            entries[encoded] = held
            if held.value is None:
                stored = held.stored or b""
                value = self._decode_value(stored[_TIMESTAMP_BYTES:])
                return Entry(key, value, held.timestamp_ms, stored)
            return held
        held = self._load(key, encoded)
        if held.stored is None:
            return None
        held.key = self._own_key(key, encoded)
        self._keep_read(encoded, held, held.stored)
        return held

    def _read(self, encoded: bytes, key: K) -> ValueAndTimestamp[V] | None:
        held = self._find(encoded, key)
        if held is None or held.value is None:
            return None
        return ValueAndTimestamp(held.value, held.timestamp_ms)

    def _keep_read(self, encoded: bytes, entry: Entry[K, V], stored: bytes) -> None:
        """Cache an entry that was read; only its bytes if the reader could change the object."""
        kept = entry
        if not immutable(entry.value):
            kept = Entry(entry.key, None, entry.timestamp_ms, stored)
        kept.used = self._cache.now
        self._cached.entries[encoded] = kept
        self._cached.bytes += size(encoded, stored)
        self._cache.shrink()

    def _own(self, encoded: bytes, key: K) -> Entry[K, V]:
        """Move the entry of a key from cache or disk to the overlay, for changing, and return it.

        It belongs to this transaction from now on, and is discarded with it in a rollback.
        """
        self._check_open()
        held = self._cached.entries.pop(encoded, None)
        if held is None:
            held = self._load(self._own_key(key, encoded), encoded)
        elif held.value is None:
            held.value = self._decode_value((held.stored or b"")[_TIMESTAMP_BYTES:])
        if self._early is not None:
            held = self._early.entry(held.key, held.timestamp_ms, held.stored)
        self._overlay[encoded] = held
        return held

    def _set(self, encoded: bytes, key: K, value: V | None, timestamp_ms: int | None) -> None:
        self._check_open()
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        held = self._overlay.get(encoded)
        if self._early is not None:
            if held is None:
                held = self._early.entry(self._own_key(key, encoded), -1, _UNREAD)
            held.value, held.timestamp_ms = value, timestamp_ms
            self._overlay[encoded] = held
            return
        self.check_value(value)
        if held is not None:
            self._check_replaced(held.value, value)
            held.value, held.timestamp_ms = value, timestamp_ms
        else:
            held = self._cached.entries.pop(encoded, None)
            if held is None:
                held = Entry(self._own_key(key, encoded), value, timestamp_ms, _UNREAD)
            else:
                held.value, held.timestamp_ms = value, timestamp_ms
            self._overlay[encoded] = held

    def _check_replaced(self, held: V | None, value: V | None) -> None:
        """Raise EarlierWriteRefused if the serde refuses an uncommitted object that is replaced.

        It would never be serialised, since another takes its place in the same transaction.
        """
        if held is not None and held is not value and type(held) not in SCALARS:
            try:
                self._encode_value(held)
            except Exception as error:
                raise RefusedLate(str(refused(self.name, "value", held, error))) from error

    def _scan(
        self, first: bytes | None, last: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, Entry[K, V] | None, bytes]]:
        """Yield the keys from `first` to before `end` with entry in the overlay and bytes on disk.

        Keys are as on disk; the entry is None, the bytes are b"", where there is none. The keys are
        those of the first step; a key's value is the one it has when it is reached. The iterator
        may not outlive the transaction.
        """
        overlay = self._overlay
        keys = self._order.between(first, last)
        if reverse:
            keys.reverse()
        disk = self._disk.range(first, last, reverse=reverse)
        for found in merged(disk, overlay, keys, reverse=reverse):
            if found[1] is None or found[1].value is not None:
                yield found
            if overlay is not self._overlay:
                raise RuntimeError(f"store {self.name!r}: a range outlived its transaction")

    def _value(self, entry: Entry[K, V] | None, stored: bytes) -> V:
        if entry is not None and entry.value is not None:
            return entry.value
        return self._decode_value(stored[_TIMESTAMP_BYTES:])  # type: ignore[no-any-return]

    def _timestamp(self, entry: Entry[K, V] | None, stored: bytes) -> int:
        if entry is not None and entry.value is not None:
            return entry.timestamp_ms
        return unpack_time(stored[:_TIMESTAMP_BYTES])[0]  # type: ignore[no-any-return]

    def _copied(self, encoded: bytes, key: K) -> ValueAndTimestamp[V] | None:
        """Return a copy of a key's value, for the caller to change, and its timestamp, or None."""
        held = self._find(encoded, key)
        if held is None or held.value is None:
            return None
        value = held.value
        if type(value) not in SCALARS and encoded in self._overlay:
            try:
                value = self._decode_value(self._encode_value(value))
            except Exception as error:
                raise RefusedLate(str(refused(self.name, "value", value, error))) from error
        return ValueAndTimestamp(value, held.timestamp_ms)

    def _own_key(self, key: K, encoded: bytes) -> K:
        """Return `key` itself if it is a scalar, else a copy of it for the cached entry to keep."""
        return key if type(key) in SCALARS else self._decode_key(encoded)

    def _load(self, key: K, encoded: bytes) -> Entry[K, V]:
        stored = self._disk.get(encoded)
        if stored is None:
            return Entry(key, None, -1, None)
        (timestamp_ms,) = unpack_time(stored[:_TIMESTAMP_BYTES])
        return Entry(key, self._decode_value(stored[_TIMESTAMP_BYTES:]), timestamp_ms, stored)

    def _check_open(self) -> None:
        if self._drained is not None:
            raise RuntimeError(f"store {self.name!r}: a write after drain would miss the changelog")

    def _refused(self, what: str, given: object, error: Exception) -> Refused:
        return refused(self.name, what, given, error)
