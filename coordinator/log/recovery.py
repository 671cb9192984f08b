"""Open the segments of a partition from its checkpoint on, or if need be from the beginning.

A broker that was killed in the middle of a write leaves a piece of a batch at the end of the last
segment. It was never acknowledged, so it is cut off. Anything else that isn't a valid batch means
that acknowledged data is damaged: if a whole batch stands behind it, or in an earlier segment, the
partition isn't served, and the broker says in which file the damage is, and where.

The part that the checkpoint covers is not read: the sizes of the files must be the ones it has, and
the snapshot and the index files that are needed at once have its checksums. If anything isn't so,
the checkpoint is ignored, and the log is read from the beginning. Damage below the recovery point
is therefore met by the fetch that comes to it (`LogSegment.verify_batches`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from crc32c import crc32c

from coordinator.log.batch import PREFIX_BYTES, RecordBatch, parse_header, read_batch_size_at
from coordinator.log.checkpoint import PartitionCheckpoint, read_checkpoint, read_start_offset
from coordinator.log.damage import find_next_intact_batch, has_whole_batch
from coordinator.log.disk import BrokerDisk
from coordinator.log.producer_snapshot import CorruptSnapshot, decode_producer_snapshot
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.saved_segment import SavedSegment, build_segment_file_name
from coordinator.log.segment import CorruptBatch, LogSegment
from coordinator.log.segment_replacement import finish_interrupted_replacement
from coordinator.log.segments import LogSegments

EndOffset: TypeAlias = int

logger = logging.getLogger(__name__)

_WINDOW_BYTES = 1 << 20
# Kafka keeps this file in the directory of every partition, and this broker in none.
_KAFKA_ONLY_FILE = "leader-epoch-checkpoint"


class CorruptLog(Exception):
    """Reports acknowledged data that is damaged; nothing has been changed."""

    def __init__(
        self, path: Path, position: int, reason: str = "with valid data behind it"
    ) -> None:
        super().__init__(
            f"{path}: damaged at byte {position}, {reason}. If no copy may be put back, give up "
            f"the damaged batch: python -m coordinator.repair {path} {position}"
        )


class MissingSegment(CorruptLog):
    """Reports offsets that are missing between two segments."""

    def __init__(self, path: Path, end_offset: int) -> None:
        Exception.__init__(
            self,
            f"{path}: the segment before it ends at offset {end_offset}, and none has what is "
            "between. Restore what is missing, or remove the segments from this one on (*.log) "
            "and lose what is in them. If Kafka has compacted this log, nothing need be missing: "
            f"copy its {_KAFKA_ONLY_FILE}, too",
        )


class RestoredLog(NamedTuple):
    """Represents a log as restored from its checkpoint, and the segments still to be read.

    Kafka: `LoadedLogOffsets`.
    """

    start_offset: int
    end_offset: int
    producers: ProducerStateManager
    unread_base_offsets: list[int]
    leftover_files: list[Path]  # files of removed segments
    checkpoint: PartitionCheckpoint | None  # if the log matches it
    has_gaps: bool  # a compaction has taken offsets away
    cleaned_offset: int | None  # base offset of a segment that has just replaced a run
    is_from_kafka: bool  # the files have been copied from an Apache Kafka broker


def open_from_checkpoint(segments: LogSegments) -> RestoredLog:
    """Finish an interrupted replacement, and open the segments that the checkpoint covers.

    Raises: OSError.
    """
    disk, directory = segments.host.disk, segments.directory
    cleaned_offset = finish_interrupted_replacement(disk, directory, segments.topic_id)
    names = disk.list_names(directory)
    left = [directory / name for name in names if name.endswith((".deleted", ".tmp"))]
    found = sorted(int(name[:-4]) for name in names if name.endswith(".log"))
    start_offset = read_start_offset(disk, directory, segments.topic_id)
    checkpoint = read_checkpoint(disk, directory, segments.topic_id)
    has_gaps = cleaned_offset is not None or (checkpoint is not None and checkpoint.has_gaps)
    restored = None
    if checkpoint is not None:
        restored = _restore_from_checkpoint(checkpoint, segments, found)
    if checkpoint is not None and restored is not None:
        producers = restored
        start_offset = max(start_offset, checkpoint.start_offset)
        end_offset = checkpoint.recovery_point
        first = segments.all[0].base_offset
    else:
        checkpoint, producers = None, ProducerStateManager()
        first = end_offset = found[0] if found else 0
        start_offset = max(start_offset, first)
    left += [path for base in found if base < first for path in segments.list_segment_paths(base)]
    return RestoredLog(
        start_offset,
        end_offset,
        producers,
        [base for base in found if base >= first],
        left,
        checkpoint,
        has_gaps,
        cleaned_offset,
        _KAFKA_ONLY_FILE in names,
    )


def _restore_from_checkpoint(
    checkpoint: PartitionCheckpoint, segments: LogSegments, base_offsets: list[int]
) -> ProducerStateManager | None:
    """Open the segments that the checkpoint has without reading any batch; return the producers.

    `base_offsets`: the segments whose files are there. None, and nothing is open, if the checkpoint
    doesn't match the files.
    """
    disk = segments.host.disk
    if not checkpoint.segments:
        return None
    producers = _read_producer_snapshot(checkpoint, segments)
    listed = {saved.base_offset for saved in checkpoint.segments}
    # Files of a removed segment may still be there, and of a segment added since the checkpoint.
    first = checkpoint.segments[0].base_offset
    others = [base for base in base_offsets if base not in listed]
    is_complete = all(
        base < first <= checkpoint.start_offset or base >= checkpoint.recovery_point
        for base in others
    )
    if producers is None or not is_complete:
        return None
    opened = []
    for saved in checkpoint.segments:
        segment = segments.create_saved_segment(saved)
        is_last = saved is checkpoint.segments[-1]
        if not _has_files_as_saved(segment, disk, is_last):
            logger.warning("%s: not as its checkpoint has it, so the log is read", segment.path)
            return None
        opened.append(segment)
    segments.all[:] = opened
    return producers


def _read_producer_snapshot(
    checkpoint: PartitionCheckpoint, segments: LogSegments
) -> ProducerStateManager | None:
    """Read the producer snapshot of a checkpoint; None if it isn't the one that was written."""
    data = segments.host.disk.read_file(segments.directory / checkpoint.snapshot_name)
    if data is None or crc32c(data) != checkpoint.snapshot_crc:
        return None
    try:
        return decode_producer_snapshot(data)
    except CorruptSnapshot:
        return None


