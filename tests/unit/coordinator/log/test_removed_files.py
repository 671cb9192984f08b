"""Test that a batch being sent is sent whole after its segment is removed, and files are closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.log.file_records import FileRecords
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import partition, produced

DELAY_MS = 60_000
SIZE = produced([b"v"]).size


def filled(directory: Path, clock: FakeClock, count: int = 6) -> PartitionLog:
    """Fill a log with two batches a segment."""
    log = partition(
        directory,
        clock=clock,
        segment_bytes=2 * SIZE,
        retention_ms=-1,
        retention_bytes=-1,
        file_delete_delay_ms=DELAY_MS,
    )
    for _ in range(count):
        log.append_produced(produced([b"v"], timestamp_ms=clock.now_ms()))
    return log


def found(log: PartitionLog, offset: int) -> FileRecords:
    records = log.fetch_batches(offset, 1 << 20, committed=False, at_least_one=True).records
    assert isinstance(records, FileRecords)
    assert len(records) == 2 * SIZE
    return records


def open_files(directory: Path) -> int:
    """Return how many files below the directory this process has open, unlinked ones included."""
    links = Path("/proc/self/fd")
    targets = []
    for link in links.iterdir():
        try:
            targets.append(os.readlink(link))
        except OSError:  # that of the listing itself
            continue
    return sum(str(directory) in target for target in targets)


def discard(log: PartitionLog) -> None:
    log.close_for_deletion()


def delete_records(log: PartitionLog) -> None:
    log.delete_records_before(6)


def compact(log: PartitionLog) -> None:
    """Compact the first two segments into one that has only their last batch."""
    run = log.compaction.list_closed_segments()[:2]
    cleaned = log.compaction.create_cleaned_segment(0)
    last = run[1].read_batches(SIZE, SIZE)
    cleaned.append_batch(last, 3, 0)
    errors: list[Exception | None] = []
    log.compaction.replace_segments(run, cleaned, log.compaction.first_dirty_offset, errors.append)
    assert errors == [None]


REMOVALS = [discard, delete_records, compact]


@pytest.mark.parametrize("remove", REMOVALS)
def test_a_slice_that_is_being_sent_is_whole_whatever_removes_its_segment(
    remove: Callable[[PartitionLog], None], tmp_path: Path
) -> None:
    clock = FakeClock()
    log = filled(tmp_path, clock)
    records = found(log, 0)
    begun = records.read(0, 10)
    expected = Path(log.compaction.list_closed_segments()[0].path).read_bytes()
    remove(log)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.unlink()
    clock.advance(DELAY_MS - 1)
    assert begun + records.read(10, len(records) - 10) == expected


@pytest.mark.parametrize("remove", REMOVALS)
def test_a_slice_that_is_not_sent_in_time_ends_with_its_file(
    remove: Callable[[PartitionLog], None], tmp_path: Path
) -> None:
    clock = FakeClock()
    log = filled(tmp_path, clock)
    records = found(log, 0)
    remove(log)
    clock.advance(DELAY_MS)
    with pytest.raises(OSError, match="Bad file descriptor"):
        records.read(0, len(records))


def test_a_deleted_log_keeps_no_file_open_but_those_that_are_being_sent(tmp_path: Path) -> None:
    clock = FakeClock()
    log = filled(tmp_path, clock)
    records = found(log, 0)
    other = found(log, 2)
    assert open_files(tmp_path) == 3
    del other
    log.close_for_deletion()
    assert open_files(tmp_path) == 1
    del records
    assert open_files(tmp_path) == 0


def test_records_that_are_deleted_leave_no_file_open_but_those_that_are_being_sent(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    log = filled(tmp_path, clock)
    records = found(log, 0)
    found(log, 2)
    log.delete_records_before(4)
    assert open_files(tmp_path) == 2, "the active segment's, and the one that is being sent"
    log.close_for_deletion()
    assert open_files(tmp_path) == 1
    assert len(bytes(records)) == 2 * SIZE
    del records
    assert open_files(tmp_path) == 0


def test_a_closed_log_has_no_file_open_whoever_is_reading(tmp_path: Path) -> None:
    log = filled(tmp_path, FakeClock())
    records = found(log, 0)
    log.close()
    assert open_files(tmp_path) == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        bytes(records)
