"""The sparse indexes of a segment: where to begin to look for an offset or a time.

One entry is made for about every `index_interval_bytes`: the last offset of a batch and where the
batch starts (`.index`: relative offset int32, position int32), and the largest timestamp so far
with the last offset of the first batch that has it (`.timeindex`: int64, relative offset int32),
this one only if it has grown. It says: whatever is later than that stands behind that offset.
Source: org.apache.kafka.storage.internals.log.{OffsetIndex, TimeIndex}.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = Struct(">qi")
TIME_ENTRY_BYTES = _TIME_ENTRY.size
_IS_LITTLE = sys.byteorder == "little"


class SparseIndex:
    """Grows at its end. Offsets are absolute in calls and relative in memory and on disk."""

    def __init__(self, base_offset: int) -> None:
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")
        self._times = array("q")
        self._time_offsets = array("i")

    def add(self, last_offset: int, position: int) -> None:
        """A batch that ends with `last_offset` starts at `position`."""
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def add_time(self, timestamp_ms: int, last_offset: int) -> None:
        """The largest timestamp up to here, and the last offset of the first batch with it."""
        if timestamp_ms > (self._times[-1] if self._times else -1):
            self._times.append(timestamp_ms)
            self._time_offsets.append(last_offset - self._base)

    @property
    def last_position(self) -> int:
        """Where the batch of the last entry starts."""
        return self._positions[-1] if self._positions else 0

    def position_before(self, offset: int) -> int:
        """A batch starts here, and none before it has `offset` or a later one."""
        return self.around(offset)[0]

    def around(self, offset: int) -> tuple[int, int, int, int]:
        """Find such a position, and the last offset of the batch there; and both of the entry that
        follows. An offset or a position of -1: there is no such entry."""
        offsets, base = self._offsets, self._base
        after = bisect_right(offsets, offset - base)
        start = known = following = following_offset = -1
        if after < len(offsets):
            following, following_offset = self._positions[after], base + offsets[after]
        if after > 0:
            start, known = self._positions[after - 1], base + offsets[after - 1]
        return max(start, 0), known, following, following_offset

    def position_within(self, position: int) -> int:
        """The last place known, up to `position`, where a batch starts."""
        entry = bisect_right(self._positions, position) - 1
        return self._positions[entry] if entry >= 0 else 0

    def offset_before_time(self, timestamp_ms: int) -> int:
        """What is of this time or later stands behind this offset or at it."""
        entry = bisect_left(self._times, timestamp_ms) - 1
        return self._base + (self._time_offsets[entry] if entry >= 0 else 0)

    def offsets_from(self, start: int) -> bytes:
        """What `.index` has from this byte on."""
        first = start // OFFSET_ENTRY_BYTES
        offsets, positions = self._offsets[first:], self._positions[first:]
        out = array("i", bytes(OFFSET_ENTRY_BYTES * len(offsets)))
        out[0::2], out[1::2] = offsets, positions
        if _IS_LITTLE:
            out.byteswap()
        return out.tobytes()

    def times_from(self, start: int) -> bytes:
        """What `.timeindex` has from this byte on."""
        first = start // TIME_ENTRY_BYTES
        entries = zip(self._times[first:], self._time_offsets[first:], strict=True)
        return b"".join(_TIME_ENTRY.pack(*entry) for entry in entries)


def decode(base_offset: int, offsets: bytes, times: bytes) -> SparseIndex:
    """The index of which these are the two files."""
    index = SparseIndex(base_offset)
    entries = array("i", offsets)
    if _IS_LITTLE:
        entries.byteswap()
    index._offsets, index._positions = entries[0::2], entries[1::2]
    for timestamp_ms, offset in _TIME_ENTRY.iter_unpack(times):
        index._times.append(timestamp_ms)
        index._time_offsets.append(offset)
    return index
