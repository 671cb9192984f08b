"""Read values as they are on disk: the record's timestamp (int64, big-endian), then the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from state.entry import StoreEntry
from state.errors import StoreSerdeError
from state.keys import unpack_time
from state.shown_values import hide_values, quote_value

K = TypeVar("K")
V = TypeVar("V")

TIMESTAMP_BYTES = 8


def decode_stored_entry(
    key: K, stored_value: bytes | None, decode_value: Callable[[bytes], Any], store_name: str
) -> StoreEntry[K, Any]:
    """Return the entry of a key from its bytes on disk, or one without a value for None.

    Raises StoreSerdeError for bytes that the serde of the store can't read.
    """
    if stored_value is None:
        return StoreEntry(key, None, -1, None)
    (timestamp_ms,) = unpack_time(stored_value[:TIMESTAMP_BYTES])
    try:
        value = decode_value(stored_value[TIMESTAMP_BYTES:])
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        raise StoreSerdeError(
            f"store {store_name!r} can't read the value "
            f"{quote_value(stored_value[TIMESTAMP_BYTES:])} of key {quote_value(key)}: "
            f"{hide_values(str(error), error, stored_value[TIMESTAMP_BYTES:], key)}. "
            "Was it written with another serde? `millrace plan` "
            "compares two versions of an application"
        ) from error
    return StoreEntry(key, value, timestamp_ms, stored_value)


def get_entry_timestamp_ms(entry: StoreEntry[K, V] | None, stored_value: bytes) -> int:
    """Return the timestamp of an overlay's entry if that has a value, else of the bytes on disk."""
    if entry is not None and entry.value is not None:
        return entry.timestamp_ms
    return unpack_time(stored_value[:TIMESTAMP_BYTES])[0]  # type: ignore[no-any-return]
