"""Read values as they are on disk: the record's timestamp (int64, big-endian), then the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from state.entry import StoreEntry
from state.keys import unpack_time

K = TypeVar("K")
V = TypeVar("V")

TIMESTAMP_BYTES = 8


def load_entry(
    key: K, stored_value: bytes | None, decode_value: Callable[[bytes], Any]
) -> StoreEntry[K, Any]:
    """Return the entry of a key from its bytes on disk, or one without a value for None."""
    if stored_value is None:
        return StoreEntry(key, None, -1, None)
    (timestamp_ms,) = unpack_time(stored_value[:TIMESTAMP_BYTES])
    return StoreEntry(key, decode_value(stored_value[TIMESTAMP_BYTES:]), timestamp_ms, stored_value)


def entry_timestamp_ms(entry: StoreEntry[K, V] | None, stored_value: bytes) -> int:
    """Return the timestamp of an overlay's entry if that has a value, else of the bytes on disk."""
    if entry is not None and entry.value is not None:
        return entry.timestamp_ms
    return unpack_time(stored_value[:TIMESTAMP_BYTES])[0]  # type: ignore[no-any-return]
