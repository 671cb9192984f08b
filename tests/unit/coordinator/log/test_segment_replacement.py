"""Test that a compacted segment replaces a run wholly or not at all, and that gaps are read."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from coordinator.clock import Background
from coordinator.log.batch import copy_with_offset, iterate_batches, parse_header
from coordinator.log.partition import PartitionLog
from coordinator.log.segment import LogSegment
from tests.own_batches import encode_batch
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.logs import NOW_MS, AtOnce, partition, produced
from tests.unit.coordinator.log.test_checkpoint import FailingAfter

DIRECTORY = Path("/data")
SIZE = produced([b"v"]).size


def opened(disk: MemoryDisk, background: Background | None = None) -> PartitionLog:
    """Open a log with four batches a segment."""
    return partition(
        DIRECTORY, disk=disk, background=background, segment_bytes=4 * SIZE, is_compacted=True
    )


def filled(disk: MemoryDisk, count: int = 14, background: Background | None = None) -> PartitionLog:
    log = opened(disk, background)
    for _ in range(count):
        log.append_produced(produced([b"v"]))
    return log


def offsets(log: PartitionLog) -> list[int]:
    found: list[int] = []
    offset = log.start_offset
    while data := log.read(offset, 2 * SIZE):
        found += [batch.base_offset for batch in iterate_batches(data)]
        offset = found[-1] + 1
    return found


def cleaned(log: PartitionLog, run: list[LogSegment], kept: set[int]) -> LogSegment:
    """Write the segment that has only these offsets of a run."""
    segment = log.compaction.create_cleaned_segment(run[0].base_offset)
    for old in run:
        position = 0
        while position < old.size:
            data = old.read_batches(position, SIZE)
            batch = parse_header(data)
            position += batch.size
            if batch.base_offset in kept:
                segment.append_batch(data, batch.last_offset, batch.max_timestamp_ms)
    return segment


def replace(log: PartitionLog, kept: set[int]) -> None:
    """Replace the second and third closed segment by one."""
    run = log.compaction.list_closed_segments()[1:3]
    outcomes: list[Exception | None] = []
    log.compaction.replace_segments(run, cleaned(log, run, kept), 0, outcomes.append)
    if outcomes[0]:
        raise outcomes[0]


def test_a_replaced_run_is_read_with_its_gaps_now_and_after_a_restart() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    replace(log, {5, 11})
    expected = [0, 1, 2, 3, 5, 11, 12, 13]
    assert offsets(log) == expected
    for offset in range(14):
        found = next(iterate_batches(log.read(offset, 0))).base_offset
        assert found == min(each for each in expected if each >= offset)
    assert not log.compaction.is_replacing
    for after in (disk.kill(), disk.lose_power()):
        assert offsets(opened(after)) == expected


@pytest.mark.parametrize("kept", [{4, 11}, {11}])
def test_a_run_of_which_little_is_left(kept: set[int]) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    replace(log, kept)
    expected = sorted({0, 1, 2, 3, 12, 13} | kept)
    assert offsets(log) == expected
    after = opened(disk.kill())
    assert offsets(after) == expected
    assert after.append_produced(produced()).base_offset == 14


def test_a_replacement_that_fails_or_is_killed_anywhere_is_whole_or_has_not_been() -> None:
    before = list(range(14))
    after = [0, 1, 2, 3, 5, 11, 12, 13]
    seen = set()
    for calls in range(40):
        disk = FailingAfter(1_000)
        log = filled(disk)
        disk.calls = calls
        try:
            replace(log, {5, 11})
        except OSError:
            assert offsets(log) == before
        else:
            assert offsets(log) == after
        for crashed in (disk.kill(), disk.lose_power()):
            again = opened(crashed)
            found = offsets(again)
            old = [each for each in found if each < 12]  # the active segment's are not flushed yet
            assert old in (before[:12], after[:6]), f"{calls=}"
            assert not [path for path in crashed.files if path.suffix == ".cleaned"]
            seen.add(len(old))
            again.close()
            assert offsets(opened(crashed)) == found
    assert seen == {6, 12}


class WithoutRenaming(MemoryDisk):
    """Stands in for a disk on which cleaned files can't be put in place, and journals stay."""

    def rename_path(self, old: Path, new: Path) -> None:
        if old.suffix == ".cleaned":
            raise OSError(errno.EIO, "no")
        super().rename_path(old, new)

    def remove_file(self, path: Path) -> None:
        if path.name == "replacing":
            raise OSError(errno.EIO, "no")
        super().remove_file(path)


