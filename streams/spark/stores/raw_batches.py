"""Find out by the headers of record batches which offsets of a partition's log are gone.

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


class Header(NamedTuple):
    """Represents a batch of the offsets from `base_offset` to `last_offset`, by its header."""

    first: int
    last: int
    records: int
    leader_epoch: int


def headers(data: bytes) -> Iterator[Header]:
    """Yield the header of each batch that `data` holds as a whole.

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
        yield Header(first, first + span, records, epoch)
        at += _LENGTH_AT + length


@dataclass(slots=True)
class Scan:
    """Counts the removed offsets from `first_offset` up to, and without, `end_offset`.

    Give `read_batches` the data of a fetch from `fetch_offset`, until it `is_done`. `leader_epoch`
    is the partition's epoch now.
    """

    first: int
    until: int
    leader_epoch: int
    removed: int = 0
    """Offsets with nothing there, so far."""
    unbroken_from: int = field(init=False)
    """From here on all is there, in one segment."""
    _next: int = field(init=False)
    _last: int | None = field(init=False, default=None)
    """Where the last batch begins, for as long as it may be followed in its segment."""

    def __post_init__(self) -> None:
        self._next = self.unbroken_from = self.first

    @property
    def position(self) -> int:
        """Return the offset to fetch from next."""
        return self._next if self._last is None else self._last

    @property
    def is_done(self) -> bool:
        """Whether all offsets of the range have been scanned."""
        return self._next >= self.until

    def feed(self, data: bytes) -> None:
        """Count the batches of one fetch from `fetch_offset`.

        A fetch without a new batch behind the last one says that the segment ends there; one
        without any batch at all says that nothing is left up to `end_offset`.
        """
        has_new_batch = False
        for batch in headers(data):
            if batch.last >= self._next:
                has_new_batch = True
                self._take(batch)
        if has_new_batch:
            return
        if self._last is None:
            self._skip_to(self.until)
        else:
            self._last = None
            self.unbroken_from = self._next

    def _take(self, batch: Header) -> None:
        """Count the offsets without a record in one batch, and those skipped before it."""
        self._skip_to(batch.first)
        self._last = batch.first
        missing = batch.last - batch.first + 1 - batch.records
        begin, end = max(batch.first, self.first), min(batch.last + 1, self.until)
        self.removed += min(missing, max(end - begin, 0))
        self._next = batch.last + 1
        if missing or batch.leader_epoch != self.leader_epoch:
            self.unbroken_from = self._next

    def _skip_to(self, offset: int) -> None:
        """Count the offsets below `offset`, of which there is no batch, as removed."""
        if offset > self._next:
            self.removed += max(min(offset, self.until) - self._next, 0)
            self._next = self.unbroken_from = offset
