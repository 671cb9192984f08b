"""Write and read the checkpoint of a partition: up to where its log is whole and on the disk.

Below the recovery point everything is flushed: the batches, the index files and a snapshot of the
producers. So a start reads the log from there on only, whether the broker was stopped, killed, or
lost its power. Kafka keeps an offset for each partition and believes what index files lie there;
here a file in the partition's directory says of each segment how much of which file is good, with a
checksum of it, and has one itself. If anything isn't as the file says, all of it is ignored: then
the whole log is read (see `recovery`). The file is replaced after everything that it vouches for
was flushed. It also says how far the cleaner has cleaned this log: a file that outlives the log, or
stays when other files are put in its place, can't be believed about that.

    checkpoint      the content of a `PartitionCheckpoint` (see `checksummed_json`)
    start-offset    only if records were deleted by request: that can't wait for the
                    next checkpoint
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from crc32c import crc32c

from coordinator.log.checksummed_json import decode_checksummed, encode_checksummed
from coordinator.log.disk import BrokerDisk, File
from coordinator.log.producer_snapshot import encode_producer_snapshot
from coordinator.log.producer_state import KnownProducer
from coordinator.log.saved_segment import (
    SavedIndexFile,
    SavedSegment,
    UnwrittenBytes,
    build_segment_file_name,
)

_CHECKPOINT = "checkpoint"
_START_OFFSET = "start-offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCheckpoint:
    """Represents the content of a partition's checkpoint file."""

    topic_id: UUID
    start_offset: int
    recovery_point: int
    has_gaps: bool  # a compaction has taken batches away
    first_dirty_offset: int = 0  # the log has been cleaned up to here
    segments: Sequence[SavedSegment]  # oldest first; all of the log up to the recovery point
    snapshot_crc: int = 0  # computed by the thread that writes the snapshot

    @property
    def snapshot_name(self) -> str:
        """Return the name of the producer snapshot that belongs to this checkpoint."""
        return build_segment_file_name(self.recovery_point, "snapshot")


def encode_checkpoint(checkpoint: PartitionCheckpoint) -> bytes:
    """Encode a checkpoint as the content of its file."""
    return encode_checksummed(
        checkpoint.topic_id,
        start_offset=checkpoint.start_offset,
        recovery_point=checkpoint.recovery_point,
        has_gaps=checkpoint.has_gaps,
        first_dirty_offset=checkpoint.first_dirty_offset,
        snapshot_crc=checkpoint.snapshot_crc,
        segments=checkpoint.segments,
    )


def read_checkpoint(
    disk: BrokerDisk, directory: Path, topic_id: UUID
) -> PartitionCheckpoint | None:
    """Read a partition's checkpoint; None if it is missing, damaged or another topic's."""
    data = disk.read_file(directory / _CHECKPOINT)
    if data is None:
        return None
    try:
        found = decode_checksummed(data, topic_id)
        return PartitionCheckpoint(
            topic_id=topic_id,
            start_offset=found["start_offset"],
            recovery_point=found["recovery_point"],
            has_gaps=found["has_gaps"],
            first_dirty_offset=found["first_dirty_offset"],
            snapshot_crc=found["snapshot_crc"],
            segments=[
                SavedSegment(*numbers, *(SavedIndexFile(*file) for file in files))
                for *numbers, index, times, transactions in found["segments"]
                for files in ((index, times, transactions),)
            ],
        )
    except (ValueError, KeyError, TypeError):
        return None


def remove_segments_from_checkpoint(disk: BrokerDisk, directory: Path, topic_id: UUID) -> None:
    """Rewrite the checkpoint without segments, so that the next start reads the whole log.

    It is called before the log's files are changed. Raises: OSError.
    """
    found = read_checkpoint(disk, directory, topic_id)
    if found is not None:
        disk.replace_file(directory / _CHECKPOINT, encode_checkpoint(replace(found, segments=())))


def write_start_offset(disk: BrokerDisk, directory: Path, topic_id: UUID, offset: int) -> None:
    """Write the offset at which the log starts to a file of its own, flushed on return.

    Raises: OSError.
    """
    disk.replace_file(directory / _START_OFFSET, encode_checksummed(topic_id, start_offset=offset))


def read_start_offset(disk: BrokerDisk, directory: Path, topic_id: UUID) -> int:
    """Read the offset at which the log starts; 0 if none was written, or none that is intact."""
    try:
        data = disk.read_file(directory / _START_OFFSET) or b""
        return int(decode_checksummed(data, topic_id)["start_offset"])
    except (ValueError, KeyError, TypeError):
        return 0


@dataclass(slots=True)
class CheckpointWriter:
    """Writes a checkpoint from a copy of the partition's state at one moment.

    `write_checkpoint` may be called on another thread: nothing in here changes any more.
    """

    disk: BrokerDisk
    directory: Path
    files_to_flush: Iterable[File]
    flush_directories: Callable[[], None]
    index_pieces: Iterable[UnwrittenBytes]
    producers: Sequence[KnownProducer]
    checkpoint: PartitionCheckpoint
    flush_failed: bool = False

    def write_checkpoint(self) -> None:
        """Flush the log, write index files and the producer snapshot, then replace the checkpoint.

        Raises: OSError, with `flush_failed` set if flushing batches failed.
        """
        try:
            for file in self.files_to_flush:
                file.flush()
        except OSError:
            self.flush_failed = True
            raise
        self.flush_directories()
        snapshot = encode_producer_snapshot(self.producers)
        checkpoint = replace(self.checkpoint, snapshot_crc=crc32c(snapshot))
        snapshot_file = UnwrittenBytes(self.directory / checkpoint.snapshot_name, 0, snapshot)
        for path, position, content in (*self.index_pieces, snapshot_file):
            file = self.disk.open_file(path)
            try:
                file.truncate(position)
                file.write(content, position)
                if content:
                    file.flush()
            finally:
                file.close()
        self.disk.flush_directory(self.directory)
        self.disk.replace_file(self.directory / _CHECKPOINT, encode_checkpoint(checkpoint))
