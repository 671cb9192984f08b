"""Implements one segment of a partition's log: a `.log` file of whole batches, and its indexes.

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
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from coordinator.log.aborted import AbortedTransactions
from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES, Batch, batches, parse_header, size_at
from coordinator.log.disk import Disk, File
from coordinator.log.index import SparseIndex, decode

_STEP = Struct(">qi11xi")  # base offset, length, last offset delta: enough to find an offset
_LENGTH_MIN = HEADER_BYTES - PREFIX_BYTES
_WINDOW_BYTES = 8_192
_WRITE_AGAIN_BYTES = 1 << 20
_POSITION_MAX = 2**31 - 1

SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot")
CLEANED = ".cleaned"


def file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file with this suffix."""
    return f"{base_offset:020d}.{suffix}"


class Damaged(Exception):
    """Reports that no intact batch stands at a position of a segment."""

    def __init__(self, path: Path, position: int) -> None:
        super().__init__(f"{path}: damaged at byte {position}")
        self.path = path
        self.position = position


class SavedFile(NamedTuple):
    """Tells how many bytes of an index file a checkpoint covers, and their checksum."""

    size: int = 0
    crc: int = 0

    def plus(self, data: bytes) -> SavedFile:
        """Return the size and checksum of the file after this data is added to its end."""
        return SavedFile(self.size + len(data), crc32c(data, self.crc))

    def is_start_of(self, data: bytes) -> bool:
        """Whether the data begins with the bytes that this size and checksum describe."""
        return len(data) >= self.size and crc32c(data[: self.size]) == self.crc


class Saved(NamedTuple):
    """Represents a segment in a checkpoint: `size` bytes of batches, all of them flushed."""

    base_offset: int
    size: int = 0
    max_timestamp_ms: int = -1
    max_timestamp_offset: int = 0  # the last offset of the first batch that has it
    offsets: SavedFile = SavedFile()
    times: SavedFile = SavedFile()
    transactions: SavedFile = SavedFile()


