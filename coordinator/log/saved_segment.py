"""Describe a segment as a checkpoint has it, and read its index files as they were saved.

A checkpoint says how many bytes of each file are good, and has a checksum of the index files: one
that isn't as it was written is not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from coordinator.log.disk import BrokerDisk
from coordinator.log.index import SparseIndex, decode_index
from coordinator.log.transaction_index import TransactionIndex

SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot")
CLEANED = ".cleaned"


def build_segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file with this suffix."""
    return f"{base_offset:020d}.{suffix}"


class SavedIndexFile(NamedTuple):
    """Tells how many bytes of an index file a checkpoint covers, and their checksum."""

    size: int = 0
    crc: int = 0

    def extend_with(self, data: bytes) -> SavedIndexFile:
        """Return the size and checksum of the file after this data is added to its end."""
        return SavedIndexFile(self.size + len(data), crc32c(data, self.crc))

    def matches_start_of(self, data: bytes) -> bool:
        """Return whether the data begins with the bytes that this size and checksum describe."""
        return len(data) >= self.size and crc32c(data[: self.size]) == self.crc


class UnwrittenBytes(NamedTuple):
    """Represents bytes that belong into a file from a position on, which is its end."""

    file: Path
    position: int
    content: bytes


class SavedSegment(NamedTuple):
    """Represents a segment in a checkpoint: `size` bytes of batches, all of them flushed."""

    base_offset: int
    size: int = 0
    max_timestamp_ms: int = -1
    max_timestamp_offset: int = 0  # the last offset of the first batch that has it
    offsets: SavedIndexFile = SavedIndexFile()
    times: SavedIndexFile = SavedIndexFile()
    transactions: SavedIndexFile = SavedIndexFile()

    @property
    def index_bytes(self) -> int:
        """Return the size of the larger index file in bytes."""
        return max(self.offsets.size, self.times.size)


def read_saved_index(disk: BrokerDisk, directory: Path, saved: SavedSegment) -> SparseIndex | None:
    """Read the sparse index of a segment; None if its files aren't the ones that were written."""
    offsets = disk.read_file(directory / build_segment_file_name(saved.base_offset, "index")) or b""
    times = (
        disk.read_file(directory / build_segment_file_name(saved.base_offset, "timeindex")) or b""
    )
    if not (saved.offsets.matches_start_of(offsets) and saved.times.matches_start_of(times)):
        return None
    return decode_index(saved.base_offset, offsets[: saved.offsets.size], times[: saved.times.size])


def read_saved_transactions(
    disk: BrokerDisk, directory: Path, saved: SavedSegment
) -> TransactionIndex | None:
    """Read the aborted transactions of a segment; None if their file isn't as it was written."""
    wanted = saved.transactions
    if wanted.size == 0:
        return TransactionIndex()
    data = disk.read_file(directory / build_segment_file_name(saved.base_offset, "txnindex")) or b""
    return TransactionIndex(data[: wanted.size]) if wanted.matches_start_of(data) else None
