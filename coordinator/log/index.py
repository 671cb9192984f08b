"""Keep the sparse indexes of a segment, which tell where to look for an offset or a time.

One entry is made for about every `index_interval_bytes`: the last offset of a batch and where the
batch starts (`.index`: relative offset int32, position int32), and the largest timestamp so far
with the last offset of the first batch that has it (`.timeindex`: int64, relative offset int32),
this one only if it has grown. It says that every record with a later timestamp is behind that
offset.
Source: org.apache.kafka.storage.internals.log.{OffsetIndex, TimeIndex}.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import NamedTuple

OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = Struct(">qi")
TIME_ENTRY_BYTES = _TIME_ENTRY.size
_IS_LITTLE = sys.byteorder == "little"


class IndexNeighbours(NamedTuple):
    """Holds the index entries before and after an offset; an offset of -1: there is no entry."""

    position: int
    last_offset: int
    next_position: int
    next_last_offset: int


class SparseIndex:
    """Maps offsets and timestamps of a segment to positions in its file, with gaps.

    Offsets are absolute in calls and relative in memory and on disk. Kafka: `OffsetIndex`,
    `TimeIndex`.
    """

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")
        self._times = array("q")
        self._time_offsets = array("i")

    def add_offset_entry(self, last_offset: int, position: int) -> None:
        """Add an entry for a batch that ends with `last_offset` and starts at `position`."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def add_time_entry(self, max_timestamp_ms: int, last_offset: int) -> None:
        """Add an entry for the largest timestamp up to here, if it has grown.

        `last_offset` is that of the first batch with this timestamp.
        """
        if max_timestamp_ms > (self._times[-1] if self._times else -1):
            self._times.append(max_timestamp_ms)
            self._time_offsets.append(last_offset - self._base)

    @property
    def last_position(self) -> int:
        """Return the position at which the batch of the last entry starts, 0 without entries."""
        return self._positions[-1] if self._positions else 0

    def find_neighbours(self, offset: int) -> IndexNeighbours:
        """Return the entries before and after an offset.

        No batch in front of `position` has `offset` or a later one.
        """
        offsets, base = self._offsets, self._base
        after = bisect_right(offsets, offset - base)
        start = known = following = following_offset = -1
        if after < len(offsets):
            following, following_offset = self._positions[after], base + offsets[after]
        if after > 0:
            start, known = self._positions[after - 1], base + offsets[after - 1]
        return IndexNeighbours(max(start, 0), known, following, following_offset)

    def find_last_position_up_to(self, limit: int) -> int:
        """Return the start of the last indexed batch that isn't above `limit`, 0 if none is."""
        entry = bisect_right(self._positions, limit) - 1
        return self._positions[entry] if entry >= 0 else 0

    def find_offset_before_time(self, timestamp_ms: int) -> int:
        """Return an offset before which no batch has this timestamp or a later one."""
        entry = bisect_left(self._times, timestamp_ms) - 1
        return self._base + (self._time_offsets[entry] if entry >= 0 else 0)

    def encode_offset_entries(self, start_byte: int) -> bytes:
        """Encode the entries that `.index` has from this byte on."""
        first = start_byte // OFFSET_ENTRY_BYTES
        offsets, positions = self._offsets[first:], self._positions[first:]
        out = array("i", bytes(OFFSET_ENTRY_BYTES * len(offsets)))
        out[0::2], out[1::2] = offsets, positions
        if _IS_LITTLE:
            out.byteswap()
        return out.tobytes()

    def encode_time_entries(self, start_byte: int) -> bytes:
        """Encode the entries that `.timeindex` has from this byte on."""
        first = start_byte // TIME_ENTRY_BYTES
        entries = zip(self._times[first:], self._time_offsets[first:], strict=True)
        return b"".join(_TIME_ENTRY.pack(*entry) for entry in entries)


def decode_index(base_offset: int, offset_entries: bytes, time_entries: bytes) -> SparseIndex:
    """Decode an index from the content of its `.index` and `.timeindex` files."""
    index = SparseIndex(base_offset)
    entries = array("i", offset_entries)
    if _IS_LITTLE:
        entries.byteswap()
    index._offsets, index._positions = entries[0::2], entries[1::2]
    for timestamp_ms, offset in _TIME_ENTRY.iter_unpack(time_entries):
        index._times.append(timestamp_ms)
        index._time_offsets.append(offset)
    return index
