"""Key-value stores: the latest value of each key, with ranges in the order of the keys' bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from state.entry import Entry, ValueAndTimestamp
from state.keys import after
from state.transaction import TransactionalStore

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(TransactionalStore[K, V]):
    """A store of one value a key (Kafka Streams' TimestampedKeyValueStore).

    Times are in ms; a write that is given none has that of the record being processed. Keys and
    values that the serdes refuse raise Refused and leave the store as it was; a write between
    `drain` and the outcome raises RuntimeError.
    """

    def get(self, key: K) -> V | None:
        """The value of `key` as this transaction sees it, or None."""
        found = self._find(self._encoded(key), key)
        return None if found is None else found.value

    def entry(self, key: K) -> ValueAndTimestamp[V] | None:
        """The value of `key` and the timestamp of the record that wrote it, or None."""
        return self._read(self._encoded(key), key)

    def copy(self, key: K) -> ValueAndTimestamp[V] | None:
        """`entry` with a value that is the caller's own to change: never the object that the
        running transaction has put, which is to be written as it is."""
        return self._copied(self._encoded(key), key)

    def update(self, key: K) -> Entry[K, V]:
        """The entry of `key`, counted as written: set its `value` and `timestamp_ms` in place.

        What reads a value and writes the next one needs one look-up instead of two. For a key
        without a value `value` is None and `timestamp_ms` is -1.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise self._refused("key", key, error) from error
        held = self._overlay.get(encoded)
        return self._own(encoded, key) if held is None else held

    def put(self, key: K, value: V | None, timestamp_ms: int | None = None) -> None:
        """Set `key`; None deletes it."""
        self._set(self._encoded(key), key, value, timestamp_ms)

    def put_if_absent(self, key: K, value: V | None, timestamp_ms: int | None = None) -> V | None:
        """Set `key` if it has no value. Returns the value that it had, None if it had none."""
        encoded = self._encoded(key)
        present = self._value_of(encoded, key)
        if present is None:
            self._set(encoded, key, value, timestamp_ms)
        return present

    def delete(self, key: K, timestamp_ms: int | None = None) -> V | None:
        """Delete `key`. Returns the value that it had, None if it had none."""
        encoded = self._encoded(key)
        present = self._value_of(encoded, key)
        self._set(encoded, key, None, timestamp_ms)
        return present

    def range(self, key_from: K | None = None, key_to: K | None = None) -> Iterator[tuple[K, V]]:
        """Keys and values from `key_from` to `key_to`, both included, by the order of the keys'
        bytes; None: no bound. Of numbers only those not below zero sort as numbers do."""
        return self._between(key_from, key_to, reverse=False)

    def reverse_range(
        self, key_from: K | None = None, key_to: K | None = None
    ) -> Iterator[tuple[K, V]]:
        """`range`, from the last key to the first."""
        return self._between(key_from, key_to, reverse=True)

    def prefix_scan(
        self, prefix: object, serialize: Callable[[Any], bytes] | None = None
    ) -> Iterator[tuple[K, V]]:
        """Keys whose bytes begin with those of `prefix`, and their values, in order.

        `serialize` makes the prefix's bytes; by default bytes are what they are, and anything else
        goes through the serde of the keys.
        """
        if serialize is not None:
            first = serialize(prefix)
        else:
            first = prefix if isinstance(prefix, bytes) else self._encoded(prefix)
        return self._items(first, after(first), reverse=False)

    def all(self) -> Iterator[tuple[K, V]]:
        """Every key and value as this transaction sees them, in the order of the keys' bytes.

        The keys are those that there are at the first step; a key's value is the one it has when it
        is reached. Writing while iterating is allowed. It ends with the transaction.
        """
        return self._items(None, None, reverse=False)

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """`all`, from the last key to the first."""
        return self._items(None, None, reverse=True)

    def approximate_count(self) -> int:
        """About how many keys have a value. Of what this transaction has written, a key that it did
        not look up before is counted as new, and one that it deleted as having had a value."""
        added = sum(map(_added, self._overlay.values()))
        return max(self._disk.approximate_count() + added, 0)

    def _between(
        self, key_from: K | None, key_to: K | None, *, reverse: bool
    ) -> Iterator[tuple[K, V]]:
        first = None if key_from is None else self._encoded(key_from)
        last = None if key_to is None else self._encoded(key_to) + b"\0"
        return self._items(first, last, reverse=reverse)

    def _items(
        self, first: bytes | None, last: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[K, V]]:
        for encoded, entry, stored in self._scan(first, last, reverse=reverse):
            key = self._decode_key(encoded) if entry is None else entry.key
            yield key, self._value(entry, stored)

    def _value_of(self, encoded: bytes, key: K) -> V | None:
        found = self._find(encoded, key)
        return None if found is None else found.value

    def _disk_key_of(self, key: K) -> bytes:
        return self._encoded(key)


def _added(entry: Entry[Any, Any]) -> int:
    """By how many keys a write makes the store larger."""
    if entry.value is None:
        return 0 if entry.stored is None else -1
    return 0 if entry.stored else 1
