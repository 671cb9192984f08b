"""One segment of a partition's log: a `.log` file of whole batches, and sparse indexes over it.

The files are Kafka's own: `<first offset, 20 digits>.log` holds the batches as they are sent,
`.index` (relative offset int32, position int32), `.timeindex` (largest timestamp so far int64,
relative offset int32) and `.txnindex` (aborted transactions, see `aborted.py`). One index entry is
made for about every `index_interval_bytes`: the last offset of a batch and where the batch starts.

The indexes live in memory, and are written when the segment is full or the log is closed: after a
crash they are made again from the `.log`, which is read to its end at start anyhow.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct

from coordinator.log.aborted import AbortedTransaction, encode_aborted
from coordinator.log.batch import HEADER_BYTES, Batch, parse_header, size_at
from coordinator.log.disk import Disk

_STEP = Struct(">qi11xi")  # base offset, length, last offset delta: enough to find an offset
_INDEX_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_WINDOW_BYTES = 8_192
_POSITION_MAX = 2**31 - 1


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}.{suffix}"


class Segment:
    """Batches from `base_offset` on. `size` is the end of what is in it."""

    def __init__(
        self, directory: Path, base_offset: int, disk: Disk, index_interval_bytes: int
    ) -> None:
        self.base_offset = base_offset
        self.path = directory / file_name(base_offset, "log")
        self.file = disk.open(self.path)
        self.size = 0
        self.max_timestamp_ms = -1
        self._disk = disk
        self._max_timestamp_at = 0  # position of the first batch that has it,
        self._max_timestamp_offset = base_offset  # and its last offset
        self.index_interval_bytes = index_interval_bytes
        self._since_entry = 0
        self._offsets = array("q")
        self._positions = array("q")
        self._timestamps = array("q")  # the largest up to this batch,
        self._timestamp_offsets = array("q")  # and the last offset of the first batch with it

    def has_room(self, size: int, offset: int, segment_bytes: int) -> bool:
        """Whether a batch of this size that ends with `offset` may still go here."""
        return self.size == 0 or (
            self.size + size <= min(segment_bytes, _POSITION_MAX)
            and offset - self.base_offset <= _POSITION_MAX
        )

    def append(self, data: bytes | bytearray, last_offset: int, max_timestamp_ms: int) -> None:
        """Write a batch. If the disk refuses, OSError, and the segment is as it was."""
        try:
            self.file.write(data, self.size)
        except OSError:
            self._undo()
            raise
        self.noted(len(data), last_offset, max_timestamp_ms)

    def _undo(self) -> None:
        # If even this fails, the next append overwrites the torn piece, or the next start cuts it.
        try:
            self.file.truncate(self.size)
        except OSError:
            return

    def noted(self, size: int, last_offset: int, max_timestamp_ms: int) -> None:
        """A batch of `size` bytes is at the end of the file: index it."""
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self._max_timestamp_at = self.size
            self._max_timestamp_offset = last_offset
        if self._since_entry > self.index_interval_bytes:
            self._offsets.append(last_offset)
            self._positions.append(self.size)
            self._timestamps.append(self.max_timestamp_ms)
            self._timestamp_offsets.append(self._max_timestamp_offset)
            self._since_entry = 0
        self.size += size
        self._since_entry += size

    def position_of(self, offset: int) -> int:
        """Where the first batch starts whose last offset is `offset` or later; `size` if none."""
        entry = bisect_right(self._offsets, offset) - 1
        start = self._positions[entry] if entry >= 0 else 0
        for position, _, last_offset in self._steps(start):
            if last_offset >= offset:
                return position
        return self.size

    def whole_batches_end(self, start: int, end: int, max_bytes: int, at_least_one: bool) -> int:
        """Where those of the batches between the positions end that have at most `max_bytes`; the
        first one counts in any case if asked."""
        if end - start <= max_bytes:
            return end
        stop = self._whole_batches_end(start, start + max_bytes)
        if stop == start and at_least_one:
            return start + size_at(self.file.read(_STEP.size, start), 0)
        return stop

    def _whole_batches_end(self, start: int, limit: int) -> int:
        entry = bisect_right(self._positions, limit) - 1
        end = max(start, self._positions[entry]) if entry >= 0 else start
        for position, size, _ in self._steps(end):
            if position + size > limit:
                return position
            end = position + size
        return end

    def _steps(self, position: int) -> Iterator[tuple[int, int, int]]:
        """(position, size, last offset) of each batch from this position on."""
        window, start = b"", position
        while position < self.size:
            at = position - start
            if at + _STEP.size > len(window):
                window, start, at = self.file.read(_WINDOW_BYTES, position), position, 0
            base_offset, length, last_offset_delta = _STEP.unpack_from(window, at)
            yield position, length + 12, base_offset + last_offset_delta
            position += length + 12

    def offset_at(self, position: int) -> int:
        """The base offset of the batch that starts there."""
        return int.from_bytes(self.file.read(8, position), "big")

    def batch_at(self, position: int) -> Batch:
        """The whole batch that starts there."""
        size = size_at(self.file.read(_STEP.size, position), 0)
        return parse_header(self.file.read(size, position))

    def batches_from(self, timestamp_ms: int) -> Iterator[Batch]:
        """The batches that have a record of this timestamp or a later one."""
        if self.max_timestamp_ms < timestamp_ms:
            return
        entry = bisect_left(self._timestamps, timestamp_ms) - 1
        start = self._positions[entry] if entry >= 0 else 0
        for position, _, _ in self._steps(start):
            header = parse_header(self.file.read(HEADER_BYTES, position))
            if header.max_timestamp_ms >= timestamp_ms:
                yield self.batch_at(position)

    def batch_with_max_timestamp(self) -> Batch | None:
        return self.batch_at(self._max_timestamp_at) if self.size else None

    def truncate(self) -> None:
        """Cut the file where the last noted batch ends."""
        self.file.truncate(self.size)

    def write_indexes(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Kafka's index files, for the tools that read them; of the transactions those whose
        marker is in this segment."""
        base = self.base_offset
        entries = zip(self._offsets, self._positions, strict=True)
        offsets = b"".join(_INDEX_ENTRY.pack(offset - base, at) for offset, at in entries)
        times = b"".join(_TIME_ENTRY.pack(ms, offset - base) for ms, offset in self._growing())
        transactions = b"".join(map(encode_aborted, aborted))
        contents = {"index": offsets, "timeindex": times, "txnindex": transactions}
        for suffix, content in contents.items():
            file = self._disk.open(self.path.with_suffix(f".{suffix}"))
            file.truncate(0)
            file.write(content, 0)
            file.close()

    def _growing(self) -> Iterator[tuple[int, int]]:
        """Each larger timestamp once, the largest of the segment last."""
        last = -1
        ends = ([self.max_timestamp_ms], [self._max_timestamp_offset])
        for part in ((self._timestamps, self._timestamp_offsets), ends):
            for timestamp_ms, offset in zip(*part, strict=True):
                if timestamp_ms > last:
                    yield timestamp_ms, offset
                    last = timestamp_ms

    def close(self) -> None:
        self.file.close()