def _has_files_as_saved(segment: LogSegment, disk: BrokerDisk, is_last: bool) -> bool:
    """Return whether a segment's files are as the checkpoint has them."""
    size = disk.file_size(segment.path)
    wanted = segment.saved.size
    if size is None or size < wanted or (size > wanted and not is_last):
        return False
    if size > wanted:  # batches behind the checkpoint are going to be added to the index
        try:
            _ = segment.index
        except CorruptBatch:  # reading the log finds out which batch it is
            return False
    return segment.try_read_transaction_index()


def recover_log(
    segments: LogSegments,
    restored: RestoredLog,
    apply_batch: Callable[[LogSegment, RecordBatch], None],
) -> EndOffset:
    """Read the log behind its restored part, apply each batch, and return the end offset.

    A segment begins where the one before it ends, compacted or not, if anything between is still in
    the log; only one that Kafka has compacted may end before the next one begins. If none but empty
    ones begin later, power was lost before the end of the last one with batches was flushed: they
    are removed. A torn tail is cut. Raises: CorruptLog, MissingSegment.
    """
    disk, directory = segments.host.disk, segments.directory
    may_miss = restored.has_gaps or segments.settings.is_compacted
    may_be_apart = restored.is_from_kafka and segments.settings.is_compacted
    end_offset = restored.end_offset
    tail = segments.all[-1:]
    bases = [
        base for base in restored.unread_base_offsets if not tail or base >= tail[0].base_offset
    ]
    filled = [
        base for base in bases if disk.file_size(directory / build_segment_file_name(base, "log"))
    ]
    for base_offset in bases:
        if tail:
            segment = tail.pop()
        else:
            path = directory / build_segment_file_name(base_offset, "log")
            if segments.all and base_offset != end_offset:
                if not filled or base_offset > filled[-1]:
                    disk.remove_file(path)
                    continue
                if base_offset > restored.start_offset and not may_be_apart:
                    raise MissingSegment(path, end_offset)
            segment = segments.create_saved_segment(SavedSegment(base_offset))
            segments.all.append(segment)
            end_offset = base_offset
        is_last = not filled or base_offset >= filled[-1]
        for batch in scan_segment(segment, end_offset, is_last=is_last, may_have_gaps=may_miss):
            try:
                apply_batch(segment, batch)
            except ValueError as error:  # an unreadable marker under a right checksum
                position = segment.size - batch.size
                raise CorruptLog(segment.path, position, str(error)) from error
            segments.count_unsaved_batch(batch.size)
            end_offset = batch.last_offset + 1
    return end_offset


def scan_segment(
    segment: LogSegment, next_offset: int, *, is_last: bool, may_have_gaps: bool
) -> Iterator[RecordBatch]:
    """Yield and index each whole batch behind the known end of a segment, then cut a torn tail.

    `may_have_gaps`: offsets may have been taken away by a compaction. Raises: CorruptLog for damage
    with valid data behind it.
    """
    end = segment.file.size()
    window, start = b"", 0
    while True:
        position = segment.size
        at = position - start
        if not has_whole_batch(window, at) and position < end:
            window, start, at = _read_window(segment, position, end), position, 0
        if not has_whole_batch(window, at):
            break
        batch = parse_header(memoryview(window), at)
        is_next = batch.base_offset == next_offset or (
            may_have_gaps and batch.base_offset > next_offset
        )
        if batch.magic != 2 or not is_next or not batch.is_intact():
            break
        segment.index_batch_and_move_end(batch.size, batch.last_offset, batch.max_timestamp_ms)
        next_offset = batch.last_offset + 1
        yield batch
    if segment.size < end:
        if not is_last or _has_intact_batch_behind(segment, segment.size, next_offset):
            raise CorruptLog(segment.path, segment.size)
        segment.truncate_to_size()


def _read_window(segment: LogSegment, position: int, end_position: int) -> bytes:
    """Read bytes from a position on, enough for the whole next batch if that is all there."""
    window = segment.file.read(_WINDOW_BYTES, position)
    if len(window) >= PREFIX_BYTES:
        size = read_batch_size_at(window, 0)
        if len(window) < size <= end_position - position:
            return segment.file.read(size, position)
    return window


def _has_intact_batch_behind(segment: LogSegment, position: int, next_offset: int) -> bool:
    """Return whether an intact batch of this log stands anywhere behind the damaged `position`."""
    file = segment.file
    return find_next_intact_batch(file.read, position, file.size(), next_offset) is not None
