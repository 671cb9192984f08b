"""Finds records by their timestamp, as ListOffsets asks for them.

The indexes lead to a batch, whose header says whether it has a record of that time; only that one
batch is opened.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.log.batch import RecordBatch
from coordinator.log.segments import LogSegments


def find_offset_by_timestamp(
    segments: LogSegments, timestamp_ms: int, start_offset: int, upper_offset: int
) -> tuple[int, int] | None:
    """Find the first record at or after a timestamp; return its offset and timestamp, or None.

    Only records from `start_offset` on and below `upper_offset` count. Raises: `CorruptBatch`.
    """
    for segment in segments.all:
        for batch in segment.batches_from_timestamp(timestamp_ms, start_offset):
            for offset, time_ms in _record_timestamps(batch):
                if time_ms >= timestamp_ms and offset >= start_offset:
                    return (offset, time_ms) if offset < upper_offset else None
    return None


def find_max_timestamp_offset(segments: LogSegments, start_offset: int) -> tuple[int, int] | None:
    """Find the first record with the largest timestamp; return its offset and timestamp, or None.

    Only records from `start_offset` on count. Raises: `CorruptBatch`.
    """
    first, *rest = segments.all[segments.segment_index_of(start_offset) :] or (None,)
    batch = first.batch_with_max_timestamp(start_offset) if first else None
    newest = max(rest, key=lambda each: each.max_timestamp_ms, default=None)
    if newest and newest.max_timestamp_ms > (batch.max_timestamp_ms if batch else -1):
        batch = newest.batch_with_max_timestamp(start_offset)
    if batch is None:
        return None
    whole = (batch.last_offset, batch.max_timestamp_ms)
    places = (p for p in _record_timestamps(batch) if p[0] >= start_offset)
    return max(places, key=lambda place: place[1], default=whole)


def _record_timestamps(batch: RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield (offset, timestamp) of each record of a batch.

    The content of a produced batch need not be records: the end of the batch stands for those that
    can't be read.
    """
    try:
        for record in batch.iterate_records():
            yield record.offset, record.timestamp_ms
    except (ValueError, IndexError):
        yield batch.last_offset, batch.max_timestamp_ms
