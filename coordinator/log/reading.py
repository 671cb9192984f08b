"""Find what a reader may see in the segments of a log: whole batches and aborted transactions.

A place in the log is the index of a segment in `segments.all`, and a position in its file.
`upper_offset` is the offset that the reader may not reach. Nothing here copies a batch: a
`FileRecords` is sent by whoever answers.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.log.batch import HEADER_BYTES
from coordinator.log.file_records import FileRecords
from coordinator.log.segment import LogSegment
from coordinator.log.segments import LogSegments
from coordinator.log.transaction_index import AbortedTransaction


class FetchedBatches(NamedTuple):
    """Represents whole batches, and the aborted transactions that touch them.

    `aborted` is None if it was not asked for. Kafka: `FetchDataInfo`.
    """

    records: FileRecords | bytes
    aborted: list[AbortedTransaction] | None
    available: int  # bytes that may be seen in this segment, without the limit of the fetch
    is_older_segment: bool  # more may be seen in the next segment
    end_offset: int = -1  # of the last batch, exclusive; -1 without batches


_NOTHING = FetchedBatches(b"", None, 0, False)
_NOTHING_COMMITTED = FetchedBatches(b"", [], 0, False)


class _LocatedBatches(NamedTuple):
    """Represents whole batches in one segment, from the byte position `start` to `stop`."""

    segment: LogSegment
    start: int
    stop: int
    end: int  # end of the bytes that may be seen in this segment
    is_older_segment: bool
    at: int  # the segment's index in `segments.all`

    @property
    def records(self) -> FileRecords:
        """Return the bytes of the batches as a range of the segment's file."""
        return FileRecords(self.segment.file, self.start, self.stop - self.start)


def read_batches(segments: LogSegments, end_offset: int, offset: int, max_bytes: int) -> bytes:
    """Read batches from the one with `offset` on, or from the next one, at least one.

    Empty at the end of the log. Raises: `CorruptBatch`.
    """
    if offset >= end_offset:
        return b""
    found = _locate_batches(segments, end_offset, offset, end_offset, max_bytes, True)
    return bytes(found.records) if found else b""


def fetch_batches(
    segments: LogSegments,
    end_offset: int,
    offset: int,
    upper_offset: int,
    max_bytes: int,
    *,
    committed: bool,
    at_least_one: bool,
) -> FetchedBatches:
    """Return the batches from `offset` on below `upper_offset`, as a range of a file, read later.

    With `committed` also the aborted transactions that touch them. Raises: `CorruptBatch`.
    """
    nothing = _NOTHING_COMMITTED if committed else _NOTHING
    if offset >= upper_offset:
        return nothing
    found = _locate_batches(segments, end_offset, offset, upper_offset, max_bytes, at_least_one)
    if found is None:
        return nothing
    aborted = (
        _find_aborted_in_batches(segments, end_offset, offset, upper_offset, found)
        if committed
        else None
    )
    return FetchedBatches(
        found.records,
        aborted,
        found.end - found.start,
        found.is_older_segment,
        _find_end_offset(segments, found, end_offset),
    )


def _find_end_offset(segments: LogSegments, located: _LocatedBatches, log_end_offset: int) -> int:
    """Return the offset at which located batches end; it is read only if they end in between."""
    if located.stop < located.segment.size:
        return located.segment.read_base_offset_at(located.stop)
    return segments.segment_end_offset(located.at, log_end_offset)


def _locate_batches(
    segments: LogSegments,
    end_offset: int,
    offset: int,
    upper_offset: int,
    max_bytes: int,
    at_least_one: bool,
) -> _LocatedBatches | None:
    """Locate whole batches from `offset` on and below `upper_offset` in one segment.

    `upper_offset` is above `offset`. None if there are none. Raises: `CorruptBatch`.
    """
    at = segments.find_segment_index(offset)
    segment = segments.all[at]
    start = segment.find_batch_position(offset)
    while segment.size - start <= HEADER_BYTES:
        # The batches that were here have been compacted away, but for the empty one that the
        # cleaner may leave at a segment's end. librdkafka doubles its limit with each answer
        # without a record, and reads no further when that has passed 1 GiB, so the next segment is
        # answered if it can be.
        if at + 1 == len(segments.all) or segments.all[at + 1].base_offset >= upper_offset:
            if start == segment.size:
                return None
            break
        at += 1
        segment, start = segments.all[at], 0
    segment_end = segments.segment_end_offset(at, end_offset)
    end = segment.size if upper_offset >= segment_end else segment.find_batch_position(upper_offset)
    stop = segment.find_whole_batches_end(start, end, max_bytes, at_least_one)
    if stop > start:
        stop = segment.verify_batches(start, stop, segment_end)
    return _LocatedBatches(segment, start, stop, end, upper_offset > segment_end, at)


def _find_aborted_in_batches(
    segments: LogSegments, end_offset: int, offset: int, upper_offset: int, located: _LocatedBatches
) -> list[AbortedTransaction]:
    """Return the aborted transactions with data in the located batches, from `offset` on."""
    if located.stop == located.start:
        return []
    if located.stop < located.segment.size:
        upper_offset = min(upper_offset, located.segment.read_base_offset_at(located.stop))
    elif located.is_older_segment:
        upper_offset = min(upper_offset, segments.segment_end_offset(located.at, end_offset))
    return collect_aborted(segments, located.at, offset, upper_offset)


def collect_aborted(
    segments: LogSegments, first_segment_index: int, offset: int, upper_offset: int
) -> list[AbortedTransaction]:
    """Collect aborted transactions with data in [offset, upper_offset), in order of completion.

    The indexes are searched from the segment at `first_segment_index` on.
    """
    aborted: list[AbortedTransaction] = []
    for segment in segments.all[first_segment_index:]:
        if segment.transaction_index:
            found = segment.transaction_index.collect_aborted(offset, upper_offset)
            aborted += found.aborted
            if found.is_complete:
                break
    return aborted
