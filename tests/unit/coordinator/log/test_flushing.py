"""Test which records survive a loss of power, and what a failed flush leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import Code, Refused
from coordinator.log.batch import iterate_batches
from coordinator.log.disk import File
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import partition, produced
from tests.unit.coordinator.log.test_any_history import Queue

DIRECTORY = Path("/data")
LOG = DIRECTORY / "t-0" / f"{0:020}.log"


class FailingFlush(MemoryDisk):
    """Stands in for a disk on which flushes of `.log` files fail while `failing`."""

    failing = False

    def open_file(self, path: Path) -> File:
        file = super().open_file(path)
        flush = file.flush

        def failing_flush() -> None:
            if self.failing and path.suffix == ".log":
                raise OSError(5, "Input/output error")
            flush()

        file.flush = failing_flush  # type: ignore[method-assign]
        return file


def after_power_loss(disk: MemoryDisk) -> int:
    end_offset = partition(DIRECTORY, disk=disk.lose_power()).end_offset
    disk.is_cut_off = False  # the broker goes on; this is a look at the disk
    return end_offset


def refused(log: PartitionLog) -> Code:
    with pytest.raises(Refused) as found:
        log.append_produced(produced())
    return found.value.code


@pytest.mark.parametrize(("flush_messages", "durable"), [(1, 7), (3, 6), (1_000, 0)])
def test_flush_messages_bounds_what_a_loss_of_power_takes(
    flush_messages: int, durable: int
) -> None:
    disk = MemoryDisk()
    log = partition(DIRECTORY, disk=disk, flush_messages=flush_messages)
    for _ in range(7):
        log.append_produced(produced())
    assert after_power_loss(disk) == durable


def test_a_new_segment_is_found_after_a_loss_of_power() -> None:
    disk = MemoryDisk()
    never = Queue()  # no checkpoint is ever written
    size = produced().size
    log = partition(
        DIRECTORY, disk=disk, background=never, flush_messages=1, segment_bytes=2 * size
    )
    for _ in range(7):
        log.append_produced(produced())
    assert after_power_loss(disk) == 7


def test_flush_ms_bounds_for_how_long_a_batch_is_not_flushed() -> None:
    disk = MemoryDisk()
    clock = FakeClock()
    log = partition(DIRECTORY, disk=disk, clock=clock, flush_ms=500)
    log.append_produced(produced())
    clock.advance(400)
    log.append_produced(produced())
    clock.advance(100)
    log.append_produced(produced())
    assert after_power_loss(disk) == 2
    clock.advance(500)
    assert after_power_loss(disk) == 3
    assert clock.scheduled() == 0


def test_a_failed_flush_fails_the_append_and_changes_nothing() -> None:
    disk = FailingFlush()
    clock = FakeClock()
    log = partition(DIRECTORY, disk=disk, clock=clock, flush_messages=1)
    log.append_produced(produced([b"a"], producer_id=7))
    disk.failing = True
    for _ in range(3):
        assert refused(log) == Code.KAFKA_STORAGE_ERROR
        clock.advance(1_000)
    assert (log.end_offset, log.last_stable_offset) == (1, 1)
    assert len(list(iterate_batches(log.read(0, 1 << 20)))) == 1  # reads are served
    assert partition(DIRECTORY, disk=disk.kill()).end_offset == 1


def test_what_was_not_flushed_is_written_again_before_anything_is_appended() -> None:
    disk = FailingFlush()
    clock = FakeClock()
    log = partition(DIRECTORY, disk=disk, clock=clock)
    for i in range(5):
        log.append_produced(produced([b"v"], producer_id=7, sequence=i))
    disk.failing = True
    log.checkpoints.save_checkpoint_in_background()
    assert refused(log) == Code.KAFKA_STORAGE_ERROR
    disk.failing = False
    assert refused(log) == Code.KAFKA_STORAGE_ERROR  # not tried at once: it may be long
    clock.advance(1_000)
    written = disk.files[LOG].writes
    assert log.append_produced(produced([b"v"], producer_id=7, sequence=5)).base_offset == 5
    assert disk.files[LOG].writes == written + 2  # all that was suspect, and the new batch
    assert after_power_loss(disk) == 5


def test_suspect_data_that_has_changed_is_not_flushed_as_if_it_were_good() -> None:
    disk = FailingFlush()
    clock = FakeClock()
    log = partition(DIRECTORY, disk=disk, clock=clock)
    log.append_produced(produced())
    log.append_produced(produced())
    disk.failing = True
    log.checkpoints.save_checkpoint_in_background()
    disk.failing = False
    disk.files[LOG].content[-1] ^= 1  # the system read back what it couldn't write
    for _ in range(2):
        with pytest.raises(Refused, match="damaged at byte"):
            log.append_produced(produced())
        clock.advance(1_000)
    assert log.end_offset == 2


def test_a_full_disk_refuses_appends_until_there_is_room() -> None:
    disk = MemoryDisk()
    log = partition(DIRECTORY, disk=disk, flush_messages=2)
    log.append_produced(produced())
    disk.bytes_left = 10
    for _ in range(2):
        assert refused(log) == Code.KAFKA_STORAGE_ERROR
        assert log.end_offset == 1
    log.checkpoints.save_checkpoint_in_background()  # no room for this either
    assert log.checkpoints.has_unsaved
    disk.bytes_left = 1 << 20
    assert log.append_produced(produced()).base_offset == 1
    log.checkpoints.save_checkpoint_in_background()
    assert not log.checkpoints.has_unsaved
    assert after_power_loss(disk) == 2


def test_what_a_broker_finds_at_its_start_is_flushed_as_if_it_had_written_it() -> None:
    """Check that a start flushes batches found in the log, for a producer may send them again.

    A broker that is killed between a write and its flush leaves such a batch.
    """
    disk = MemoryDisk()
    clock = FakeClock()
    partition(DIRECTORY, disk=disk).append_produced(produced())
    partition(DIRECTORY, disk=disk, clock=clock, flush_ms=500)
    assert after_power_loss(disk) == 0
    clock.advance(500)
    assert after_power_loss(disk) == 1

    disk = MemoryDisk()
    partition(DIRECTORY, disk=disk).append_produced(produced())
    partition(DIRECTORY, disk=disk, flush_messages=1)
    assert after_power_loss(disk) == 1
