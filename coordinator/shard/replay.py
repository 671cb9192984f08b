"""Replay the log of a shard: decode its batches and apply their records, a slice at a time.

Data of transactions is applied with its producer id, and markers, in the order of the log. A record
of a newer broker, or of a kind that this one lacks, is kept and reported: see `unknown_records`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from coordinator.log.batch import RecordBatch, iterate_batches
from coordinator.shard.counters import ShardCounters
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded, create_record_origin
from coordinator.shard.record_fields import UnknownRecordVersion
from coordinator.shard.shard_log import RecordCodec, ShardLog
from coordinator.shard.unknown_records import UnknownRecordIndex

R = TypeVar("R")


class UnreadableRecord(Exception):
    """Signals that a record can't be decoded or applied while the log is replayed."""


class LogReplay(Generic[R]):
    """Replays a log from `next_offset` on, through the `apply` that live records go through."""

    def __init__(
        self,
        log: ShardLog,
        codec: RecordCodec[R],
        apply: Callable[[R | TransactionEnded, LogRecordOrigin], None],
        counters: ShardCounters,
        unknown_records: UnknownRecordIndex,
    ) -> None:
        self._log = log
        self._codec = codec
        self._apply = apply
        self._counters = counters
        self._unknown_records = unknown_records
        self.next_offset = log.start_offset

    @property
    def remaining_offset_count(self) -> int:
        """Return the number of offsets that are still to be replayed."""
        return self._log.end_offset - self.next_offset

    def rewind_to_start(self) -> None:
        """Begin at the start of the log again, as the shard's state has been cleared."""
        self.next_offset = self._log.start_offset
        self._counters.loaded = self._counters.load_ms = self._counters.unknown = 0
        self._unknown_records.clear_records()

    def replay_slice(self, max_bytes: int) -> None:
        """Replay at most `max_bytes` of the log, or what is left of it.

        Raises whatever is wrong with the batch that has `next_offset`, or comes next after it.
        """
        offset = self.next_offset
        if offset >= self._log.end_offset:
            return
        data = self._log.read(offset, max_bytes)
        for batch in iterate_batches(data):
            self._replay_batch(batch)
            self.next_offset = batch.last_offset + 1
        if data and self.next_offset <= offset:
            raise UnreadableRecord(f"nothing readable at offset {offset}, before the log's end")
        if not data:  # Compaction has removed what stood here.
            self.next_offset = self._log.end_offset

    def _replay_batch(self, batch: RecordBatch) -> None:
        """Apply the records of one batch, or its transaction marker."""
        if batch.is_control:
            if batch.record_count == 0:  # Compaction has removed the marker itself.
                return
            committed, coordinator_epoch = batch.decode_marker()
            marker = TransactionEnded(
                batch.producer_id, batch.producer_epoch, committed, coordinator_epoch
            )
            self._apply_replayed(marker, batch.base_offset, batch.producer_id)
            return
        producer_id = batch.producer_id if batch.is_transactional else -1
        for encoded in batch.iterate_records():
            record = self._decode_record(encoded.offset, encoded.key, encoded.value)
            if record is not None:
                self._apply_replayed(record, encoded.offset, producer_id)

    def _decode_record(self, offset: int, key: bytes | None, value: bytes | None) -> R | None:
        """Decode a record; return None if there is nothing to apply.

        A value of an unknown version counts as the tombstone of its key.
        """
        version: int | None = None
        try:
            try:
                record = self._codec.decode_record(key, value)
            except UnknownRecordVersion as unknown:
                version = unknown.version
                record = self._codec.decode_record(key, None)
        except (ValueError, IndexError) as error:
            raise UnreadableRecord(f"the record at offset {offset} is damaged: {error}") from error
        if key is None:
            return record
        if version is not None or (record is None and value is not None):
            self._unknown_records.add_record(key, version, offset)
            self._counters.unknown += 1
        elif self._unknown_records:
            self._unknown_records.remove_superseded(key)
        return record

    def _apply_replayed(self, record: R | TransactionEnded, offset: int, producer_id: int) -> None:
        try:
            self._apply(record, create_record_origin((offset, producer_id, True)))
        except Exception as error:
            raise UnreadableRecord(describe_apply_failure(offset, record, error)) from error
        self._counters.loaded += 1


def describe_apply_failure(offset: int, record: object, error: Exception) -> str:
    """Describe an error of applying a record, with the record's offset."""
    return f"applying {record!r} from offset {offset}: {error!r}"
