"""Reading a segment from start to end when the broker starts: what is whole is kept.

A broker that was killed in the middle of a write leaves a piece of a batch at the end of the last
segment. It was never answered for, so it is cut off. Anything else that isn't a valid batch means
that acknowledged data is damaged: if a whole batch stands behind it, or in an earlier segment, the
broker doesn't start, and says in which file and where.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES, Batch, parse_header, size_at
from coordinator.log.segment import Segment

_WINDOW_BYTES = 1 << 20
# What stands at byte 12 of every batch of ours: leader epoch 0, magic 2.
_LANDMARK = b"\0\0\0\0\2"
_LANDMARK_AT = 12


class CorruptLog(Exception):
    """Acknowledged data is damaged. Nothing has been changed."""

    def __init__(self, segment: Segment, position: int) -> None:
        super().__init__(
            f"{segment.path}: damaged at byte {position}, with valid data behind it. "
            "Restore the file, or cut it there (truncate -s) and lose what follows"
        )


def scan(segment: Segment, next_offset: int, *, is_last: bool) -> Iterator[Batch]:
    """Each whole batch, noted in the segment; ends by cutting a torn tail. CorruptLog otherwise."""
    end = segment.file.size()
    window, start = b"", 0
    while True:
        position = segment.size
        at = position - start
        if not _is_whole(window, at) and position < end:
            window, start, at = _window(segment, position, end), position, 0
        if not _is_whole(window, at):
            break
        batch = parse_header(memoryview(window), at)
        if batch.magic != 2 or batch.base_offset != next_offset or not batch.is_intact():
            break
        segment.noted(batch.size, batch.last_offset, batch.max_timestamp_ms)
        next_offset = batch.last_offset + 1
        yield batch
    if segment.size < end:
        if not is_last or _is_followed(segment, segment.size, next_offset):
            raise CorruptLog(segment, segment.size)
        segment.truncate()


def _window(segment: Segment, position: int, end: int) -> bytes:
    """Bytes from here on with the whole next batch in them, if it is all there."""
    window = segment.file.read(_WINDOW_BYTES, position)
    if len(window) >= PREFIX_BYTES:
        size = size_at(window, 0)
        if len(window) < size <= end - position:
            return segment.file.read(size, position)
    return window


def _is_whole(window: bytes, at: int) -> bool:
    return at + HEADER_BYTES <= len(window) and HEADER_BYTES <= size_at(window, at) <= (
        len(window) - at
    )


def _is_followed(segment: Segment, position: int, next_offset: int) -> bool:
    """Whether a valid batch of this log stands anywhere behind the damage at `position`."""
    rest = segment.file.read(segment.file.size() - position, position)
    found = rest.find(_LANDMARK, _LANDMARK_AT + 1)
    while found >= 0:
        at = found - _LANDMARK_AT
        if _is_whole(rest, at):
            batch = parse_header(memoryview(rest), at)
            if batch.base_offset > next_offset and batch.is_intact():
                return True
        found = rest.find(_LANDMARK, found + 1)
    return False
