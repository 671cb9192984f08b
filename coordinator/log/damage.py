"""Find the damaged bytes of a log, so that a person can repair it.

A repair takes the bytes of the damaged batch out of its file (see `coordinator.repair`): from where
it begins to where the next whole batch does. The length in a damaged batch may be wrong, too, so
that a next batch counts only if its checksum is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES, parse_header, read_batch_size_at
from coordinator.log.segment import CorruptBatch, LogSegment
from coordinator.log.segments import LogSegments

# Byte 12 of every batch: the leader epoch (0 in ours; Kafka's are small), then magic 2.
_LANDMARK = re.compile(rb"(?=\x00\x00..\x02)", re.DOTALL)
_LANDMARK_AT = 12
_LANDMARK_END = 17
_CHECKSUM_END = 21  # the checksum is over all that follows
WINDOW_BYTES = 1 << 16

ReadBytes: TypeAlias = Callable[[int, int], bytes]  # (count, position) -> bytes


class DamagedRange(NamedTuple):
    """Represents the bytes of a file that are no batch, or whose records can't be read."""

    path: Path
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}, from byte {self.start} to byte {self.end}"


def locate_damaged_batch(segments: LogSegments, offset: int) -> DamagedRange:
    """Locate the bytes of the damaged batch that has this offset."""
    segment = segments.all[segments.find_segment_index(offset)]
    try:
        start = segment.find_batch_position(offset)
    except CorruptBatch as error:
        start = error.position
    return find_damaged_range(segment, start, offset)


def find_damaged_range(
    segment: LogSegment, start_position: int, damaged_offset: int
) -> DamagedRange:
    """Find the range of damaged bytes that starts at this position of a segment.

    `damaged_offset` is the offset of the damaged batch.
    """
    file = segment.file
    return DamagedRange(
        segment.path,
        start_position,
        find_damage_end(file.read, start_position, file.size(), damaged_offset),
    )


def find_damage_end(
    read_bytes: ReadBytes, start_position: int, end_position: int, damaged_offset: int
) -> int:
    """Return the position at which the damaged batch ends.

    That is where the next whole batch begins, or `end_position` if there is none. The length in the
    damaged batch is believed if a batch begins there.
    """
    prefix = read_bytes(PREFIX_BYTES, start_position)
    size = read_batch_size_at(prefix, 0) if len(prefix) == PREFIX_BYTES else 0
    stop = start_position + size
    if stop == end_position or (
        size >= HEADER_BYTES and _is_intact_batch(read_bytes, stop, end_position, damaged_offset)
    ):
        return stop
    found = find_next_intact_batch(read_bytes, start_position, end_position, damaged_offset)
    return end_position if found is None else found


def find_next_intact_batch(
    read_bytes: ReadBytes, start_position: int, end_position: int, after_offset: int
) -> int | None:
    """Return the position of the first intact batch between two positions; None if there is none.

    It begins behind `start_position` and has a base offset above `after_offset`. The file is read
    in windows: there may be a gigabyte.
    """
    at = start_position + 1
    while at + HEADER_BYTES <= end_position:
        window = read_bytes(WINDOW_BYTES + _LANDMARK_END - 1, at)
        for landmark in _LANDMARK.finditer(window, _LANDMARK_AT):
            found = at + landmark.start() - _LANDMARK_AT
            if _is_intact_batch(read_bytes, found, end_position, after_offset):
                return found
        at += WINDOW_BYTES
    return None


def has_whole_batch(data: bytes, position: int) -> bool:
    """Return whether all bytes of the batch at this position are in the data."""
    return (
        position + HEADER_BYTES <= len(data)
        and HEADER_BYTES <= read_batch_size_at(data, position) <= len(data) - position
    )


def _is_intact_batch(
    read_bytes: ReadBytes, position: int, end_position: int, after_offset: int
) -> bool:
    """Return whether a whole batch with a right checksum and a higher offset begins here."""
    if position + HEADER_BYTES > end_position:
        return False
    batch = parse_header(read_bytes(HEADER_BYTES, position))
    if batch.magic != 2 or batch.base_offset <= after_offset:
        return False
    stop = position + batch.size
    if not position + HEADER_BYTES <= stop <= end_position:
        return False
    position += _CHECKSUM_END
    crc = 0
    while position < stop:
        piece = read_bytes(min(WINDOW_BYTES, stop - position), position)
        if not piece:
            return False
        crc = crc32c(piece, crc)
        position += len(piece)
    return crc == batch.crc