def test_a_cleaned_file_stays_as_long_as_a_journal_names_it() -> None:
    disk = WithoutRenaming()
    log = filled(disk)
    with pytest.raises(OSError, match="no"):
        replace(log, {5, 11})
    assert offsets(log) == list(range(14))
    assert offsets(opened(disk.kill())) == [0, 1, 2, 3, 5, 11, 12, 13]


class WithoutEnd(MemoryDisk):
    """Stands in for a disk on which journals can't be removed."""

    def remove_file(self, path: Path) -> None:
        if path.name == "replacing":
            raise OSError(errno.EIO, "no")
        super().remove_file(path)


def test_a_journal_that_stayed_goes_though_nothing_is_appended_any_more() -> None:
    """Check that the journal is removed without an append, as it blocks cleaning and retention."""
    disk = WithoutEnd()
    replace(filled(disk), {5, 11})
    again = opened(disk.kill())
    assert not again.compaction.is_replacing


class Stopping(AtOnce):
    """Stands in for a background thread that does `left` more pieces of work, then none."""

    left: int | None = None
    undone = 0

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        if self.left == 0:
            self.undone += 1
            return
        if self.left is not None:
            self.left -= 1
        super().run_in_background(work, on_done)


def test_a_broker_that_stops_while_a_checkpoint_waits_leaves_nothing_of_the_old_run() -> None:
    """Check that the checkpoint on closing removes the old files first, then the journal."""
    disk = MemoryDisk()
    background = Stopping()
    log = filled(disk, background=background)
    background.left = 1
    replace(log, {5, 9})
    assert background.undone == 1
    log.close()
    assert offsets(opened(disk.kill())) == [0, 1, 2, 3, 5, 9, 12, 13]


def test_the_next_replacement_of_the_same_place_is_never_mixed_up_with_the_last() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    replace(log, {5, 11})
    run = log.compaction.list_closed_segments()[1:2]
    half = cleaned(log, run, set())
    assert half.size == 0
    assert offsets(opened(disk.kill())) == [0, 1, 2, 3, 5, 11, 12, 13]


def test_only_one_replacement_goes_on() -> None:
    disk = FailingAfter(1_000)
    log = filled(disk)
    run = log.compaction.list_closed_segments()[1:3]
    disk.calls = 3  # enough for the decision, not for the checkpoint
    log.compaction.replace_segments(run, cleaned(log, run, {5}), 0, lambda error: None)
    assert log.compaction.is_replacing
    with pytest.raises(ValueError, match="another run"):
        log.compaction.replace_segments(
            log.compaction.list_closed_segments()[:1],
            log.compaction.create_cleaned_segment(0),
            0,
            lambda error: None,
        )


def test_an_empty_batch_keeps_a_producers_last_sequence() -> None:
    disk = MemoryDisk()
    log = opened(disk)
    data = bytearray(
        encode_batch(
            [(b"k", b"v")] * 3,
            timestamp_ms=NOW_MS,
            producer_id=7,
            producer_epoch=1,
            base_sequence=4,
        )
    )
    log.append_internal(bytes(data))
    for _ in range(6):
        log.append_produced(produced())
    empty = bytearray(copy_with_offset(data[:61], 0, None))
    empty[57:61] = bytes(4)  # no records
    empty[17:21] = crc32c(bytes(empty[21:])).to_bytes(4, "big")
    run = log.compaction.list_closed_segments()[:1]
    segment = log.compaction.create_cleaned_segment(0)
    segment.append_batch(empty, 2, NOW_MS)
    rest = run[0].read_batches(len(data), 1 << 20)
    for batch in iterate_batches(rest):
        segment.append_batch(bytes(batch.data), batch.last_offset, batch.max_timestamp_ms)
    log.compaction.replace_segments(run, segment, 0, lambda error: None)
    for name in [path for path in disk.files if path.name.endswith(("checkpoint", "snapshot"))]:
        del disk.files[name]  # so that everything is read again
    again = opened(disk.kill())
    known = again.producers.find_producer(7)
    assert known is not None
    assert (known.epoch, known.batches[-1].last_sequence) == (1, 6)
    assert again.end_offset == log.end_offset
