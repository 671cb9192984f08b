"""Find records by their timestamp, as ListOffsets requests them.

The indexes lead to a batch, whose header says whether it has a record of that time; only that one
batch is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coordinator.log.batch import RecordBatch
from coordinator.log.segment import CorruptBatch, LogSegment
from coordinator.log.segments import LogSegments
from coordinator.log.storage_errors import StorageErrorLog


class OffsetAndTimestamp(NamedTuple):
    """Represents a record that was found by its timestamp."""

    offset: int
    timestamp_ms: int


class TimestampLookup:
    """Finds the records of one log by their timestamp."""

    def __init__(self, segments: LogSegments, storage_errors: StorageErrorLog) -> None:
        self._segments = segments
        self._storage_errors = storage_errors

    def find_offset(
        self, timestamp_ms: int, start_offset: int, upper_offset: int
    ) -> OffsetAndTimestamp | None:
        """Find the first record at or after a timestamp; return None if there is none.

        Only records from `start_offset` on and below `upper_offset` count. Raises: Refused
        (CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR).
        """
        try:
            for segment in self._segments.all:
                for batch in _iterate_batches_from(segment, timestamp_ms, start_offset):
                    for found in _iterate_record_timestamps(batch):
                        if found.timestamp_ms >= timestamp_ms and found.offset >= start_offset:
                            return found if found.offset < upper_offset else None
        except (CorruptBatch, OSError) as error:
            raise self._storage_errors.log_and_create_read_refusal(error) from error
        return None

    def find_max_timestamp(self, start_offset: int) -> OffsetAndTimestamp | None:
        """Find the first record with the largest timestamp; return None if there is none.

        Only records from `start_offset` on count. Raises: Refused (CORRUPT_MESSAGE,
        KAFKA_STORAGE_ERROR).
        """
        try:
            batch = self._find_batch_with_max_timestamp(start_offset)
        except (CorruptBatch, OSError) as error:
            raise self._storage_errors.log_and_create_read_refusal(error) from error
        if batch is None:
            return None
        whole = OffsetAndTimestamp(batch.last_offset, batch.max_timestamp_ms)
        records = (r for r in _iterate_record_timestamps(batch) if r.offset >= start_offset)
        return max(records, key=lambda record: record.timestamp_ms, default=whole)

    def _find_batch_with_max_timestamp(self, start_offset: int) -> RecordBatch | None:
        """Return the first batch with the largest timestamp from `start_offset` on, or None."""
        segments = self._segments
        first, *rest = segments.all[segments.find_segment_index(start_offset) :] or (None,)
        batch = _find_first_batch_with_max_timestamp(first, start_offset) if first else None
        newest = max(rest, key=lambda each: each.max_timestamp_ms, default=None)
        if newest and newest.max_timestamp_ms > (batch.max_timestamp_ms if batch else -1):
            batch = _find_first_batch_with_max_timestamp(newest, start_offset)
        return batch


def _iterate_batches_from(
    segment: LogSegment, timestamp_ms: int, start_offset: int
) -> Iterator[RecordBatch]:
    """Yield the batches of a segment that have a record of this timestamp or a later one.

    Only batches with `start_offset` or later offsets count. Raises: `CorruptBatch`.
    """
    if segment.max_timestamp_ms < timestamp_ms:
        return
    start = segment.find_batch_position(
        max(start_offset, segment.index.find_offset_before_time(timestamp_ms))
    )
    for position, _, _ in segment.iterate_headers(start):
        if segment.read_header_at(position).max_timestamp_ms >= timestamp_ms:
            yield segment.read_batch_at(position)


def _find_first_batch_with_max_timestamp(
    segment: LogSegment, start_offset: int
) -> RecordBatch | None:
    """Return a segment's first batch with the largest timestamp from `start_offset` on, or None.

    Raises: `CorruptBatch`.
    """
    if segment.max_timestamp_ms < 0:
        return None
    if segment.max_timestamp_offset >= start_offset:
        return segment.read_batch_at(segment.find_batch_position(segment.max_timestamp_offset))
    largest, at = -1, -1
    for position, _, _ in segment.iterate_headers(segment.find_batch_position(start_offset)):
        timestamp_ms = segment.read_header_at(position).max_timestamp_ms
        if timestamp_ms > largest:
            largest, at = timestamp_ms, position
    return segment.read_batch_at(at) if at >= 0 else None


def _iterate_record_timestamps(batch: RecordBatch) -> Iterator[OffsetAndTimestamp]:
    """Yield offset and timestamp of each record of a batch.

    The content of a produced batch need not be records: the end of the batch stands for those that
    can't be read.
    """
    try:
        for record in batch.iterate_records():
            yield OffsetAndTimestamp(record.offset, record.timestamp_ms)
    except (ValueError, IndexError):
        yield OffsetAndTimestamp(batch.last_offset, batch.max_timestamp_ms)
