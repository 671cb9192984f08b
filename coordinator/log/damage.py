"""Where the damage in a log is, so that a person can repair it.

A repair takes the bytes of the damaged batch out of its file (see `coordinator.repair`): from where
it begins to where the next whole batch does. The length in a damaged batch may be wrong, too, so
that a next batch counts only if its checksum is right.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES, parse_header, size_at
from coordinator.log.segment import Damaged, Segment
from coordinator.log.segments import Segments

# What stands at byte 12 of every batch: the leader epoch (0 in ours; Kafka's are small), magic 2.
_LANDMARK = re.compile(rb"(?=\x00\x00..\x02)", re.DOTALL)
_LANDMARK_AT = 12


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
    data = segment.file.read(segment.file.size() - start, start)
    return Damage(segment.path, start, start + damaged_bytes(data, offset))


def damaged_bytes(data: bytes, offset: int) -> int:
    """Count the bytes up to the next whole batch, or to the end if there is none. `data` starts
    with the damaged batch, which has this offset. Its length is believed if a batch begins there.
    """
    size = size_at(data, 0) if len(data) >= PREFIX_BYTES else 0
    if size == len(data) or (size >= HEADER_BYTES and _is_intact_batch(data, size, offset)):
        return size
    end = find_batch(data, offset)
    return len(data) if end is None else end


def find_batch(data: bytes, offset: int) -> int | None:
    """The position of the first whole batch behind the start of `data` that begins behind this
    offset; None if there is none."""
    for found in _LANDMARK.finditer(data, _LANDMARK_AT + 1):
        at = found.start() - _LANDMARK_AT
        if _is_intact_batch(data, at, offset):
            return at
    return None


def is_whole(data: bytes, at: int) -> bool:
    """Whether all bytes of what may be a batch are there."""
    return at + HEADER_BYTES <= len(data) and HEADER_BYTES <= size_at(data, at) <= len(data) - at


def _is_intact_batch(data: bytes, at: int, offset: int) -> bool:
    if not is_whole(data, at):
        return False
    batch = parse_header(memoryview(data), at)
    return batch.magic == 2 and batch.base_offset > offset and batch.is_intact()