class Segment:
    """Reads and writes one segment, whose batches begin at `base_offset`.

    `size` is the end of the last whole batch in bytes. Kafka: `LogSegment`.
    """

    def __init__(
        self,
        directory: Path,
        saved: Saved,
        disk: Disk,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        self.base_offset = saved.base_offset
        self.path = directory / file_name(saved.base_offset, f"log{suffix}")
        self.size = saved.size
        self.max_timestamp_ms = saved.max_timestamp_ms
        self.index_interval_bytes = index_interval_bytes
        self.saved = saved  # the last checkpoint's entry
        self.flushed_size = saved.size  # bytes known to be on the disk
        self.aborted = AbortedTransactions()
        self._max_timestamp_offset = saved.max_timestamp_offset
        self._disk = disk
        # Range of the first `saved.size` bytes whose batches were found intact.
        self._checked = (saved.size, saved.size)
        self._unchecked_end = saved.size

    @cached_property
    def file(self) -> File:
        """Return the `.log` file, opened when it is first needed.

        Raises: OSError.
        """
        return self._disk.open(self.path)

    @cached_property
    def index(self) -> SparseIndex:
        """Return the sparse index, read or rebuilt when it is first needed.

        Raises: OSError, `CorruptBatch`.
        """
        if self.saved.size == 0:
            return SparseIndex(self.base_offset)
        return self._read_index() or self._rebuilt_index()

    @cached_property
    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch; there has to be one."""
        return self.header_at(0).max_timestamp_ms

    def has_room(self, size: int, offset: int, segment_bytes: int) -> bool:
        """Whether a batch of this size that ends with `last_offset` still fits into the segment."""
        return self.size == 0 or (
            self.size + size <= min(segment_bytes, _POSITION_MAX)
            and offset - self.base_offset <= _POSITION_MAX
        )

    # Writing

    def write(self, data: bytes | bytearray) -> None:
        """Write batches behind the end, which stays where it is until they are indexed.

        Raises: OSError.
        """
        self.file.write(data, self.size)

    def append(self, data: bytes | bytearray, last_offset: int, max_timestamp_ms: int) -> None:
        """Write and index a batch, in a segment that is no part of a log yet.

        Raises: OSError.
        """
        self.write(data)
        self.noted(len(data), last_offset, max_timestamp_ms)

    def write_again(self, start: int) -> None:
        """Write the bytes from this position on once more, after testing their checksums.

        Raises: OSError, `CorruptBatch`.
        """
        while start < self.size:
            end = self.whole_batches_end(start, self.size, _WRITE_AGAIN_BYTES, True)
            data = self.file.read(end - start, start)
            checked = 0
            for batch in batches(data):
                if not batch.is_intact():
                    break
                checked += batch.size
            if checked < end - start:
                raise Damaged(self.path, start + checked)
            self.file.write(data, start)
            start = end

    def cut(self) -> None:
        """Remove the bytes that a failed write has left behind the end.

        If even this fails, the next append overwrites the torn piece, or the next start cuts it.
        """
        try:
            self.file.truncate(self.size)
        except OSError:
            return

    def noted(self, size: int, last_offset: int, max_timestamp_ms: int) -> None:
        """Count a written batch as part of the segment, and index it."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self._max_timestamp_offset = last_offset
        index = self.index
        if self.size - index.last_position > self.index_interval_bytes:
            index.add(last_offset, self.size)
            index.add_time(self.max_timestamp_ms, self._max_timestamp_offset)
        self.size += size

    def truncate(self) -> None:
        """Cut the file where the last indexed batch ends."""
        self.file.truncate(self.size)

    # Reading

    def position_of(self, offset: int) -> int:
        """Return where the first batch starts whose last offset is `offset` or later, else `size`.

        Raises: `CorruptBatch`, also if the batches aren't as the index has them.
        """
        start, known, following, following_offset = self.index.around(offset)
        steps = self._steps(start)
        for _, _, last_offset in steps:
            if last_offset != known >= 0:
                raise Damaged(self.path, start)
            if last_offset < offset:
                break
            self._check_before(following, following_offset, start, last_offset)
            return start
        for position, _, last_offset in steps:
            if last_offset >= offset:
                self._check_before(following, following_offset, position, last_offset)
                return position
        return self.size

    def _check_before(
        self, following: int, following_offset: int, position: int, last_offset: int
    ) -> None:
        """Raise CorruptBatch if a batch's last offset isn't below that of the index's next entry.

        There may be no next entry (-1), or the batch may be that of the entry itself.
        """
        if 0 <= following != position and last_offset >= following_offset:
            raise Damaged(self.path, position)

    def read(self, start: int, max_bytes: int) -> bytes:
        """Read whole batches from this position on, at least one.

        Raises: `CorruptBatch`.
        """
        stop = self.whole_batches_end(start, self.size, max_bytes, at_least_one=True)
        return self.file.read(self.intact_end(start, stop) - start, start) if stop > start else b""

    def whole_batches_end(self, start: int, end: int, max_bytes: int, at_least_one: bool) -> int:
        """Return where the batches between two positions end that fit into `max_bytes`.

        `at_least_one`: the first one counts in any case.
        """
        if end - start <= max_bytes:
            return end
        stop = self._whole_batches_end(start, start + max_bytes)
        if stop == start and at_least_one:
            return start + size_at(self.file.read(_STEP.size, start), 0)
        return stop

    def _whole_batches_end(self, start: int, limit: int) -> int:
        """Return where the last whole batch ends that ends at or before `limit_position`."""
        end = max(start, self.index.position_within(limit))
        for position, size, _ in self._steps(end):
            if position + size > limit:
                return position
            end = position + size
        return end

    def _steps(self, position: int) -> Iterator[tuple[int, int, int]]:
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
                    raise Damaged(self.path, position)
            base_offset, length, last_offset_delta = _STEP.unpack_from(window, at)
            if length < _LENGTH_MIN or base_offset <= last_offset:
                raise Damaged(self.path, position)
            last_offset = base_offset + last_offset_delta
            yield position, length + 12, last_offset
            position += length + 12

    def intact_end(self, start: int, stop: int, end_offset: int | None = None) -> int:
        """Check the batches between two positions, and return where the intact ones end.

        Batches that this process has written, or checked before, are taken as intact. `end_offset`:
        where the offsets of the segment end, if it is known. Raises: `CorruptBatch` if the first
        one isn't intact.
        """
        if start >= self._unchecked_end or (self._checked[0] <= start and stop <= self._checked[1]):
            return stop
        end = start
        offset = self.base_offset  # no checksum is over it: it is compared with the batch before
        limit = self.base_offset + _POSITION_MAX + 1 if end_offset is None else end_offset
        # A batch that claims to be shorter than its header, a ValueError, isn't intact either.
        last: Batch | None = None
        last_from = offset  # the lowest base offset that the last one could have
        with suppress(ValueError):
            for batch in batches(self.file.read(stop - start, start)):
                if batch.magic != 2 or not batch.is_intact() or batch.last_offset >= limit:
                    break
                if batch.base_offset < offset:
                    # One of the two says a wrong offset. It is the one before if it has room
                    # between its own neighbours, somewhere before the offset that it says.
                    if last and last_from + last.last_offset_delta < batch.base_offset:
                        end -= last.size
                    break
                is_led_up_to = end > start or start == 0  # the batch before it was checked, too
                last, last_from = batch, offset if is_led_up_to else batch.base_offset
                offset = batch.last_offset + 1
                end += batch.size
        if end == start:
            raise Damaged(self.path, start)
        low, high = self._checked
        adjoins = low <= start <= high
        self._checked = (low, max(high, end)) if adjoins else (start, end)
        return end

    def offset_at(self, position: int) -> int:
        """Return the base offset of the batch that starts at this position."""
        return int.from_bytes(self.file.read(8, position), "big")

    def header_at(self, position: int) -> Batch:
        """Return the header of the batch at this position; `data` is no more than that."""
        return parse_header(self.file.read(HEADER_BYTES, position))

    def batch_at(self, position: int) -> Batch:
        """Return the whole batch that starts at this position.

        Raises: `CorruptBatch`.
        """
        size = size_at(self.file.read(_STEP.size, position), 0)
        self.intact_end(position, position + size)
        return parse_header(self.file.read(size, position))

    def batches_from(self, timestamp_ms: int, offset: int) -> Iterator[Batch]:
        """Yield the batches that have a record of this timestamp or a later one.

        Only batches with `start_offset` or later offsets count. Raises: `CorruptBatch`.
        """
        if self.max_timestamp_ms < timestamp_ms:
            return
        start = self.position_of(max(offset, self.index.offset_before_time(timestamp_ms)))
        for position, _, _ in self._steps(start):
            if self.header_at(position).max_timestamp_ms >= timestamp_ms:
                yield self.batch_at(position)

    def batch_with_max_timestamp(self, offset: int) -> Batch | None:
        """Return the first batch with the largest timestamp from `start_offset` on, or None.

        Raises: `CorruptBatch`.
        """
        if self.max_timestamp_ms < 0:
            return None
        if self._max_timestamp_offset >= offset:
            return self.batch_at(self.position_of(self._max_timestamp_offset))
        largest, at = -1, -1
        for position, _, _ in self._steps(self.position_of(offset)):
            timestamp_ms = self.header_at(position).max_timestamp_ms
            if timestamp_ms > largest:
                largest, at = timestamp_ms, position
        return self.batch_at(at) if at >= 0 else None

    # Indexes on disk

    def path_of(self, suffix: str) -> Path:
        """Return the path of the segment's file with this suffix."""
        return self.path.with_name(file_name(self.base_offset, suffix))

    def put_in_place(self) -> None:
        """Rename a cleaned segment's file to `.log`.

        Raises: OSError.
        """
        path = self.path_of("log")
        self._disk.rename(self.path, path)
        self.path = path

    @property
    def index_bytes(self) -> int:
        """Return the size of the larger index file in bytes, as a checkpoint has it."""
        return max(self.saved.offsets.size, self.saved.times.size)

    @property
    def is_saved(self) -> bool:
        """Whether a checkpoint has the segment as it is now."""
        return self.size == self.saved.size > 0

    def capture(self) -> tuple[Saved, list[tuple[Path, int, bytes]]]:
        """Return the segment's checkpoint entry, and the index bytes to be written for it.

        The bytes are (file, position to write at, content).
        """
        if self.size == 0:
            return Saved(self.base_offset), []
        index = self.index
        index.add_time(self.max_timestamp_ms, self._max_timestamp_offset)
        saved = self.saved
        offsets = index.offsets_from(saved.offsets.size)
        times = index.times_from(saved.times.size)
        transactions = self.aborted.entries_from(saved.transactions.size)
        after = Saved(
            self.base_offset,
            self.size,
            self.max_timestamp_ms,
            self._max_timestamp_offset,
            saved.offsets.plus(offsets),
            saved.times.plus(times),
            saved.transactions.plus(transactions),
        )
        pieces = (
            (self.path_of("index"), saved.offsets.size, offsets),
            (self.path_of("timeindex"), saved.times.size, times),
            (self.path_of("txnindex"), saved.transactions.size, transactions),
        )
        return after, [piece for piece in pieces if piece[2] or not piece[1]]

    def read_aborted(self) -> bool:
        """Read the aborted transactions from their file; False if it isn't as it was written."""
        wanted = self.saved.transactions
        if wanted.size == 0:
            return True
        data = self._disk.read(self.path_of("txnindex")) or b""
        if not wanted.is_start_of(data):
            return False
        self.aborted = AbortedTransactions(data[: wanted.size])
        return True

    def _read_index(self) -> SparseIndex | None:
        """Read the index files; None if they aren't the ones that were written."""
        saved = self.saved
        offsets = self._disk.read(self.path_of("index")) or b""
        times = self._disk.read(self.path_of("timeindex")) or b""
        if not (saved.offsets.is_start_of(offsets) and saved.times.is_start_of(times)):
            return None
        return decode(self.base_offset, offsets[: saved.offsets.size], times[: saved.times.size])

    def _rebuilt_index(self) -> SparseIndex:
        """Rebuild the index from the batches' headers.

        The files are written anew with the next checkpoint. Raises: `CorruptBatch`.
        """
        index = SparseIndex(self.base_offset)
        latest, latest_offset = -1, self.base_offset
        for position, _, last_offset in self._steps(0):
            timestamp_ms = self.header_at(position).max_timestamp_ms
            if timestamp_ms > latest:
                latest, latest_offset = timestamp_ms, last_offset
            if position - index.last_position > self.index_interval_bytes:
                index.add(last_offset, position)
                index.add_time(latest, latest_offset)
        self.saved = Saved(self.base_offset)
        return index

    def close(self) -> None:
        file = self.release()
        if file is not None:
            file.close()

    def release(self) -> File | None:
        """Give up the open file without closing it, and return it; None if none is open.

        Whoever still has it, such as an answer that is being sent, can go on reading.
        """
        file: File | None = self.__dict__.pop("file", None)
        return file
