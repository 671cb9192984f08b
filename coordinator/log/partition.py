"""One partition of a topic: an append-only log of batches with consecutive offsets.

Every append follows one order: check (reads only), write to the segment, then make it true here
(end offset, producers, aborted transactions, waiters). A write that fails changes nothing.

There is one replica, so the high watermark is the end offset. What is stable ends before the first
offset of the oldest open transaction; `read_committed` consumers see no further.

The directory is made with the first append: a partition nobody has written to costs nothing.
Trace: api/produce -> append -> segment; api/fetch -> read -> segment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.log.aborted import AbortedTransaction, AbortedTransactions
from coordinator.log.batch import (
    Batch,
    encode_marker,
    parse_header,
    rewritten,
)
from coordinator.log.disk import Disk
from coordinator.log.producers import Producers
from coordinator.log.recovery import scan
from coordinator.log.segment import Segment
from coordinator.log.slice import Slice
from coordinator.log.storage import write_partition_metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What a topic's configuration says about its logs."""

    segment_bytes: int = 1_073_741_824
    index_interval_bytes: int = 4_096
    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_after_max_ms: int = 3_600_000


class Appended(NamedTuple):
    """Where a produced batch is; for a retry, where it has been all along."""

    base_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps stand


class Fetched(NamedTuple):
    """Whole batches, and the aborted transactions that touch them (None: not asked for)."""

    records: Slice | bytes
    aborted: list[AbortedTransaction] | None
    available: int  # bytes that may be seen in this segment, whatever the limit
    is_older_segment: bool  # more may be seen in the next one


class _Located(NamedTuple):
    """Whole batches in one segment, from `start` to `stop`."""

    segment: Segment
    start: int
    stop: int
    end: int  # where what may be seen ends in this segment
    is_older_segment: bool

    @property
    def slice(self) -> Slice:
        return Slice(self.segment.file, self.start, self.stop - self.start)


