"""Finds what a reader may see in the segments of a log: whole batches and aborted transactions.

A place in the log is the index of a segment in `segments.all`, and a position in its file.
`upper_offset` is the offset that the reader may not reach. Nothing here copies a batch: a
`LogSlice` is sent by whoever answers.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.log.aborted import AbortedTransaction
from coordinator.log.batch import HEADER_BYTES
from coordinator.log.segment import Segment
from coordinator.log.segments import Segments
from coordinator.log.slice import Slice


class Fetched(NamedTuple):
    """Represents whole batches, and the aborted transactions that touch them.

    `aborted` is None if it was not asked for. Kafka: `FetchDataInfo`.
    """

    records: Slice | bytes
    aborted: list[AbortedTransaction] | None
    available: int  # bytes that may be seen in this segment, without the limit of the fetch
    is_older_segment: bool  # more may be seen in the next segment


_NOTHING = Fetched(b"", None, 0, False)
_NOTHING_COMMITTED = Fetched(b"", [], 0, False)


class _Located(NamedTuple):
    """Represents whole batches in one segment, from position `start` to `stop`."""

    segment: Segment
    start: int
    stop: int
    end: int  # end of the bytes that may be seen in this segment
    is_older_segment: bool
    at: int  # the segment's index in `segments.all`

    @property
    def slice(self) -> Slice:
        """Return the bytes of the batches as a slice of the segment's file."""
        return Slice(self.segment.file, self.start, self.stop - self.start)


def read(segments: Segments, end_offset: int, offset: int, max_bytes: int) -> bytes:
    """Read batches from the one with `offset` on, or from the next one, at least one.

    Empty at the end of the log. Raises: `CorruptBatch`.
    """
    if offset >= end_offset:
        return b""
    found = _locate(segments, end_offset, offset, end_offset, max_bytes, True)
    return bytes(found.slice) if found else b""


def fetch(
    segments: Segments,
    end_offset: int,
    offset: int,
    upper: int,
    max_bytes: int,
    *,
    committed: bool,
    at_least_one: bool,
) -> Fetched:
    """Return the batches from `offset` on and below `upper_offset`, as a slice that is read later.

    With `committed` also the aborted transactions that touch them. Raises: `CorruptBatch`.
    """
    nothing = _NOTHING_COMMITTED if committed else _NOTHING
    if offset >= upper:
        return nothing
    found = _locate(segments, end_offset, offset, upper, max_bytes, at_least_one)
    if found is None:
        return nothing
    aborted = _aborted_in(segments, end_offset, offset, upper, found) if committed else None
    return Fetched(found.slice, aborted, found.end - found.start, found.is_older_segment)


def _locate(
    segments: Segments,
    end_offset: int,
    offset: int,
    upper: int,
    max_bytes: int,
    at_least_one: bool,
) -> _Located | None:
    """Locate whole batches from `offset` on and below `upper_offset` in one segment.

    `upper_offset` is above `offset`. None if there are none. Raises: `CorruptBatch`.
    """
    at = segments.with_offset(offset)
    segment = segments.all[at]
    start = segment.position_of(offset)
    while segment.size - start <= HEADER_BYTES:
        # The batches that were here have been compacted away, but for the empty one that the
        # cleaner may leave at a segment's end. librdkafka doubles its limit with each answer
        # without a record, and reads no further when that has passed 1 GiB, so the next segment is
        # answered if it can be.
        if at + 1 == len(segments.all) or segments.all[at + 1].base_offset >= upper:
            if start == segment.size:
                return None
            break
        at += 1
        segment, start = segments.all[at], 0
    segment_end = segments.end_of(at, end_offset)
    end = segment.size if upper >= segment_end else segment.position_of(upper)
    stop = segment.whole_batches_end(start, end, max_bytes, at_least_one)
    if stop > start:
        stop = segment.intact_end(start, stop, segment_end)
    return _Located(segment, start, stop, end, upper > segment_end, at)


def _aborted_in(
    segments: Segments, end_offset: int, offset: int, upper: int, found: _Located
) -> list[AbortedTransaction]:
    """Return the aborted transactions that touch the located batches, from `offset` on."""
    if found.stop == found.start:
        return []
    if found.stop < found.segment.size:
        upper = min(upper, found.segment.offset_at(found.stop))
    elif found.is_older_segment:
        upper = min(upper, segments.end_of(found.at, end_offset))
    return aborted_from(segments, found.at, offset, upper)


def aborted_from(segments: Segments, at: int, offset: int, upper: int) -> list[AbortedTransaction]:
    """Collect aborted transactions with data in [offset, upper_offset), in order of completion.

    The indexes are searched from the segment at `first_segment_index` on.
    """
    aborted: list[AbortedTransaction] = []
    for segment in segments.all[at:]:
        if segment.aborted:
            touching, is_all = segment.aborted.touching(offset, upper)
            aborted += touching
            if is_all:
                break
    return aborted
