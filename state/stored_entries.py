"""Decode entries of any store as they are on disk or in a changelog, into bytes and times.

For tools that look at a store from outside. A store's own class reads the same layouts, faster:
see `state.keys` for the keys, `state.stored_value` and `state.buffered_change` for the values.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from state.buffered_change import decode_change
from state.keys import (
    BY_TIME,
    SEGMENT_BYTES,
    SESSION_SUFFIX_BYTES,
    VERSION_SUFFIX_BYTES,
    WINDOW_SUFFIX_BYTES,
    unpack_session,
    unpack_time,
    unpack_window,
)
from state.store import StoreDisk
from state.stored_value import TIMESTAMP_BYTES

_DELETED_VERSION = b"\0"
STORE_KINDS = ("key-value", "window", "session", "versioned", "buffer")
_KINDS_BY_LAYOUT = {"": "key-value", "windows": "window", "sessions": "session"}
"""The kinds by the first word of the layout that a checkpoint names, where the two differ."""


class StoredEntry(NamedTuple):
    """Holds an entry of a store: its key and value as bytes, and its times in ms, where it has any.

    `start_ms` is that of a window or a session, `end_ms` that of a session.
    """

    key: bytes
    start_ms: int | None
    end_ms: int | None
    timestamp_ms: int | None
    value: bytes | None


def find_store_kind(layout: str) -> str:
    """Return the kind of store that has a layout, as a checkpoint names it: of `STORE_KINDS`."""
    first_word = layout.partition(" ")[0]
    return _KINDS_BY_LAYOUT.get(first_word, first_word)


class EntryCount(NamedTuple):
    """Counts the entries of a store on disk, exactly or by an estimate."""

    entries: int
    is_exact: bool


def count_entries(kind: str, disk: StoreDisk, exact_until: int) -> EntryCount:
    """Count the entries of a store on disk, and return also whether the count is exact.

    More than `exact_until` entries are estimated by RocksDB. Its estimate counts keys of the index
    by time, and falls below what there is with each deletion, down to 0; so it is not taken for a
    store that can be counted.
    """
    has_index = kind in ("window", "session")
    entries = disk.range(None, BY_TIME if has_index else None)
    count = sum(1 for _ in islice(entries, exact_until + 1))
    if count <= exact_until:
        return EntryCount(count, True)
    is_indexed = has_index and next(iter(disk.range(BY_TIME, None)), None) is not None
    return EntryCount(max(disk.approximate_count() // (1 + is_indexed), count), False)


def decode_disk_entry(kind: str, key: bytes, value: bytes) -> StoredEntry | None:
    """Decode an entry on disk; None for one of the index by time, which repeats a key.

    Raises ValueError for bytes that are too short.
    """
    match kind:
        case "window" | "session":
            if key.startswith(BY_TIME):
                return None
            return decode_changelog_entry(
                kind, key[SEGMENT_BYTES:], _read_time(value), value[TIMESTAMP_BYTES:]
            )
        case "versioned":
            at_ms = _read_time(key[-VERSION_SUFFIX_BYTES:])
            is_deleted = value[:1] == _DELETED_VERSION
            return decode_changelog_entry(
                kind, key[:-VERSION_SUFFIX_BYTES], at_ms, None if is_deleted else value[1:]
            )
        case "buffer":
            return decode_changelog_entry(kind, key, None, value)
    return decode_changelog_entry(kind, key, _read_time(value), value[TIMESTAMP_BYTES:])


def decode_changelog_entry(
    kind: str, key: bytes, timestamp_ms: int | None, value: bytes | None
) -> StoredEntry:
    """Decode a record of a changelog. Raises ValueError for bytes that are too short."""
    match kind:
        case "window":
            start_ms, _ = unpack_window(_require_window_suffix(key, WINDOW_SUFFIX_BYTES))
            return StoredEntry(key[:-WINDOW_SUFFIX_BYTES], start_ms, None, timestamp_ms, value)
        case "session":
            end_ms, start_ms = unpack_session(_require_window_suffix(key, SESSION_SUFFIX_BYTES))
            return StoredEntry(key[:-SESSION_SUFFIX_BYTES], start_ms, end_ms, timestamp_ms, value)
        case "buffer" if value is not None:
            change, _ = decode_change(value)
            return StoredEntry(key, None, None, change.origin.timestamp_ms, change.new)
    return StoredEntry(key, None, None, timestamp_ms, value)


def _read_time(data: bytes) -> int:
    if len(data) < TIMESTAMP_BYTES:
        raise ValueError(f"{len(data)} bytes are too short for a time")
    return unpack_time(data[:TIMESTAMP_BYTES])[0]  # type: ignore[no-any-return]


def _require_window_suffix(key: bytes, length: int) -> bytes:
    if len(key) < length:
        raise ValueError(f"a key of {len(key)} bytes has no window: {length} bytes are needed")
    return key[-length:]