class Partition:
    """Offsets from `start_offset` up to, and without, `end_offset`."""

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        directory: Path,
        settings: LogSettings,
        disk: Disk,
        clock: Clock,
    ) -> None:
        self.topic = topic
        self.index = index
        self.settings = settings
        self.directory = directory
        self.start_offset = 0
        self.end_offset = 0
        self.last_stable_offset = 0
        self.producers = Producers()
        self._topic_id = topic_id
        self.aborted = AbortedTransactions()
        self._segments: list[Segment] = []
        self._disk = disk
        self._clock = clock
        self._waiters: dict[Callable[[], None], None] = {}

    def reconfigure(self, settings: LogSettings) -> None:
        """These hold from now on."""
        self.settings = settings
        if self._segments:
            self._segments[-1].index_interval_bytes = settings.index_interval_bytes

    # Writing

    def append(self, batch: Batch) -> Appended:
        """Append a produced batch that `check_produced` has passed.

        Refused: the producer's sequence, epoch or transaction (see `producers`), a timestamp too
        far in the future, or KAFKA_STORAGE_ERROR.
        """
        if batch.producer_id >= 0:
            earlier = self.producers.check(batch)
            if earlier is not None:
                return Appended(earlier.base_offset, earlier.log_append_time_ms)
        log_append_time_ms = -1
        if self.settings.log_append_time:
            log_append_time_ms = self._clock.now_ms()
        elif batch.max_timestamp_ms > self._clock.now_ms() + self.settings.timestamp_after_max_ms:
            raise Refused(Code.INVALID_TIMESTAMP, f"{batch.max_timestamp_ms} is in the future")
        return Appended(self._append(batch, log_append_time_ms), log_append_time_ms)

    def append_internal(self, batch: bytes) -> int:
        """Append a batch of the broker's own; its offset. Sequences are not looked at, but a
        transactional one opens a transaction. Refused(KAFKA_STORAGE_ERROR) if the write fails."""
        return self._append(parse_header(batch), -1)

    def append_marker(
        self, producer_id: int, producer_epoch: int, committed: bool, coordinator_epoch: int
    ) -> int:
        """Append the control batch that ends a producer's transaction here; its offset.

        Refused: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        marker = encode_marker(
            producer_id,
            producer_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self._clock.now_ms(),
        )
        return self._append(parse_header(marker), -1)

    def _append(self, batch: Batch, log_append_time_ms: int) -> int:
        base_offset = self.end_offset
        data = rewritten(
            batch.data, base_offset, log_append_time_ms if log_append_time_ms >= 0 else None
        )
        last_offset = base_offset + batch.last_offset_delta
        timestamp_ms = batch.max_timestamp_ms if log_append_time_ms < 0 else log_append_time_ms
        try:
            segment = self._segment_for(len(data), last_offset)
            segment.append(data, last_offset, timestamp_ms)
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, f"{self.directory}: {error}") from error
        self._make_true(batch, base_offset, log_append_time_ms)
        self._wake()
        return base_offset

    def _segment_for(self, size: int, last_offset: int) -> Segment:
        settings = self.settings
        if self._segments:
            active = self._segments[-1]
            if active.has_room(size, last_offset, settings.segment_bytes):
                return active
            self._write_indexes(active, self.end_offset)
        else:
            self._disk.make_directory(self.directory)
            write_partition_metadata(self._disk, self.directory, self._topic_id)
        segment = self._open_segment(self.end_offset)
        self._segments.append(segment)
        return segment

    def _open_segment(self, base_offset: int) -> Segment:
        return Segment(self.directory, base_offset, self._disk, self.settings.index_interval_bytes)

    def _make_true(self, batch: Batch, base_offset: int, log_append_time_ms: int = -1) -> None:
        """What follows from a batch in the log, live and when the log is read at start alike."""
        self.end_offset = base_offset + batch.last_offset_delta + 1
        if batch.is_control:
            self._end_transaction(batch, base_offset)
        elif batch.producer_id >= 0:
            self.producers.applied(batch, base_offset, log_append_time_ms)
        unstable = self.producers.first_unstable_offset()
        self.last_stable_offset = self.end_offset if unstable is None else unstable

    def _end_transaction(self, batch: Batch, offset: int) -> None:
        committed, coordinator_epoch = batch.marker()
        producer_id = batch.producer_id
        first_offset = self.producers.ended(
            producer_id, batch.producer_epoch, coordinator_epoch, batch.max_timestamp_ms
        )
        if first_offset is None or committed:
            return
        unstable = self.producers.first_unstable_offset()
        stable = offset + 1 if unstable is None else unstable
        self.aborted.add(AbortedTransaction(producer_id, first_offset, offset, stable))

    # Reading

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one with `offset` on, at least one; b"" at the end."""
        if offset >= self.end_offset:
            return b""
        return bytes(self._locate(offset, self.end_offset, max_bytes, at_least_one=True).slice)

    def fetch(self, offset: int, max_bytes: int, *, committed: bool, at_least_one: bool) -> Fetched:
        """What a consumer may see from `offset` on. Refused(OFFSET_OUT_OF_RANGE)."""
        if not self.start_offset <= offset <= self.end_offset:
            raise Refused(
                Code.OFFSET_OUT_OF_RANGE,
                f"{offset} is not in {self.start_offset}..{self.end_offset}",
            )
        upper = self.last_stable_offset if committed else self.end_offset
        if offset >= upper:
            return _NOTHING_COMMITTED if committed else _NOTHING
        found = self._locate(offset, upper, max_bytes, at_least_one)
        aborted = self._aborted(offset, upper, found) if committed else None
        available = found.end - found.start
        return Fetched(found.slice, aborted, available, found.is_older_segment)

    def _aborted(self, offset: int, upper: int, found: _Located) -> list[AbortedTransaction]:
        if not self.aborted or found.stop == found.start:
            return []
        if found.stop < found.segment.size:
            upper = min(upper, found.segment.offset_at(found.stop))
        elif found.is_older_segment:
            upper = min(upper, self._end_of_segment(self._segment_with(offset)))
        return self.aborted.touching(offset, upper)

    def _locate(self, offset: int, upper: int, max_bytes: int, at_least_one: bool) -> _Located:
        """Batches below `upper`, which is above `offset`, from one segment."""
        at = self._segment_with(offset)
        segment = self._segments[at]
        segment_end = self._end_of_segment(at)
        start = segment.position_of(offset)
        end = segment.size if upper >= segment_end else segment.position_of(upper)
        stop = segment.whole_batches_end(start, end, max_bytes, at_least_one)
        return _Located(segment, start, stop, end, upper > segment_end)

    def _segment_with(self, offset: int) -> int:
        return bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1

    def _end_of_segment(self, at: int) -> int:
        return (
            self._segments[at + 1].base_offset
            if at + 1 < len(self._segments)
            else (self.end_offset)
        )

    def by_timestamp(self, timestamp_ms: int, upper_offset: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record below `upper_offset` that is not earlier."""
        for segment in self._segments:
            for batch in segment.batches_from(timestamp_ms):
                for offset, time_ms in _places(batch):
                    if time_ms >= timestamp_ms and offset >= self.start_offset:
                        return (offset, time_ms) if offset < upper_offset else None
        return None

    def with_max_timestamp(self) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record that has the largest timestamp."""
        newest = max(self._segments, key=lambda segment: segment.max_timestamp_ms, default=None)
        batch = newest.batch_with_max_timestamp() if newest else None
        if batch is None:
            return None
        whole = (batch.last_offset, batch.max_timestamp_ms)
        return next((p for p in _places(batch) if p[1] == batch.max_timestamp_ms), whole)

    # Waiting

    def watch(self, callback: Callable[[], None]) -> None:
        """Call this after every append and every advance of the last stable offset."""
        self._waiters[callback] = None

    def unwatch(self, callback: Callable[[], None]) -> None:
        self._waiters.pop(callback, None)

    @property
    def is_watched(self) -> bool:
        return bool(self._waiters)

    def _wake(self) -> None:
        if self._waiters:
            for callback in tuple(self._waiters):
                callback()

    # Opening and closing

    def load(self) -> None:
        """Read the directory's segments to their end. CorruptLog if acknowledged data is damaged;
        a torn tail is cut."""
        names = self._disk.names(self.directory)
        bases = sorted(int(name[:-4]) for name in names if name.endswith(".log"))
        for base_offset in bases:
            segment = self._open_segment(base_offset)
            self._segments.append(segment)
            self.end_offset = max(self.end_offset, base_offset)
            for batch in scan(segment, self.end_offset, is_last=base_offset == bases[-1]):
                time_ms = batch.max_timestamp_ms if batch.is_log_append_time else -1
                self._make_true(batch, batch.base_offset, time_ms)
        if bases:
            self.start_offset = bases[0]
            self.last_stable_offset = max(self.last_stable_offset, self.start_offset)

    def close(self) -> None:
        """Bring everything to disk. The partition can't be used any more."""
        for segment in self._segments:
            if segment is self._segments[-1]:
                segment.file.flush()
                self._write_indexes(segment, self.end_offset)
            segment.close()
        self._segments.clear()
        self._wake()

    def _write_indexes(self, segment: Segment, end_offset: int) -> None:
        segment.write_indexes(self.aborted.ending_in(segment.base_offset, end_offset))

    def segments(self) -> Iterator[tuple[Path, int]]:
        """(file, bytes) of each segment, oldest first."""
        for segment in self._segments:
            yield segment.path, segment.size


_NOTHING = Fetched(b"", None, 0, False)
_NOTHING_COMMITTED = Fetched(b"", [], 0, False)


def _places(batch: Batch) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of each record. What a producer put into a batch need not be records: the
    end of the batch stands for those that can't be read."""
    try:
        for record in batch.records():
            yield record.offset, record.timestamp_ms
    except (ValueError, IndexError):
        yield batch.last_offset, batch.max_timestamp_ms
