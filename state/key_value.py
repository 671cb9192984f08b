"""Store the latest value of each key, and read ranges in the order of the keys' bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from state.entry import StoreEntry, ValueAndTimestamp, to_value_and_timestamp
from state.errors import create_store_serde_error
from state.guessed_names import explain_guessed_names
from state.keys import find_end_of_prefix
from state.transaction import TransactionalStore

K = TypeVar("K")
V = TypeVar("V")


@explain_guessed_names(
    {
        "put_all": "put(key, value) for each",
        "approximate_num_entries": "approximate_count()",
    }
)
class KeyValueStore(TransactionalStore[K, V]):
    """Stores the latest value of each key with its timestamp (TimestampedKeyValueStore).

    Times are in ms; a write without a time has that of the record being processed. Keys and values
    that the serdes refuse raise StoreSerdeError and leave the store as it was; a write between
    `drain_writes` and the outcome of the transaction raises RuntimeError.
    """

    def get(self, key: K) -> V | None:
        """Return the value of `key` as this transaction sees it, or None."""
        found = self._find_entry(self._serialize_key(key), key)
        return None if found is None else found.value

    def entry(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return the value of `key` and the timestamp of the record that wrote it, or None."""
        return to_value_and_timestamp(self._find_entry(self._serialize_key(key), key))

    def get_entry_for_update(self, key: K) -> StoreEntry[K, V]:
        """Return the entry of `key`, counted as written, to be changed in place by the caller.

        Set its `value` and `timestamp_ms`. An update that depends on the old value needs one
        look-up this way instead of two. For a key without a value `value` is None and
        `timestamp_ms` is -1.
        """
        try:
            encoded = self._encode_key(key)
        except Exception as error:
            raise create_store_serde_error(self.name, "key", key, error) from error
        held = self._overlay.get(encoded)
        return self._move_to_overlay_for_update(encoded, key) if held is None else held

    def put(self, key: K, value: V | None, timestamp_ms: int | None = None) -> None:
        """Set the value of `key`; None deletes it."""
        self._write_value(self._serialize_key(key), key, value, timestamp_ms)

    def put_if_absent(self, key: K, value: V | None, timestamp_ms: int | None = None) -> V | None:
        """Set the value of `key` if it has none, and return the value that it had, or None."""
        encoded = self._serialize_key(key)
        present = self._find_value(encoded, key)
        if present is None:
            self._write_value(encoded, key, value, timestamp_ms)
        return present

    def delete(self, key: K, timestamp_ms: int | None = None) -> V | None:
        """Delete `key` and return the value that it had, or None."""
        encoded = self._serialize_key(key)
        present = self._find_value(encoded, key)
        self._write_value(encoded, key, None, timestamp_ms)
        return present

    def range(self, key_from: K | None = None, key_to: K | None = None) -> Iterator[tuple[K, V]]:
        """Yield keys and values from `key_from` to `key_to`, both included, by the keys' bytes.

        None is no bound. Numbers sort as numbers only from 0 on.
        """
        return self._iterate_between(key_from, key_to, reverse=False)

    def reverse_range(
        self, key_from: K | None = None, key_to: K | None = None
    ) -> Iterator[tuple[K, V]]:
        """Yield keys and values from `key_to` down to `key_from`, both included, by their bytes."""
        return self._iterate_between(key_from, key_to, reverse=True)

    def prefix_scan(
        self, prefix: object, serialize: Callable[[Any], bytes] | None = None
    ) -> Iterator[tuple[K, V]]:
        """Yield the keys whose bytes begin with those of `prefix`, and their values, in order.

        `serialize` makes the prefix's bytes; by default bytes are taken as they are, and anything
        else goes through the serde of the keys.
        """
        if serialize is not None:
            first = serialize(prefix)
        else:
            first = prefix if isinstance(prefix, bytes) else self._serialize_key(prefix)
        return self._iterate_items(first, find_end_of_prefix(first), reverse=False)

    def all(self) -> Iterator[tuple[K, V]]:
        """Yield every key and value as this transaction sees them, in the order of the keys' bytes.

        The keys are those that there are at the first step; a key's value is the one it has when it
        is reached. Writing while iterating is allowed. The iterator ends with the transaction.
        """
        return self._iterate_items(None, None, reverse=False)

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """Yield every key and value as this transaction sees them, the last key first."""
        return self._iterate_items(None, None, reverse=True)

    def approximate_count(self) -> int:
        """Return about how many keys have a value (`approximateNumEntries`).

        Of the running transaction's writes, a key that was not looked up before is counted as new,
        and one that was deleted as having had a value.
        """
        added = sum(map(_compute_count_change, self._overlay.values()))
        return max(self._disk.approximate_count() + added, 0)

    def _iterate_between(
        self, key_from: K | None, key_to: K | None, *, reverse: bool
    ) -> Iterator[tuple[K, V]]:
        first = None if key_from is None else self._serialize_key(key_from)
        last = None if key_to is None else self._serialize_key(key_to) + b"\0"
        return self._iterate_items(first, last, reverse=reverse)

    def _iterate_items(
        self, first_bytes: bytes | None, end_bytes: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[K, V]]:
        for encoded, entry, stored in self._scan_range(first_bytes, end_bytes, reverse=reverse):
            key = self._decode_key(encoded) if entry is None else entry.key
            yield key, self._read_entry_value(entry, stored)

    def _find_value(self, disk_key: bytes, key: K) -> V | None:
        found = self._find_entry(disk_key, key)
        return None if found is None else found.value

    def _to_disk_key(self, key: K) -> bytes:
        return self._serialize_key(key)


def _compute_count_change(entry: StoreEntry[Any, Any]) -> int:
    """Return by how many keys a write makes the store larger: 1, 0 or -1."""
    if entry.value is None:
        return 0 if entry.stored is None else -1
    return 0 if entry.stored else 1
