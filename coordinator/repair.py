"""Repair a damaged log: give up one batch and keep everything else.

    python -m coordinator.repair FILE POSITION

FILE is a segment (`.log`) of a broker that has been stopped, POSITION the byte that the broker
has logged. The damaged batch is replaced by an empty one that has its offsets, as a compaction
leaves them, so that no later offset moves. The file as it was stays beside it, as
`FILE.damaged-POSITION`.

If no batch follows, the log ends at the end offset in the checkpoint, or in the batch itself, so
that no offset is assigned twice. The segments are removed from the checkpoint, so that the next
start reads the whole log.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias
from uuid import UUID

from coordinator.log.batch import RecordBatch, parse_header
from coordinator.log.checkpoint import read_checkpoint, remove_segments_from_checkpoint
from coordinator.log.cleaner.rebuild_batch import build_empty_batch
from coordinator.log.damage import find_damage_end, has_whole_batch
from coordinator.log.data_directory import is_data_directory, read_partition_metadata
from coordinator.log.disk import BrokerDisk, SystemDisk
from coordinator.log.saved_segment import build_segment_file_name

ExitStatus: TypeAlias = int

PRODUCER_IDS_TOPIC = "__cluster_metadata"


class NotRepaired(Exception):
    """Signals that nothing has been changed; the message says why and what to do."""


class RepairResult(NamedTuple):
    """Names the bytes and offsets that a repair gave up, and the copy of the original file."""

    start: int
    end: int
    first_offset: int
    end_offset: int
    original: Path


def main(arguments: Sequence[str] | None = None) -> ExitStatus:
    """Repair one file as the command line says and return the process's exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m coordinator.repair",
        description="Give up a damaged batch of a log, while its broker is stopped.",
    )
    parser.add_argument("file", type=Path, help="the segment that the broker's log has named")
    parser.add_argument("position", type=int, help="the byte at which the damaged batch begins")
    options = parser.parse_args(arguments)
    try:
        disk = _open_disk_like(options.file)  # the broker may be another user's
        done = repair_segment(options.file, options.position, disk)
    except (NotRepaired, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    count = done.end_offset - done.first_offset
    offsets = f"{done.first_offset} to {done.end_offset - 1}" if count > 0 else "unknown"
    sys.stdout.write(
        f"given up: bytes {done.start} to {done.end}, offsets {offsets} "
        f"({done.original} is the file as it was)\n"
    )
    return 0


def _open_disk_like(path: Path) -> SystemDisk:
    """Return a disk whose new files get the owner and mode of `path`.

    Raises: NotRepaired if there is no such file.
    """
    try:
        return SystemDisk(like_stat=path.stat())
    except FileNotFoundError as error:
        raise NotRepaired(f"{path} isn't there") from error


def repair_segment(segment_path: Path, position: int, disk: BrokerDisk) -> RepairResult:
    """Replace the damaged batch at a byte position of a segment by an empty one.

    Raises: NotRepaired, OSError.
    """
    segment_path = segment_path.resolve()  # a bare file name has no parent directory
    directory = segment_path.parent
    topic_id = read_partition_metadata(disk, directory)
    if topic_id is None or segment_path.suffix != ".log" or not segment_path.stem.isdecimal():
        raise NotRepaired(
            f"{segment_path} is no segment: give a .log file in a partition's directory"
        )
    if not is_data_directory(disk, directory.parent):  # or its broker's lock isn't seen
        raise NotRepaired(
            f"{directory.parent} is no broker's data directory: move {directory} into its broker's"
        )
    try:
        lock = disk.lock_file(directory.parent / ".lock")
    except BlockingIOError as error:
        raise NotRepaired(f"the broker of {directory.parent} runs: stop it first") from error
    try:
        return _replace_damaged_batch(segment_path, position, topic_id, disk)
    finally:
        lock.release()


def _replace_damaged_batch(
    path: Path, position: int, topic_id: UUID, disk: BrokerDisk
) -> RepairResult:
    data = disk.read_file(path)
    if data is None:
        raise NotRepaired(f"{path} isn't there")
    first_offset = _require_offset_at(path, data, position)
    end = find_damage_end(
        lambda count, at: data[at : at + count], position, len(data), first_offset
    )
    damaged, rest = data[position:end], data[end:]
    if rest:
        end_offset = parse_header(memoryview(rest)).base_offset
    else:
        end_offset = _find_end_offset(path, damaged, first_offset, topic_id, disk)
    empty = _create_empty_batch(first_offset, end_offset) if end_offset > first_offset else b""
    original = path.with_name(f"{path.name}.damaged-{position}")
    if disk.file_size(original) is not None:
        raise NotRepaired(f"{original} is there already: move it away")
    disk.replace_file(original, data)
    remove_segments_from_checkpoint(disk, path.parent, topic_id)
    disk.replace_file(path, data[:position] + empty + rest)
    return RepairResult(position, end, first_offset, end_offset, original)


def _require_offset_at(path: Path, data: bytes, position: int) -> int:
    """Walk the batches up to a byte position and return the offset that follows there.

    Raises: NotRepaired if a batch before it is damaged, or if none begins there.
    """
    at, offset = 0, int(path.stem)
    while at < position:
        if not _begins_with_batch(data, at):
            raise NotRepaired(f"{path} is damaged at byte {at} already: repair that first")
        batch = parse_header(memoryview(data), at)
        at, offset = at + batch.size, batch.last_offset + 1
    if at != position or position >= len(data):
        raise NotRepaired(
            f"no batch begins at byte {position} of {path}: give the position that the broker's "
            "log has named"
        )
    return offset


def _begins_with_batch(data: bytes, at: int = 0) -> bool:
    """Return whether an intact batch begins at this byte position."""
    batch = parse_header(memoryview(data), at) if has_whole_batch(data, at) else None
    return batch is not None and batch.magic == 2 and batch.is_intact()


def _find_end_offset(
    path: Path, damaged: bytes, first_offset: int, topic_id: UUID, disk: BrokerDisk
) -> int:
    """Return the offset after damage at a file's end: `first_offset` if it is unknown.

    Raises: NotRepaired if producer ids would be allocated twice.
    """
    names = disk.list_names(path.parent)
    bases = [int(name[:-4]) for name in names if name.endswith(".log")]
    later = [base for base in bases if base > int(path.stem)]
    if path.parent.name.startswith(f"{PRODUCER_IDS_TOPIC}-") and not any(
        _begins_with_batch(
            disk.read_file(path.with_name(build_segment_file_name(base, "log"))) or b""
        )
        for base in later
    ):
        raise NotRepaired(
            f"{path}: the batch says which producer ids have been given, and none follows. Without "
            "it, or with an older copy of it, they would be given again: go on as 'Repair' in "
            "docs/broker.md says of __cluster_metadata"
        )
    if later:
        return min(later)
    checkpoint = read_checkpoint(disk, path.parent, topic_id)
    end_offset = first_offset if checkpoint is None else checkpoint.recovery_point
    batch = parse_header(memoryview(damaged)) if has_whole_batch(damaged, 0) else None
    if batch is not None and batch.is_intact():  # its number of offsets is under the checksum
        end_offset = max(end_offset, first_offset + batch.last_offset_delta + 1)
    return max(end_offset, first_offset)


def _create_empty_batch(first_offset: int, end_offset: int) -> bytes:
    """Encode a batch without records that has these offsets."""
    return build_empty_batch(
        RecordBatch(
            base_offset=first_offset,
            length=0,
            leader_epoch=0,
            magic=2,
            crc=0,
            attributes=0,
            last_offset_delta=end_offset - first_offset - 1,
            base_timestamp_ms=-1,
            max_timestamp_ms=-1,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=0,
            data=b"",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
