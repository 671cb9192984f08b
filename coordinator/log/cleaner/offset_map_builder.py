"""Add the keys of the dirty section to an offset map: the first of a cleaning's two readings.

Every batch from the first dirty offset on is read, and its transactions as the second reading will
meet them: the key of an aborted record replaces nothing.
Source: Cleaner.buildOffsetMapForSegment.
"""

from __future__ import annotations

from coordinator.log.batch import RecordBatch
from coordinator.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
from coordinator.log.cleaner.offset_map import OffsetMap
from coordinator.log.cleaner.record_spans import read_batch_spans
from coordinator.log.cleaner.steps import Steps

_RECORDS_A_STEP = 512


def try_add_batch_to_offset_map(
    batch: RecordBatch,
    offsets: OffsetMap,
    transactions: CleanedTransactionMetadata,
    first_dirty_offset: int,
) -> Steps[bool]:
    """Add the keys of the log's next batch to the offset map; return False if it is full.

    If it is, the map ends before the record that found no room. Raises: ValueError or IndexError
    where the bytes are no records.
    """
    if batch.is_control:
        transactions.on_control_batch_read(batch)
    elif not transactions.on_batch_read(batch) and batch.record_count:
        _, spans = yield from read_batch_spans(batch)
        put = offsets.try_put_offset
        for start in range(0, len(spans), _RECORDS_A_STEP):
            for span in spans[start : start + _RECORDS_A_STEP]:
                offset = batch.base_offset + span.offset_delta
                if span.key is None or offset < first_dirty_offset:
                    continue
                if not put(span.key, offset):
                    offsets.end_offset = offset
                    return False
            yield None
    offsets.end_offset = batch.last_offset + 1
    return True
