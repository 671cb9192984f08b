"""A store whose writes take part in a transaction: the overlay that a task reads through.

Theory of operation. A store is at any time in one of these phases:

    OPEN      reads see the overlay first, then the disk; writes go to the overlay
    DRAINED   each dirty key has been serialised once, for the changelog; nothing more is written
              until the outcome of the transaction is known

    phase     operation     next      what becomes true
    OPEN      put, update   OPEN      the overlay has the key
    OPEN      drain         DRAINED   the entries for the changelog exist; the disk is untouched
    DRAINED   commit        OPEN      the disk has the entries and the checkpoint after them
    any       rollback      OPEN      the overlay is gone, with every object user code was handed

Values are kept as objects while the transaction runs, by the key's bytes on disk (a key need not be
hashable). User code may change an object in place, so nothing that a transaction which is rolled
back has read or written outlives it. What a committed one has written is what was serialised: that
much is kept as objects, for the next `update` of the same key, up to a number of keys.

On disk a value is the record's timestamp (int64, big-endian) and the value; in the changelog it is
the plain value, with the timestamp in the record: the layout of Kafka Streams' timestamped stores.
This is the base of key-value, window and session stores, which differ in their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from state.errors import Refused
from state.keys import pack_time, unpack_time
from state.overlay import Order, merged
from state.store import ChangelogEntry, Checkpoint, Disk

K = TypeVar("K")
V = TypeVar("V")

_TIMESTAMP_BYTES = 8
_ENTRY_BYTES = 200
_UNREAD = b""
"""Stands for what the disk has of a key where nobody has looked."""


class Codecs(NamedTuple):
    """Keys and values to bytes and back. What they refuse is reported as Refused."""

    encode_key: Callable[[Any], bytes]
    decode_key: Callable[[bytes], Any]
    encode_value: Callable[[Any], bytes]
    decode_value: Callable[[bytes], Any]


@dataclass(slots=True, eq=False)
class Entry(Generic[K, V]):
    """A key's current value in the transaction; `value` None: there is none, or it was deleted."""

    key: K
    value: V | None
    timestamp_ms: int
    stored: bytes | None
    """What the disk has, as it lies there; None: nothing; empty: not looked at."""


def no_record() -> int:
    """The clock of a store outside of a task."""
    raise RuntimeError("no record is being processed: give timestamp_ms")


