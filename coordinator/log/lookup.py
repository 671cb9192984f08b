"""Records by their timestamp, as ListOffsets asks for them.

The indexes lead to a batch, whose header says whether it has a record of that time; only that one
batch is opened.
"""

from __future__ import annotations

from coordinator.log.batch import COMPRESSION_MASK, Batch
from coordinator.log.segments import Segments


def by_timestamp(
    segments: Segments, timestamp_ms: int, start_offset: int, upper_offset: int
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record from `start_offset` on and below `upper_offset` that
    is not earlier. Damaged.

    A compressed batch stays closed: its first record stands for all of it, which is never too late
    a place to read from.
    """
    for segment in segments.all:
        batch = segment.first_batch_from(timestamp_ms, start_offset)
        if batch is None:
            continue
        whole = (batch.base_offset, batch.base_timestamp_ms)
        places = (p for p in _places(batch) if p[1] >= timestamp_ms and p[0] >= start_offset)
        found = next(places, whole)
        return found if found[0] < upper_offset else None
    return None


def with_max_timestamp(segments: Segments) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record that has the largest timestamp; of a compressed
    batch the last record. Damaged."""
    newest = max(segments.all, key=lambda segment: segment.max_timestamp_ms, default=None)
    batch = newest.batch_with_max_timestamp() if newest else None
    if batch is None:
        return None
    whole = (batch.last_offset, batch.max_timestamp_ms)
    return next((p for p in _places(batch) if p[1] == batch.max_timestamp_ms), whole)


def _places(batch: Batch) -> list[tuple[int, int]]:
    """(offset, timestamp) of each record; none if the batch is compressed, or what the producer
    put into it aren't records."""
    if batch.attributes & COMPRESSION_MASK:
        return []
    try:
        return [(record.offset, record.timestamp_ms) for record in batch.records()]
    except (ValueError, IndexError):
        return []
