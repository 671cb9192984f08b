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

Values are kept as objects while the transaction runs, keyed by the serialised key (a key need not
be hashable). User code may change an object in place, so nothing that a transaction which is rolled
back has read or written outlives it. What a committed one has written is what was serialised: that
much is kept as objects, for the next `update` of the same key, up to a number of keys.

On disk a value is the record's timestamp (int64, big-endian) and the value; in the changelog it is
the plain value, with the timestamp in the record: the layout of Kafka Streams' timestamped stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from state.errors import Refused
from state.store import ChangelogEntry, Checkpoint, Disk

K = TypeVar("K")
V = TypeVar("V")

_TIMESTAMP_BYTES = 8
_ENTRY_BYTES = 200


@dataclass(slots=True)
class Entry(Generic[K, V]):
    """A key's current value in the transaction; `value` None: there is none, or it was deleted."""

    key: K
    value: V | None
    timestamp_ms: int


class TransactionalStore(Generic[K, V]):
    """A key-value store with read-your-writes, one serialisation a dirty key, and rollback.

    `encode_*` and `decode_*` turn keys and values to bytes and back. What they refuse
    is reported as Refused by `get`, `put` or `drain`, and leaves the store as it was.
    """

    def __init__(
        self,
        name: str,
        disk: Disk,
        *,
        encode_key: Callable[[K], bytes],
        decode_key: Callable[[bytes], K],
        encode_value: Callable[[V], bytes],
        decode_value: Callable[[bytes], V],
        cached_keys_max: int = 10_000,
    ) -> None:
        self.name = name
        self._disk = disk
        self._encode_key = encode_key
        self._decode_key = decode_key
        self._encode_value = encode_value
        self._decode_value = decode_value
        self._cached_keys_max = cached_keys_max
        self._overlay: dict[bytes, Entry[K, V]] = {}
        self._cached: dict[bytes, Entry[K, V]] = {}
        self._drained: list[ChangelogEntry] | None = None
        self._changes: dict[bytes, bytes | None] = {}

    def entry(self, key: K) -> Entry[K, V] | None:
        """The value of `key` and the timestamp of the record that wrote it, or None.

        It is for reading: what is changed in it may or may not be kept.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error
        held = self._overlay.get(encoded)
        if held is None:
            held = self._load(key, encoded)
        return None if held.value is None else held

    def update(self, key: K) -> Entry[K, V]:
        """The entry of `key`, counted as written: set its `value` and `timestamp_ms` in place.

        What reads a value and writes the next one needs one look-up instead of two. For a key
        without a value `value` is None and `timestamp_ms` is -1. Raises RuntimeError between
        `drain` and the outcome.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error
        held = self._overlay.get(encoded)
        if held is None:
            self._check_open()
            # Out of the cache: it is this transaction's now, and goes with it in a rollback.
            held = self._cached.pop(encoded, None) or self._load(key, encoded)
            self._overlay[encoded] = held
        return held

    def get(self, key: K) -> V | None:
        """The value of `key` as this transaction sees it, or None."""
        entry = self.entry(key)
        return None if entry is None else entry.value

    def put(self, key: K, value: V | None, timestamp_ms: int) -> None:
        """Set `key`; None deletes it. Raises RuntimeError between `drain` and the outcome."""
        self._check_open()
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error
        self._overlay[encoded] = Entry(key, value, timestamp_ms)
        self._cached.pop(encoded, None)

    def delete(self, key: K, timestamp_ms: int) -> None:
        self.put(key, None, timestamp_ms)

    def items(self) -> Iterator[tuple[K, V]]:
        """Every key and value as this transaction sees them, in the order of the encoded keys.

        A snapshot of the overlay is taken at the first step: writing while iterating is allowed,
        and not seen.
        """
        overlay = dict(sorted(self._overlay.items()))
        fresh = iter(overlay.items())
        pending = next(fresh, None)
        for encoded, stored in self._disk.range(None, None):
            while pending is not None and pending[0] < encoded:
                if pending[1].value is not None:
                    yield pending[1].key, pending[1].value
                pending = next(fresh, None)
            if encoded not in overlay:
                yield self._decode_key(encoded), self._decode_value(stored[_TIMESTAMP_BYTES:])
        while pending is not None:
            if pending[1].value is not None:
                yield pending[1].key, pending[1].value
            pending = next(fresh, None)

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
            drained: list[ChangelogEntry] = []
            changes: dict[bytes, bytes | None] = {}
            for key, entry in self._overlay.items():
                value = entry.value
                if value is None:
                    drained.append((key, None, entry.timestamp_ms))
                    changes[key] = None
                    continue
                try:
                    encoded = encode(value)
                except Exception as error:
                    raise self._refused("value", value, error) from error
                drained.append((key, encoded, entry.timestamp_ms))
                changes[key] = _stored(encoded, entry.timestamp_ms)
            self._drained, self._changes = drained, changes
        return self._drained

    def commit(self, checkpoint: Checkpoint) -> None:
        """Make the drained entries durable: Kafka has committed them, below the checkpoint."""
        if self._drained is None:
            raise RuntimeError(f"store {self.name!r}: commit before drain")
        if self._changes:
            self._disk.write(self._changes, checkpoint)
        cached = self._cached
        # A deletion is not kept: the disk doesn't know its timestamp either.
        cached |= {key: entry for key, entry in self._overlay.items() if entry.value is not None}
        for key in list(islice(cached, max(len(cached) - self._cached_keys_max, 0))):
            del cached[key]
        self.rollback()

    def rollback(self) -> None:
        """Forget the transaction. The disk was never touched by it."""
        self._overlay = {}
        self._drained = None
        self._changes = {}

    def checkpoint(self) -> Checkpoint | None:
        """Where the committed state stands in the changelog; None for a store never written."""
        return self._disk.checkpoint()

    def replay(self, entries: Iterable[ChangelogEntry], checkpoint: Checkpoint) -> None:
        """Apply committed changelog entries: restoring, or catching up. Replaying twice is safe."""
        changes = {
            key: None if value is None else _stored(value, timestamp_ms)
            for key, value, timestamp_ms in entries
        }
        self._disk.write(changes, checkpoint)
        self._cached = {}

    def caught_up(self) -> None:
        """The restore has ended, or paused: make durable what was replayed."""
        self._disk.loaded()

    def clear(self) -> None:
        """Forget everything, committed state included: only for a store that could lie."""
        self.rollback()
        self._cached = {}
        self._disk.clear()

    def close(self) -> None:
        """Release the disk. What was not committed is forgotten."""
        self.rollback()
        self._disk.close()

    def _load(self, key: K, encoded: bytes) -> Entry[K, V]:
        stored = self._disk.get(encoded)
        if stored is None:
            return Entry(key, None, -1)
        timestamp_ms = int.from_bytes(stored[:_TIMESTAMP_BYTES], "big", signed=True)
        return Entry(key, self._decode_value(stored[_TIMESTAMP_BYTES:]), timestamp_ms)

    def _check_open(self) -> None:
        if self._drained is not None:
            raise RuntimeError(f"store {self.name!r}: a write after drain would miss the changelog")

    def _refused(self, what: str, given: object, error: Exception) -> Refused:
        return Refused(f"store {self.name!r} can't take {what} {given!r:.200}: {error}")


def _stored(value: bytes, timestamp_ms: int) -> bytes:
    """A value as it is kept on disk."""
    return timestamp_ms.to_bytes(_TIMESTAMP_BYTES, "big", signed=True) + value
