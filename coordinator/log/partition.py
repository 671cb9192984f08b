"""Implement the log of one partition: append-only batches with consecutive offsets.

Every append follows one order: check (reads only), write to the segment, then apply it to the state
here (end offset, producers, aborted transactions, callbacks). A write that fails changes nothing.

There is one replica, so the high watermark is the end offset. The last stable offset is the first
offset of the oldest open transaction; `read_committed` consumers see no further.

The directory is made with the first append: a partition nobody has written to costs nothing.
Trace: api/produce -> append_produced -> segments -> segment; api/fetch -> fetch_batches -> reading
-> segment. Kafka: `UnifiedLog`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from coordinator.errors import Code, Refused
from coordinator.log.batch import RecordBatch, copy_with_offset, parse_header
from coordinator.log.batch_encoding import build_marker
from coordinator.log.change_callbacks import ChangeCallbacks
from coordinator.log.checkpoint import write_start_offset
from coordinator.log.checkpointing import CheckpointSaver, LogState
from coordinator.log.compaction import LogCompaction
from coordinator.log.damage import locate_damaged_batch
from coordinator.log.figures import LogFigures
from coordinator.log.host import BrokerHost
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.reading import FetchedBatches, collect_aborted, fetch_batches, read_batches
from coordinator.log.recovery import open_from_checkpoint, recover_log
from coordinator.log.retention import count_expired_segments
from coordinator.log.segment import CorruptBatch, LogSegment
from coordinator.log.segments import LogSegments
from coordinator.log.settings import LogSettings
from coordinator.log.storage_errors import StorageErrorLog
from coordinator.log.timestamp_lookup import TimestampLookup
from coordinator.log.timestamps import check_timestamps
from coordinator.log.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)


class LogAppendInfo(NamedTuple):
    """Tells where a produced batch is; for a retry, where the first attempt has put it."""

    base_offset: int
    log_append_time_ms: int  # -1: the batch keeps the producer's timestamps


class PartitionLog:
    """Holds the batches of one partition, from `start_offset` to below `end_offset`."""

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        directory: Path,
        settings: LogSettings,
        host: BrokerHost,
    ) -> None:
        self.topic = topic
        self.index = index
        self.settings = settings
        self.directory = directory
        self.start_offset = 0
        self.end_offset = 0
        self.last_stable_offset = 0
        self.producers = ProducerStateManager(host.clock.now_ms)
        self.change_callbacks = ChangeCallbacks()
        self._host = host
        self._clock = host.clock
        self._segments = LogSegments(directory, topic_id, settings, host)
        self.figures = LogFigures(self._segments)
        self._storage_errors = StorageErrorLog(directory, host.clock)
        self.compaction = LogCompaction(
            self._segments, host, lambda: self.checkpoints.save_checkpoint_in_background()
        )
        self.checkpoints = CheckpointSaver(
            self._segments,
            self.compaction,
            host,
            lambda: LogState(self.start_offset, self.end_offset, self.producers),
        )
        self.timestamps = TimestampLookup(self._segments, self._storage_errors)
        self.damage: str | None = None  # if set, nothing is written or removed
        self.is_open = True

    def apply_settings(self, settings: LogSettings) -> None:
        """Use these settings of the topic from now on."""
        self.settings = settings
        self._segments.apply_settings(settings)

    # Damage

    def refuse_writes_until_repaired(self, damage: str) -> None:
        """Refuse appends, and remove or compact nothing, until a person has repaired the log."""
        self.damage = self.compaction.damage = damage

    def stop_serving(self, damage: str) -> None:
        """Serve nothing from now on, as the log could not be opened; its files stay as they are."""
        self.refuse_writes_until_repaired(damage)
        self.is_open = False
        self.producers = ProducerStateManager()
        self.start_offset = self.end_offset = self.last_stable_offset = 0
        self._segments.close()

    def describe_damage_at(self, offset: int) -> str:
        """Describe where the damaged batch with this offset is: its file and range of bytes."""
        try:
            return str(locate_damaged_batch(self._segments, offset))
        except OSError as error:
            return str(error)

    def check_open(self) -> None:
        """Raise Refused (KAFKA_STORAGE_ERROR) if the log could not be opened."""
        if not self.is_open:
            self.check_undamaged()

    def check_undamaged(self) -> None:
        """Raise Refused (KAFKA_STORAGE_ERROR) if the log is damaged and takes no writes."""
        if self.damage is not None:
            raise Refused(Code.KAFKA_STORAGE_ERROR, f"{self.directory} is damaged: {self.damage}")

    # Writing

    def append_produced(self, batch: RecordBatch) -> LogAppendInfo:
        """Append a produced batch that `validate_produced_batch` has passed.

        A batch that is a retry of one in the log is not appended again. Raises: Refused, for the
        producer's sequence, epoch or transaction (see `producer_state`) or the timestamps (see
        `timestamps`), or with KAFKA_STORAGE_ERROR.
        """
        if batch.producer_id >= 0:
            earlier = self.producers.find_retried_append_or_refuse(batch)
            if earlier is not None:
                return LogAppendInfo(earlier.base_offset, earlier.log_append_time_ms)
        now_ms = self._clock.now_ms()
        check_timestamps(batch, self.settings, now_ms)
        log_append_time_ms = now_ms if self.settings.log_append_time else -1
        return LogAppendInfo(self._append_batch(batch, log_append_time_ms), log_append_time_ms)

    @property
    def batch_bytes_max(self) -> int:
        """Return the largest batch in bytes that `append_internal` takes: `max.message.bytes`."""
        return self.settings.max_message_bytes

    def append_internal(self, batch: bytes) -> int:
        """Append a batch of the broker's own and return its offset.

        Sequences are not looked at, but a transactional batch opens a transaction. Raises: Refused
        (MESSAGE_TOO_LARGE, KAFKA_STORAGE_ERROR).
        """
        most = self.batch_bytes_max
        if len(batch) > most:
            raise Refused(Code.MESSAGE_TOO_LARGE, f"{len(batch)} bytes; at most {most}")
        return self._append_batch(parse_header(batch), -1)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> int:
        """Append the control batch that ends a producer's transaction here, and return its offset.

        Raises: Refused (INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
        KAFKA_STORAGE_ERROR).
        """
        self.producers.check_marker(
            producer_id, producer_epoch, coordinator_epoch, transaction_version
        )
        marker = build_marker(
            producer_id,
            producer_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        return self._append_batch(marker, -1)

    def _append_batch(self, batch: RecordBatch, log_append_time_ms: int) -> int:
        """Write a batch at the end of the log, apply it, and return its offset.

        A `log_append_time_ms` below 0 leaves the producer's timestamps. Raises: Refused
        (KAFKA_STORAGE_ERROR).
        """
        if self.damage is not None:
            self.check_undamaged()
        base_offset = self.end_offset
        data = copy_with_offset(
            batch.data, base_offset, log_append_time_ms if log_append_time_ms >= 0 else None
        )
        last_offset = base_offset + batch.last_offset_delta
        timestamp_ms = batch.max_timestamp_ms if log_append_time_ms < 0 else log_append_time_ms
        segments = self._segments
        try:
            segment = segments.find_active_segment_with_room(len(data), last_offset, timestamp_ms)
            if segment is None:
                segment = segments.roll_segment(base_offset)
                if len(segments.all) > 1:
                    self.checkpoints.save_checkpoint_in_background()
            segments.append_batch(segment, data, last_offset, timestamp_ms)
        except (CorruptBatch, OSError) as error:  # CorruptBatch comes of rebuilding an index
            raise self._storage_errors.log_and_create_append_refusal(error) from error
        self._apply_batch_to_offsets_and_producers(segment, batch, base_offset, log_append_time_ms)
        if self.checkpoints.is_due:
            self.checkpoints.save_checkpoint_in_background()
        self.change_callbacks.call_all()
        return base_offset

    def _apply_batch_to_offsets_and_producers(
        self,
        segment: LogSegment,
        batch: RecordBatch,
        base_offset: int,
        log_append_time_ms: int = -1,
    ) -> None:
        """Apply a batch in the log, new or read at start, to offsets, producers, transactions."""
        self.end_offset = base_offset + batch.last_offset_delta + 1
        if batch.is_control:
            aborted = self.producers.apply_marker(batch, base_offset)
            if aborted is not None:
                segment.transaction_index.add_entry(aborted)
        elif batch.producer_id >= 0:
            self.producers.apply_batch(batch, base_offset, log_append_time_ms)
        self._update_last_stable_offset()

    def _update_last_stable_offset(self) -> None:
        """Set the last stable offset to the first one of an open transaction, else to the end."""
        unstable = self.producers.first_unstable_offset()
        stable = self.end_offset if unstable is None else unstable
        self.last_stable_offset = max(stable, self.start_offset)

    # Reading

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Read whole batches from the one with `offset` on, or from the next one, at least one.

        Empty at the end of the log. Raises: `CorruptBatch`.
        """
        return read_batches(self._segments, self.end_offset, offset, max_bytes)

    def fetch_batches(
        self, offset: int, max_bytes: int, *, committed: bool, at_least_one: bool
    ) -> FetchedBatches:
        """Return the batches that a consumer may see from `offset` on.

        `committed`: only below the last stable offset, with the aborted transactions. Nothing with
        a broken frame or checksum is returned. Raises: Refused (OFFSET_OUT_OF_RANGE;
        CORRUPT_MESSAGE for damage; KAFKA_STORAGE_ERROR).
        """
        if not self.is_open:
            self.check_open()
        if not self.start_offset <= offset <= self.end_offset:
            raise Refused(
                Code.OFFSET_OUT_OF_RANGE,
                f"{offset} is not in {self.start_offset}..{self.end_offset}",
            )
        upper = self.last_stable_offset if committed else self.end_offset
        try:
            return fetch_batches(
                self._segments,
                self.end_offset,
                offset,
                upper,
                max_bytes,
                committed=committed,
                at_least_one=at_least_one,
            )
        except (CorruptBatch, OSError) as error:
            raise self._storage_errors.log_and_create_read_refusal(error) from error

    def find_aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with data from `offset` to below `upper_offset`."""
        segments = self._segments
        return collect_aborted(segments, segments.find_segment_index(offset), offset, upper_offset)

    # Removing

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log to `offset`, -1 for its end, and return the start offset.

        It is flushed when this returns; a start offset that is higher already stays. Raises:
        Refused (OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a topic that is
        only compacted, KAFKA_STORAGE_ERROR).
        """
        self.check_undamaged()
        if self.settings.is_compacted and not self.settings.is_deleted:
            raise Refused(Code.POLICY_VIOLATION, f"{self.topic} is compacted: its records stay")
        if offset == -1:
            offset = self.end_offset
        if not 0 <= offset <= self.end_offset:
            raise Refused(Code.OFFSET_OUT_OF_RANGE, f"{offset} is not in 0..{self.end_offset}")
        if offset > self.start_offset:
            segments = self._segments
            try:
                write_start_offset(self._host.disk, self.directory, segments.topic_id, offset)
            except OSError as error:
                raise Refused(Code.KAFKA_STORAGE_ERROR, f"{self.directory}: {error}") from error
            self._set_start_and_stable_offset(offset)
            self.remove_expired_segments()
        return self.start_offset

    def _set_start_and_stable_offset(self, offset: int) -> None:
        """Set the start offset, and the last stable offset after it."""
        self.start_offset = offset
        self._update_last_stable_offset()

    def remove_expired_segments(self) -> None:
        """Remove the oldest segments that the topic's retention no longer keeps."""
        segments = self._segments
        if self.compaction.is_replacing or self.damage is not None:
            return
        count = count_expired_segments(
            segments.all, self.settings, self.start_offset, self._clock.now_ms()
        )
        if not count:
            return
        if count == len(segments.all):
            try:
                segments.roll_segment(self.end_offset)
            except OSError as error:
                logger.error("%s: nothing is removed: %s", self.directory, error)
                return
        self._set_start_and_stable_offset(max(self.start_offset, segments.all[count].base_offset))
        segments.detach_segments(segments.all[:count])
        self.checkpoints.save_checkpoint_in_background()
        self.change_callbacks.call_all()

    # Opening and closing

    def open_log(self) -> None:
        """Open the log in the directory, reading the part that no checkpoint covers.

        A torn tail is cut. Raises: CorruptLog if acknowledged data is damaged.
        """
        segments, compaction = self._segments, self.compaction
        opened = open_from_checkpoint(segments)
        compaction.has_gaps = opened.has_gaps
        if opened.checkpoint is not None:
            compaction.first_dirty_offset = opened.checkpoint.first_dirty_offset
            self.checkpoints.restore_from(opened.checkpoint)
        self.producers = opened.producers.use_clock_from_now(self._clock.now_ms)
        self.start_offset = opened.start_offset
        self.end_offset = opened.end_offset
        self.end_offset = recover_log(segments, opened, self._apply_recovered_batch)
        for segment in segments.all:
            if segment.base_offset == opened.cleaned_offset:
                compaction.record_unsaved_replacement(segment)
        if self.start_offset > self.end_offset:
            # Records were deleted up to here, and power was lost before the last ones were flushed:
            # their offsets aren't given again.
            segments.detach_segments(segments.all)
            segments.roll_segment(self.start_offset)
            self.end_offset = self.start_offset
        self.figures.first_new_offset = self.end_offset
        self._update_last_stable_offset()
        segments.flushing.flush_recovered_batches()
        segments.unlink_later(opened.leftover_files)
        if compaction.is_replacing:
            # Nothing can be compacted before a checkpoint has the last replacement.
            self.checkpoints.save_checkpoint_in_background()

    def _apply_recovered_batch(self, segment: LogSegment, batch: RecordBatch) -> None:
        """Apply a batch that was read when the log was opened."""
        time_ms = batch.max_timestamp_ms if batch.is_log_append_time else -1
        self._apply_batch_to_offsets_and_producers(segment, batch, batch.base_offset, time_ms)

    def close(self) -> None:
        """Write a last checkpoint and close the files; the partition can't be used any more."""
        if self.checkpoints.has_unsaved:
            try:
                self.checkpoints.save_checkpoint_now()
            except OSError as error:
                logger.error("%s: closed without a checkpoint: %s", self.directory, error)
            except Exception:  # whatever it is, the other logs are still to be closed
                logger.exception("%s: closed without a checkpoint", self.directory)
        self._segments.close()
        self.change_callbacks.call_all()

    def close_for_deletion(self) -> None:
        """Close the log without writing anything to disk, as its topic is deleted.

        Answers that are being sent from its files have `file.delete.delay.ms` to be sent.
        """
        self._segments.close_files_for_removal()
        self.change_callbacks.call_all()

    def list_segment_files(self) -> Iterator[tuple[Path, int]]:
        """Yield (file, size in bytes) of each segment, oldest first."""
        for segment in self._segments.all:
            yield segment.path, segment.size
