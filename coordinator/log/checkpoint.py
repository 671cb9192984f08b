"""The checkpoint of a partition: up to where its log is known to be whole and on the disk.

Below the recovery point everything is flushed: the batches, the index files and a snapshot of the
producers. So a start reads the log from there on only, whether the broker was stopped, killed, or
lost its power. Kafka keeps an offset for each partition and believes what index files lie there;
here a file in the partition's directory says of each segment how much of which file is good, with a
checksum of it, and has one itself. Whatever isn't as it says counts for nothing: then the whole log
is read (see `recovery`). The file is replaced after all that it speaks of was flushed. It also says
how far the cleaner has cleaned this log: what outlives the log, or stays when other files are put
in its place, can't be believed about that.

    checkpoint      what this file says (see `sealed`)
    start-offset    only if records were deleted by request: that can't wait for the
                    next checkpoint
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from crc32c import crc32c

from coordinator.log.disk import Disk, File
from coordinator.log.producers import Producer
from coordinator.log.sealed import sealed, unsealed
from coordinator.log.segment import Saved, SavedFile, file_name
from coordinator.log.snapshot import encode_snapshot

_CHECKPOINT = "checkpoint"
_START_OFFSET = "start-offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What the file says."""

    topic_id: UUID
    start_offset: int
    recovery_point: int
    has_gaps: bool  # a compaction has taken batches away
    first_dirty_offset: int = 0  # the log has been cleaned up to here
    segments: Sequence[Saved]  # oldest first; those that the recovery point is behind
    snapshot_crc: int = 0  # worked out by the thread that writes it

    @property
    def snapshot_name(self) -> str:
        return file_name(self.recovery_point, "snapshot")


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    return sealed(
        checkpoint.topic_id,
        start_offset=checkpoint.start_offset,
        recovery_point=checkpoint.recovery_point,
        has_gaps=checkpoint.has_gaps,
        first_dirty_offset=checkpoint.first_dirty_offset,
        snapshot_crc=checkpoint.snapshot_crc,
        segments=checkpoint.segments,
    )


def read_checkpoint(disk: Disk, directory: Path, topic_id: UUID) -> Checkpoint | None:
    """None if there is none of this topic, or none that can be believed."""
    data = disk.read(directory / _CHECKPOINT)
    if data is None:
        return None
    try:
        found = unsealed(data, topic_id)
        return Checkpoint(
            topic_id=topic_id,
            start_offset=found["start_offset"],
            recovery_point=found["recovery_point"],
            has_gaps=found["has_gaps"],
            first_dirty_offset=found.get("first_dirty_offset", 0),  # earlier ones don't say
            snapshot_crc=found["snapshot_crc"],
            segments=[
                Saved(*numbers, *(SavedFile(*file) for file in files))
                for *numbers, index, times, transactions in found["segments"]
                for files in ((index, times, transactions),)
            ],
        )
    except (ValueError, KeyError, TypeError):
        return None


def forget_segments(disk: Disk, directory: Path, topic_id: UUID) -> None:
    """Let the next start read the whole log: its files are going to be changed. OSError."""
    found = read_checkpoint(disk, directory, topic_id)
    if found is not None:
        disk.replace(directory / _CHECKPOINT, encode_checkpoint(replace(found, segments=())))


def write_start_offset(disk: Disk, directory: Path, topic_id: UUID, offset: int) -> None:
    """Durable when this returns. OSError."""
    disk.replace(directory / _START_OFFSET, sealed(topic_id, start_offset=offset))


def read_start_offset(disk: Disk, directory: Path, topic_id: UUID) -> int:
    """0 if none was written, or none that can be believed."""
    try:
        data = disk.read(directory / _START_OFFSET) or b""
        return int(unsealed(data, topic_id)["start_offset"])
    except (ValueError, KeyError, TypeError):
        return 0


@dataclass(slots=True)
class Saving:
    """Everything that a new checkpoint needs, as it was at one moment. `write` may be called on
    another thread: nothing in here changes any more."""

    disk: Disk
    directory: Path
    flushes: Iterable[File]
    flush_names: Callable[[], None]
    pieces: Iterable[tuple[Path, int, bytes]]  # of index files: file, from this byte on, bytes
    producers: Sequence[tuple[int, Producer, int]]
    checkpoint: Checkpoint
    flush_failed: bool = False

    def write(self) -> None:
        """OSError; with `flush_failed` if it came of flushing batches."""
        try:
            for file in self.flushes:
                file.flush()
        except OSError:
            self.flush_failed = True
            raise
        self.flush_names()
        snapshot = encode_snapshot(self.producers)
        checkpoint = replace(self.checkpoint, snapshot_crc=crc32c(snapshot))
        snapshot_file = (self.directory / checkpoint.snapshot_name, 0, snapshot)
        for path, at, data in (*self.pieces, snapshot_file):
            file = self.disk.open(path)
            try:
                file.truncate(at)
                file.write(data, at)
                if data:
                    file.flush()
            finally:
                file.close()
        self.disk.flush_directory(self.directory)
        self.disk.replace(self.directory / _CHECKPOINT, encode_checkpoint(checkpoint))