class TransactionalStore(Generic[K, V]):
    """Read-your-writes, one serialisation a dirty key, and rollback, for stores of several kinds.

    `clock` is the time of a write that is given none: of the record being processed, in ms.
    """

    _prefix_bytes = 0
    """How much longer a key is on disk than in the changelog, at its beginning."""

    def __init__(
        self,
        name: str,
        disk: Disk,
        codecs: Codecs,
        *,
        clock: Callable[[], int] = no_record,
        cached_keys_max: int = 10_000,
    ) -> None:
        self.name = name
        self.clock = clock
        self._disk = disk
        self._encode_key, self._decode_key, self._encode_value, self._decode_value = codecs
        self._cached_keys_max = cached_keys_max
        self._overlay: dict[bytes, Entry[K, V]] = {}
        self._order = Order(self._overlay)
        self._cached: dict[bytes, Entry[K, V]] = {}
        self._drained: list[ChangelogEntry] | None = None
        self._changes: dict[bytes, bytes | None] = {}
        checkpoint = disk.checkpoint()
        self._stream_time_ms = -1 if checkpoint is None else checkpoint.stream_time_ms
        self._committed_stream_time_ms = self._stream_time_ms

    def before(self, entry: Entry[K, V]) -> V | None:
        """The value that was committed before this transaction, decoded anew from its bytes: never
        an object that user code was handed, and may have changed in place."""
        stored = entry.stored
        if stored == _UNREAD:
            stored = entry.stored = self._disk.get(self._disk_key_of(entry.key))
        return None if stored is None else self._decode_value(stored[_TIMESTAMP_BYTES:])

    @property
    def uncommitted_bytes(self) -> int:
        """About how much memory the running transaction's writes take."""
        return len(self._overlay) * _ENTRY_BYTES

    @property
    def uncommitted_keys(self) -> int:
        """How many keys the running transaction has written."""
        return len(self._overlay)

    def dirty(self) -> list[Entry[K, V]]:
        """The keys written in this transaction, in the order of their first write."""
        return list(self._overlay.values())

    def drain(self) -> list[ChangelogEntry]:
        """Serialise each dirty key once, for the changelog. The same list until the outcome."""
        if self._drained is None:
            encode = self._encode_value
            prefix = self._prefix_bytes
            drained: list[ChangelogEntry] = []
            changes: dict[bytes, bytes | None] = {}
            for key, entry in self._overlay.items():
                value = entry.value
                logged = key[prefix:] if prefix else key
                if value is None:
                    drained.append((logged, None, entry.timestamp_ms))
                    changes[key] = None
                    continue
                try:
                    encoded = encode(value)
                except Exception as error:
                    raise self._refused("value", value, error) from error
                drained.append((logged, encoded, entry.timestamp_ms))
                changes[key] = pack_time(entry.timestamp_ms) + encoded
            self._drained, self._changes = drained, changes
        return self._drained

    def commit(self, checkpoint: Checkpoint) -> None:
        """Make the drained entries durable: Kafka has committed them, below the checkpoint."""
        if self._drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        changes = self._changes
        if changes:
            self._disk.write(changes, self._with_stream_time(checkpoint))
        cached = self._cached
        for key, entry in self._overlay.items():
            # A deletion is not kept: the disk doesn't know its timestamp either.
            if entry.value is not None:
                entry.stored = changes[key]
                cached[key] = entry
        for key in list(islice(cached, max(len(cached) - self._cached_keys_max, 0))):
            del cached[key]
        self._committed_stream_time_ms = self._stream_time_ms
        self.rollback()

    def rollback(self) -> None:
        """Forget the transaction. The disk was never touched by it."""
        self._overlay = {}
        self._order = Order(self._overlay)
        self._drained = None
        self._changes = {}
        self._stream_time_ms = self._committed_stream_time_ms

    def checkpoint(self) -> Checkpoint | None:
        """Where the committed state stands in the changelog; None for a store never written."""
        return self._disk.checkpoint()

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        """Apply committed changelog entries: restoring, or catching up. Replaying twice is safe."""
        self._disk.load(self._replayed(entries), self._with_stream_time(checkpoint))
        self._committed_stream_time_ms = self._stream_time_ms
        self._cached = {}

    def caught_up(self) -> None:
        """The restore has ended, or paused: make durable what was replayed."""
        self._disk.loaded()

    def clear(self) -> None:
        """Forget everything, committed state included: only for a store that could lie."""
        self._committed_stream_time_ms = -1
        self.rollback()
        self._cached = {}
        self._disk.clear()

    def close(self) -> None:
        """Release the disk. What was not committed is forgotten."""
        self.rollback()
        self._disk.close()

    def _replayed(self, entries: Iterable[ChangelogEntry]) -> Iterable[tuple[bytes, bytes | None]]:
        """What changelog entries are on disk. Called before the checkpoint is made."""
        return [
            (key, None if value is None else pack_time(timestamp_ms) + value)
            for key, value, timestamp_ms in entries
        ]

    def _with_stream_time(self, checkpoint: Checkpoint) -> Checkpoint:
        if self._stream_time_ms < 0:
            return checkpoint
        return replace(checkpoint, stream_time_ms=self._stream_time_ms)

    def _disk_key_of(self, key: K) -> bytes:
        """The bytes that an entry's key has on disk. Raises Refused."""
        raise NotImplementedError

    def _encoded(self, key: Any) -> bytes:
        try:
            return self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error

    def _find(self, encoded: bytes, key: K) -> Entry[K, V]:
        """For reading."""
        held = self._overlay.get(encoded)
        return self._load(key, encoded) if held is None else held

    def _own(self, encoded: bytes, key: K) -> Entry[K, V]:
        """For changing: the entry is this transaction's now, and goes with it in a rollback."""
        self._check_open()
        held = self._cached.pop(encoded, None) or self._load(key, encoded)
        self._overlay[encoded] = held
        return held

    def _set(self, encoded: bytes, key: K, value: V | None, timestamp_ms: int | None) -> None:
        self._check_open()
        if timestamp_ms is None:
            timestamp_ms = self.clock()
        held = self._overlay.get(encoded)
        if held is not None:
            held.value, held.timestamp_ms = value, timestamp_ms
        else:
            self._overlay[encoded] = Entry(key, value, timestamp_ms, _UNREAD)
            self._cached.pop(encoded, None)

    def _scan(
        self, first: bytes | None, last: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, Entry[K, V] | None, bytes]]:
        """What there is from `first` up to, and without, `last`: the key on disk, its entry in the
        overlay or None, what the disk has. The keys are those of the first step; a key's value is
        the one it has when it is reached. It may not outlive the transaction.
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
        return Refused(f"store {self.name!r} can't take {what} {given!r:.200}: {error}")
