"""Find the bytes of a log that are damaged, so that a person can repair it.

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

# What stands at byte 12 of every batch: the leader epoch (0 in ours; Kafka's are small), magic 2.
_LANDMARK = re.compile(rb"(?=\x00\x00..\x02)", re.DOTALL)
_LANDMARK_AT = 12
_LANDMARK_END = 17
_CHECKSUM_END = 21  # it is over all that follows
WINDOW_BYTES = 1 << 16

Read: TypeAlias = Callable[[int, int], bytes]  # so many bytes, from this position on


class Damage(NamedTuple):
    """The bytes of a file that are no batch, or whose records can't be read."""

    path: Path
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.path}, from byte {self.start} to byte {self.end}"


def damage_with(segments: Segments, offset: int) -> Damage:
    """Locate the batch with this offset, which is damaged."""
    segment = segments.all[segments.with_offset(offset)]
    try:
        start = segment.position_of(offset)
    except Damaged as error:
        start = error.position
    return damage_at(segment, start, offset)


def damage_at(segment: Segment, start: int, offset: int) -> Damage:
    """Find where the damage ends that starts at this position, with this offset."""
    file = segment.file
    return Damage(segment.path, start, damage_end(file.read, start, file.size(), offset))


def damage_end(read: Read, start: int, end: int, offset: int) -> int:
    """Return where the damaged batch ends that begins at byte `start` and has this offset.

    That is where the next whole one begins, or `end` if there is none. Its length is believed if a
    batch begins there."""
    prefix = read(PREFIX_BYTES, start)
    size = size_at(prefix, 0) if len(prefix) == PREFIX_BYTES else 0
    stop = start + size
    if stop == end or (size >= HEADER_BYTES and _is_intact_batch(read, stop, end, offset)):
        return stop
    found = find_batch(read, start, end, offset)
    return end if found is None else found


def find_batch(read: Read, start: int, end: int, offset: int) -> int | None:
    """The position of the first whole batch behind `start`, and before `end`, that begins behind
    this offset; None if there is none. Read in windows: there may be a gigabyte."""
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
    """Whether all bytes of what may be a batch are there."""
    return at + HEADER_BYTES <= len(data) and HEADER_BYTES <= size_at(data, at) <= len(data) - at


def _is_intact_batch(read: Read, at: int, end: int, offset: int) -> bool:
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
