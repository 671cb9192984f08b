"""Finds the damaged bytes of a log, so that a person can repair it.

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

from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES, parse_header, size_at
from coordinator.log.segment import Damaged, Segment
from coordinator.log.segments import Segments

# Byte 12 of every batch: the leader epoch (0 in ours; Kafka's are small), then magic 2.
_LANDMARK = re.compile(rb"(?=\x00\x00..\x02)", re.DOTALL)
_LANDMARK_AT = 12
_LANDMARK_END = 17
_CHECKSUM_END = 21  # the checksum is over all that follows
WINDOW_BYTES = 1 << 16

Read: TypeAlias = Callable[[int, int], bytes]  # (count, position) -> bytes


class Damage(NamedTuple):
    """Represents the bytes of a file that are no batch, or whose records can't be read."""

    path: Path
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}, from byte {self.start} to byte {self.end}"


def damage_with(segments: Segments, offset: int) -> Damage:
    """Locate the bytes of the damaged batch that has this offset."""
    segment = segments.all[segments.with_offset(offset)]
    try:
        start = segment.position_of(offset)
    except Damaged as error:
        start = error.position
    return damage_at(segment, start, offset)


def damage_at(segment: Segment, start: int, offset: int) -> Damage:
    """Find the range of damaged bytes that starts at this position of a segment.

    `damaged_offset` is the offset of the damaged batch.
    """
    file = segment.file
    return Damage(segment.path, start, damage_end(file.read, start, file.size(), offset))


def damage_end(read: Read, start: int, end: int, offset: int) -> int:
    """Return the position at which the damaged batch ends.

    That is where the next whole batch begins, or `end_position` if there is none. The length in the
    damaged batch is believed if a batch begins there.
    """
    prefix = read(PREFIX_BYTES, start)
    size = size_at(prefix, 0) if len(prefix) == PREFIX_BYTES else 0
    stop = start + size
    if stop == end or (size >= HEADER_BYTES and _is_intact_batch(read, stop, end, offset)):
        return stop
    found = find_batch(read, start, end, offset)
    return end if found is None else found


def find_batch(read: Read, start: int, end: int, offset: int) -> int | None:
    """Return the position of the first intact batch between two positions; None if there is none.

    It begins behind `start_position` and has a base offset above `after_offset`. The file is read
    in windows: there may be a gigabyte.
    """
    at = start + 1
    while at + HEADER_BYTES <= end:
        window = read(WINDOW_BYTES + _LANDMARK_END - 1, at)
        for landmark in _LANDMARK.finditer(window, _LANDMARK_AT):
            found = at + landmark.start() - _LANDMARK_AT
            if _is_intact_batch(read, found, end, offset):
                return found
        at += WINDOW_BYTES
    return None


def is_whole(data: bytes, at: int) -> bool:
    """Whether all bytes of the batch at this position are in the data."""
    return at + HEADER_BYTES <= len(data) and HEADER_BYTES <= size_at(data, at) <= len(data) - at


def _is_intact_batch(read: Read, at: int, end: int, offset: int) -> bool:
    """Whether a whole batch with a right checksum and a higher offset stands at this position."""
    if at + HEADER_BYTES > end:
        return False
    batch = parse_header(read(HEADER_BYTES, at))
    if batch.magic != 2 or batch.base_offset <= offset:
        return False
    stop = at + batch.size
    if not at + HEADER_BYTES <= stop <= end:
        return False
    at += _CHECKSUM_END
    crc = 0
    while at < stop:
        piece = read(min(WINDOW_BYTES, stop - at), at)
        if not piece:
            return False
        crc = crc32c(piece, crc)
        at += len(piece)
    return crc == batch.crc
