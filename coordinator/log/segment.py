"""Implement one segment of a partition's log: a `.log` file of whole batches, and its indexes.

The files are Kafka's own: `<first offset, 20 digits>.log` holds the batches as they are sent,
`.index` and `.timeindex` are sparse (see `index`), `.txnindex` has the aborted transactions whose
marker is here (see `transaction_index`). These three live in memory and are brought to disk with
the partition's checkpoint, which says how much of each file is good (`SavedSegment`). A segment
that is opened by such an entry reads its index files when they are first needed; if they aren't
what was written, the indexes are made again from the `.log`.

Batches that were on disk before the broker started, and were not read then, are checked when they
are fetched. Offsets grow from batch to batch, with gaps where a compaction has taken records away.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import TypeAlias

from coordinator.log.batch import (
    HEADER_BYTES,
    PREFIX_BYTES,
    RecordBatch,
    parse_header,
    read_batch_size_at,
)
from coordinator.log.disk import BrokerDisk, File
from coordinator.log.index import SparseIndex
from coordinator.log.intact_batches import count_intact_bytes
from coordinator.log.saved_segment import (
    SavedSegment,
    UnwrittenBytes,
    build_segment_file_name,
    read_saved_index,
    read_saved_transactions,
)
from coordinator.log.transaction_index import TransactionIndex

EndPosition: TypeAlias = int

_STEP = Struct(">qi11xi")  # base offset, length, last offset delta: enough to find an offset
_LENGTH_MIN = HEADER_BYTES - PREFIX_BYTES
_WINDOW_BYTES = 8_192
_POSITION_MAX = 2**31 - 1

PositionSizeAndLastOffset: TypeAlias = tuple[int, int, int]  # of a batch in its segment


class CorruptBatch(Exception):
    """Reports that no intact batch stands at a position of a segment."""

    def __init__(self, path: Path, position: int) -> None:
        super().__init__(f"{path}: damaged at byte {position}")
        self.path = path
        self.position = position


class LogSegment:
    """Reads and writes one segment, whose batches begin at `base_offset`.

    `size` is the end of the last whole batch in bytes. Kafka: `LogSegment`.
    """

    def __init__(
        self,
        directory: Path,
        saved: SavedSegment,
        disk: BrokerDisk,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        self.base_offset = saved.base_offset
        self.path = directory / build_segment_file_name(saved.base_offset, f"log{suffix}")
        self.size = saved.size
        self.max_timestamp_ms = saved.max_timestamp_ms
        self.index_interval_bytes = index_interval_bytes
        self.saved = saved  # the last checkpoint's entry
        self.flushed_size = saved.size  # bytes known to be on the disk
        self.transaction_index = TransactionIndex()
        self.max_timestamp_offset = saved.max_timestamp_offset
        self._disk = disk
        # Range of the first `saved.size` bytes whose batches were found intact.
        self._checked = (saved.size, saved.size)
        self._unchecked_end = saved.size

    @cached_property
    def file(self) -> File:
        """Return the `.log` file, opened when it is first needed.

        Raises: OSError.
        """
        return self._disk.open_file(self.path)

    @cached_property
    def index(self) -> SparseIndex:
        """Return the sparse index, read or rebuilt when it is first needed.

        Raises: OSError, `CorruptBatch`.
        """
        if self.saved.size == 0:
            return SparseIndex(self.base_offset)
        return read_saved_index(self._disk, self.path.parent, self.saved) or self._rebuild_index()

    @cached_property
    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch; there has to be one."""
        return self.read_header_at(0).max_timestamp_ms

    def has_room(self, batch_bytes: int, last_offset: int, segment_bytes: int) -> bool:
        """Return whether a batch of this size and `last_offset` still fits into the segment."""
        return self.size == 0 or (
            self.size + batch_bytes <= min(segment_bytes, _POSITION_MAX)
            and last_offset - self.base_offset <= _POSITION_MAX
        )

    # Writing

    def append_batch(
        self, data: bytes | bytearray, last_offset: int, max_timestamp_ms: int
    ) -> None:
        """Write and index a batch, in a segment that is no part of a log yet.

        Raises: OSError.
        """
        self.file.write(data, self.size)
        self.index_batch_and_move_end(len(data), last_offset, max_timestamp_ms)

    def index_batch_and_move_end(
        self, batch_bytes: int, last_offset: int, max_timestamp_ms: int
    ) -> None:
        """Move the segment's end behind a batch that was written there, and index the batch."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        index = self.index
        if self.size - index.last_position > self.index_interval_bytes:
            index.add_offset_entry(last_offset, self.size)
            index.add_time_entry(self.max_timestamp_ms, self.max_timestamp_offset)
        self.size += batch_bytes

    def truncate_to_size(self) -> None:
        """Cut the file where the last indexed batch ends."""
        self.file.truncate(self.size)

    # Reading

    def find_batch_position(self, offset: int) -> int:
        """Return where the first batch starts whose last offset is `offset` or later, else `size`.

        Raises: `CorruptBatch`, also if the batches aren't as the index has them.
        """
        start, known, following, following_offset = self.index.find_neighbours(offset)
        steps = self.iterate_headers(start)
        for _, _, last_offset in steps:
            if last_offset != known >= 0:
                raise CorruptBatch(self.path, start)
            if last_offset < offset:
                break
            self._check_index_order(following, following_offset, start, last_offset)
            return start
        for position, _, last_offset in steps:
            if last_offset >= offset:
                self._check_index_order(following, following_offset, position, last_offset)
                return position
        return self.size

    def _check_index_order(
        self, next_position: int, next_last_offset: int, position: int, last_offset: int
    ) -> None:
        """Raise CorruptBatch if a batch's last offset isn't below that of the index's next entry.

        There may be no next entry (-1), or the batch may be that of the entry itself.
        """
        if 0 <= next_position != position and last_offset >= next_last_offset:
            raise CorruptBatch(self.path, position)

    def read_batches(self, start_position: int, max_bytes: int) -> bytes:
        """Read whole batches from this position on, at least one.

        Raises: `CorruptBatch`.
        """
        stop = self.find_whole_batches_end(start_position, self.size, max_bytes, at_least_one=True)
        return (
            self.file.read(
                self.verify_batches(start_position, stop) - start_position, start_position
            )
            if stop > start_position
            else b""
        )

    def find_whole_batches_end(
        self, start_position: int, end_position: int, max_bytes: int, at_least_one: bool
    ) -> EndPosition:
        """Return where the batches between two positions end that fit into `max_bytes`.

        `at_least_one`: the first one counts in any case.
        """
        if end_position - start_position <= max_bytes:
            return end_position
        limit = start_position + max_bytes
        stop = max(start_position, self.index.find_last_position_up_to(limit))
        for position, size, _ in self.iterate_headers(stop):
            if position + size > limit:
                break
            stop = position + size
        if stop == start_position and at_least_one:
            return start_position + read_batch_size_at(
                self.file.read(_STEP.size, start_position), 0
            )
        return stop

    def iterate_headers(self, position: int) -> Iterator[PositionSizeAndLastOffset]:
        """Yield (position, size in bytes, last offset) of each batch from this position on.

        Raises: `CorruptBatch`, also where offsets don't grow: no checksum is over them, and a batch
        would be passed over.
        """
        window, start = b"", position
        last_offset = self.base_offset - 1
        while position < self.size:
            at = position - start
            if at + _STEP.size > len(window):
                window, start, at = self.file.read(_WINDOW_BYTES, position), position, 0
                if _STEP.size > len(window):
                    raise CorruptBatch(self.path, position)
            base_offset, length, last_offset_delta = _STEP.unpack_from(window, at)
            if length < _LENGTH_MIN or base_offset <= last_offset:
                raise CorruptBatch(self.path, position)
            last_offset = base_offset + last_offset_delta
            yield position, length + 12, last_offset
            position += length + 12

    def verify_batches(
        self, start_position: int, stop_position: int, end_offset: int | None = None
    ) -> EndPosition:
        """Check the batches between two positions, and return where the intact ones end.

        Batches that this process has written, or checked before, are taken as intact. `end_offset`:
        where the offsets of the segment end, if it is known. Raises: `CorruptBatch` if the first
        one isn't intact.
        """
        if start_position >= self._unchecked_end or (
            self._checked[0] <= start_position and stop_position <= self._checked[1]
        ):
            return stop_position
        end = start_position + count_intact_bytes(
            self.file.read(stop_position - start_position, start_position),
            self.base_offset,
            self.base_offset + _POSITION_MAX + 1 if end_offset is None else end_offset,
            is_led_up_to=start_position == 0,
        )
        if end == start_position:
            raise CorruptBatch(self.path, start_position)
        low, high = self._checked
        adjoins = low <= start_position <= high
        self._checked = (low, max(high, end)) if adjoins else (start_position, end)
        return end

    def read_base_offset_at(self, position: int) -> int:
        """Return the base offset of the batch that starts at this position."""
        return int.from_bytes(self.file.read(8, position), "big")

    def read_header_at(self, position: int) -> RecordBatch:
        """Return the header of the batch at this position; `data` is no more than that."""
        return parse_header(self.file.read(HEADER_BYTES, position))

    def read_batch_at(self, position: int) -> RecordBatch:
        """Return the whole batch that starts at this position.

        Raises: `CorruptBatch`.
        """
        size = read_batch_size_at(self.file.read(_STEP.size, position), 0)
        self.verify_batches(position, position + size)
        return parse_header(self.file.read(size, position))

    # Indexes on disk

    def build_file_path(self, suffix: str) -> Path:
        """Return the path of the segment's file with this suffix."""
        return self.path.with_name(build_segment_file_name(self.base_offset, suffix))

    def rename_to_log(self) -> None:
        """Rename a cleaned segment's file to `.log`.

        Raises: OSError.
        """
        path = self.build_file_path("log")
        self._disk.rename_path(self.path, path)
        self.path = path

    @property
    def is_saved(self) -> bool:
        """Return whether a checkpoint has the segment as it is now."""
        return self.size == self.saved.size > 0

    def index_end_and_capture_state(self) -> tuple[SavedSegment, list[UnwrittenBytes]]:
        """Return the segment's checkpoint entry, and the index bytes to be written for it."""
        if self.size == 0:
            return SavedSegment(self.base_offset), []
        index = self.index
        index.add_time_entry(self.max_timestamp_ms, self.max_timestamp_offset)
        saved = self.saved
        offsets = index.encode_offset_entries(saved.offsets.size)
        times = index.encode_time_entries(saved.times.size)
        transactions = self.transaction_index.encode_entries_from(saved.transactions.size)
        after = SavedSegment(
            self.base_offset,
            self.size,
            self.max_timestamp_ms,
            self.max_timestamp_offset,
            saved.offsets.extend_with(offsets),
            saved.times.extend_with(times),
            saved.transactions.extend_with(transactions),
        )
        pieces = (
            UnwrittenBytes(self.build_file_path("index"), saved.offsets.size, offsets),
            UnwrittenBytes(self.build_file_path("timeindex"), saved.times.size, times),
            UnwrittenBytes(self.build_file_path("txnindex"), saved.transactions.size, transactions),
        )
        return after, [piece for piece in pieces if piece.content or not piece.position]

    def try_read_transaction_index(self) -> bool:
        """Read the aborted transactions from their file; False if it isn't as it was written."""
        found = read_saved_transactions(self._disk, self.path.parent, self.saved)
        if found is None:
            return False
        self.transaction_index = found
        return True

    def _rebuild_index(self) -> SparseIndex:
        """Rebuild the index from the batches' headers.

        The files are written anew with the next checkpoint. Raises: `CorruptBatch`.
        """
        index = SparseIndex(self.base_offset)
        latest, latest_offset = -1, self.base_offset
        for position, _, last_offset in self.iterate_headers(0):
            timestamp_ms = self.read_header_at(position).max_timestamp_ms
            if timestamp_ms > latest:
                latest, latest_offset = timestamp_ms, last_offset
            if position - index.last_position > self.index_interval_bytes:
                index.add_offset_entry(last_offset, position)
                index.add_time_entry(latest, latest_offset)
        self.saved = SavedSegment(self.base_offset)
        return index

    def close(self) -> None:
        file = self.release_file()
        if file is not None:
            file.close()

    def release_file(self) -> File | None:
        """Give up the open file without closing it, and return it; None if none is open.

        Whoever still has it, such as an answer that is being sent, can go on reading.
        """
        file: File | None = self.__dict__.pop("file", None)
        return file
