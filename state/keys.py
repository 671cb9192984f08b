"""Encode the keys of windows, sessions and versions as bytes, in the changelog and on disk.

    store       in the changelog (Kafka Streams' own bytes)     on disk
    window      key, start (int64), sequence number (int32)     segment (int64), then the same
    session     key, end (int64), start (int64)                 segment (int64), then the same
    versioned   key                                             key, timestamp (int64)

Windows and sessions of stores that are indexed by time have a second key on disk, without a value:

    window      0x80, start (int64), key
    session     0x80, end (int64), start (int64), key

All numbers are big-endian, and times are not negative, so that bytes sort as numbers do. A segment
is a stretch of time as long as half of the retention: what has expired is a range of whole
segments, and the windows of a key are in order in each of the few that are alive.

Keys differ in length, and the bytes of one key with its suffix may lie between those of another
with its suffix. A range over one key therefore takes only what has that key's length. Rules:
WindowKeySchema, SessionKeySchema, OrderedBytes and AbstractSegments of Kafka Streams 4.3.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

DiskKey: TypeAlias = bytes
"""A key as it is on disk."""
KeyBytes: TypeAlias = bytes
"""A user's key, serialised."""
StoredBytes: TypeAlias = bytes
"""A value as it is on disk."""
DiskEntry: TypeAlias = tuple[DiskKey, StoredBytes]
DiskChange: TypeAlias = tuple[DiskKey, StoredBytes | None]
"""The key on disk and its new value; None deletes the key."""
Segment: TypeAlias = bytes
"""The number of a segment, which keys of windows and sessions begin with."""
WindowSuffix: TypeAlias = bytes
"""The start and the sequence number of a window, which follow its key."""
StartMs: TypeAlias = int
"""The time at which a window starts."""
TimestampMs: TypeAlias = int
"""The timestamp of the record that wrote a value."""

TIME_MAX = 2**63 - 1
SEQUENCE_MAX = 2**31 - 1
TIME_BYTES = 8
SEGMENT_BYTES = 8
WINDOW_SUFFIX_BYTES = 12
SESSION_SUFFIX_BYTES = 16
VERSION_SUFFIX_BYTES = 8
BY_TIME = b"\x80"
"""The first byte of keys by time: they sort after all segments, whose numbers are not negative."""
_SEGMENT_MS_MIN = 60_000

pack_time = struct.Struct(">q").pack
pack_window = struct.Struct(">qi").pack
"""Encodes start in ms and sequence number, which follow the key of a window."""
unpack_window = struct.Struct(">qi").unpack
pack_session = struct.Struct(">qq").pack
"""Encodes end and start in ms, which follow the key of a session."""
unpack_session = struct.Struct(">qq").unpack
unpack_time = struct.Struct(">q").unpack


def choose_segment_ms(retention_ms: int) -> int:
    """Return the length of a segment in ms, for entries that are kept for `retention_ms`."""
    return max(retention_ms // 2, _SEGMENT_MS_MIN)


def find_end_of_prefix(prefix: bytes) -> bytes | None:
    """Return the first bytes after all that begin with `prefix`, or None if there are none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else None


def encode_next_segment(segment: bytes) -> bytes:
    """Return the key bytes of the segment after `segment`, where a range over all of it ends."""
    return pack_time(unpack_time(segment)[0] + 1)


def find_largest_suffixed_key(key: bytes, largest_suffix: bytes) -> bytes:
    """Return an upper bound of key and suffix for every key up to and including `key`.

    A key that is a prefix of `key` sorts before it, but with a large suffix after it.
    """
    return max(key[:length] + largest_suffix for length in range(len(key) + 1))
