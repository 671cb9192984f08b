"""Decide which batches replace a batch when its log is compacted.

    the batch is                              what is left
    of an aborted transaction                 nothing
    a marker that ends nothing any more       itself until its delete horizon, then nothing
    another marker, or beyond the map         itself
    of records                                those that are the last of their key; of these one
                                              without a value until the delete horizon; none
                                              without a key

The delete horizon of a batch is the time from which its tombstones or its marker may go:
`delete.retention.ms` after a cleaning first met them. It stands in the header in the place of the
base timestamp, and a bit of the attributes says so (KIP-534).

A batch that loses all its records goes as well, but for two: the last batch of a producer that is
still known, since it tells its sequence and epoch, and the last batch of the segments that are
cleaned into one, since it tells where the next one goes on. Of these an empty header stays.
Source: Cleaner.cleanInto, MemoryRecords.filterTo. There the last batch of the whole cleaning stays,
and a segment whose last batches are gone ends earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.log.batch import RecordBatch
from coordinator.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
from coordinator.log.cleaner.offset_map import OffsetMap
from coordinator.log.cleaner.rebuild_batch import build_empty_batch, rebuild_batches
from coordinator.log.cleaner.record_spans import read_batch_spans
from coordinator.log.cleaner.steps import Steps

_RECORDS_A_STEP = 512


class LastProducerRecord(NamedTuple):
    """Represents a producer's last data offset on a partition, and its epoch.

    Kafka: `LastRecord`.
    """

    offset: int | None  # None: only markers of this producer are known
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningParameters:
    """Holds the parameters that one cleaning applies to all batches of a run."""

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    max_message_bytes: int
    producers: Mapping[int, LastProducerRecord]

    @property
    def delete_horizon_ms(self) -> int:
        """Return the delete horizon that this cleaning sets where a batch has none yet."""
        return self.now_ms + self.delete_retention_ms


def compact_batch(
    batch: RecordBatch,
    cleaning: CleaningParameters,
    transactions: CleanedTransactionMetadata,
    *,
    is_last: bool,
) -> Steps[list[bytes]]:
    """Return the batches that replace a batch: itself, an emptied one, none, or rarely several.

    Batches come in the order of the log. Raises: ValueError or IndexError where the bytes are no
    records.
    """
    kept: list[bytes] = []
    if batch.is_control:
        kept = yield from _compact_marker(batch, cleaning, transactions)
    elif not transactions.on_batch_read(batch) and batch.record_count:
        kept = yield from _compact_records(batch, cleaning)
    if not kept and (is_last or _is_last_of_producer(batch, cleaning.producers)):
        return [build_empty_batch(batch)]
    return kept


def _compact_marker(
    batch: RecordBatch, cleaning: CleaningParameters, transactions: CleanedTransactionMetadata
) -> Steps[list[bytes]]:
    """Return the batches that replace a marker: itself, one with a delete horizon, or none."""
    if not transactions.on_control_batch_read(batch):
        return [bytes(batch.data)]
    horizon_ms = batch.delete_horizon_ms
    if not batch.record_count or (horizon_ms is not None and horizon_ms <= cleaning.now_ms):
        return []
    if horizon_ms is not None:
        return [bytes(batch.data)]
    data, spans = yield from read_batch_spans(batch)
    return (
        yield from rebuild_batches(
            batch, data, spans, cleaning.delete_horizon_ms, cleaning.max_message_bytes
        )
    )


def _compact_records(batch: RecordBatch, cleaning: CleaningParameters) -> Steps[list[bytes]]:
    """Return the batches that replace a batch of records: itself, smaller ones, or none."""
    offsets = cleaning.offsets
    if batch.base_offset >= offsets.end_offset:
        return [bytes(batch.data)]
    data, spans = yield from read_batch_spans(batch)
    horizon_ms = batch.delete_horizon_ms
    keeps_tombstones = horizon_ms is None or cleaning.now_ms < horizon_ms
    base_offset, end_offset = batch.base_offset, offsets.end_offset
    is_replaced = offsets.is_replaced
    kept = []
    has_tombstones = False
    for start in range(0, len(spans), _RECORDS_A_STEP):
        for span in spans[start : start + _RECORDS_A_STEP]:
            offset = base_offset + span.offset_delta
            if offset < end_offset:
                if span.key is None or is_replaced(span.key, offset):
                    continue
                if not span.has_value:
                    if not keeps_tombstones:
                        continue
                    has_tombstones = True
            kept.append(span)
        yield None
    sets_horizon = has_tombstones and horizon_ms is None
    if not kept or (len(kept) == len(spans) and not sets_horizon):
        return [bytes(batch.data)] if kept else []
    return (
        yield from rebuild_batches(
            batch,
            data,
            kept,
            cleaning.delete_horizon_ms if sets_horizon else None,
            cleaning.max_message_bytes,
        )
    )


def _is_last_of_producer(batch: RecordBatch, producers: Mapping[int, LastProducerRecord]) -> bool:
    """Return whether this is the last batch that the partition remembers of its producer."""
    last = producers.get(batch.producer_id)
    if last is None:
        return False
    if last.offset is None:
        return batch.is_control and batch.producer_epoch == last.epoch
    return batch.last_offset == last.offset
