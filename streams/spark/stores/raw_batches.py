"""Find out from the headers of record batches which offsets of a partition hold nothing.

A reader sees records only, and what compaction took looks to it like a marker or an aborted record.
In the log those are batches, so an offset is gone that no batch covers, or whose batch has fewer
records than offsets. (Markers that have had their time are gone in this sense too.)

Each fetch begins again with the last batch of the one before. A broker answers a fetch from one
segment only, so an answer in which nothing follows that batch, though the log goes on, is where a
segment ends. What lies from `unbroken_from` on is in the last one, which is never compacted.

A replica that was rebuilt has the leader's batches in segments of its own: only batches count that
the leader of now has itself appended, which is when they carry its epoch.
Source: DefaultRecordBatch of Kafka 4, `coordinator/log/batch`; LocalLog.read;
LogCleanerManager.cleanableOffsets (nothing of the active segment).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from streams.errors import StreamsError

_PREFIX = Struct(">qiib")  # base offset, length of what follows, leader epoch, magic
_SPAN = Struct(">i")  # last offset delta
_COUNT = Struct(">i")
_LENGTH_AT, _SPAN_AT, _COUNT_AT = 12, 23, 57
HEADER_BYTES = 61
_MAGIC = 2


class BatchHeader(NamedTuple):
    """Represents the header of a record batch, with its first and last offset."""

    base_offset: int
    last_offset: int
    record_count: int
    leader_epoch: int


def parse_batch_headers(data: bytes) -> Iterator[BatchHeader]:
    """Yield the header of each batch that `data` holds completely.

    A broker may cut off the last batch of a fetch.

    Raises: StreamsError for batches of an unknown format (magic).
    """
    at = 0
    while at + HEADER_BYTES <= len(data):
        first, length, epoch, magic = _PREFIX.unpack_from(data, at)
        if magic != _MAGIC or length < HEADER_BYTES - _LENGTH_AT:
            raise StreamsError(
                f"offset {first} is a batch of format {magic} and {length} bytes: format {_MAGIC} "
                "is known here, which brokers write since Kafka 0.11"
            )
        if at + _LENGTH_AT + length > len(data):
            return
        (span,) = _SPAN.unpack_from(data, at + _SPAN_AT)
        (records,) = _COUNT.unpack_from(data, at + _COUNT_AT)
        yield BatchHeader(first, first + span, records, epoch)
        at += _LENGTH_AT + length


@dataclass(slots=True)
class LogScan:
    """Counts the offsets from `first_offset` up to, and without, `end_offset` that no batch holds.

    Give `read_batches` the data of a fetch from `fetch_offset`, until it `is_done`. `leader_epoch`
    is the partition's epoch now.
    """

    first_offset: int
    end_offset: int
    leader_epoch: int
    removed_count: int = 0
    """Offsets with nothing there, so far."""
    last_segment_offset: int = field(init=False)
    """From here on all is there, in one segment."""
    _next_offset: int = field(init=False)
    _last_batch_offset: int | None = field(init=False, default=None)
    """Where the last batch begins, for as long as it may be followed in its segment."""

    def __post_init__(self) -> None:
        self._next_offset = self.last_segment_offset = self.first_offset

    @property
    def fetch_offset(self) -> int:
        """Return the offset from which the next fetch has to begin."""
        return self._next_offset if self._last_batch_offset is None else self._last_batch_offset

    @property
    def is_done(self) -> bool:
        """Return whether all offsets of the range are scanned, so that no more fetch is needed."""
        return self._next_offset >= self.end_offset

    def read_batches(self, data: bytes) -> None:
        """Count the offsets that are missing in the batches of one fetch from `fetch_offset`.

        A fetch without a new batch behind the last one says that the segment ends there; one
        without any batch at all says that nothing is left up to `end_offset`.
        """
        has_new_batch = False
        for batch in parse_batch_headers(data):
            if batch.last_offset >= self._next_offset:
                has_new_batch = True
                self._scan_batch(batch)
        if has_new_batch:
            return
        if self._last_batch_offset is None:
            self._skip_to(self.end_offset)
        else:
            self._last_batch_offset = None
            self.last_segment_offset = self._next_offset

    def _scan_batch(self, header: BatchHeader) -> None:
        """Count the missing offsets within one batch, and those skipped before it."""
        self._skip_to(header.base_offset)
        self._last_batch_offset = header.base_offset
        missing = header.last_offset - header.base_offset + 1 - header.record_count
        begin, end = (
            max(header.base_offset, self.first_offset),
            min(header.last_offset + 1, self.end_offset),
        )
        self.removed_count += min(missing, max(end - begin, 0))
        self._next_offset = header.last_offset + 1
        if missing or header.leader_epoch != self.leader_epoch:
            self.last_segment_offset = self._next_offset

    def _skip_to(self, offset: int) -> None:
        """Count the offsets below `offset` as removed, since no batch holds them."""
        if offset > self._next_offset:
            self.removed_count += max(min(offset, self.end_offset) - self._next_offset, 0)
            self._next_offset = self.last_segment_offset = offset
