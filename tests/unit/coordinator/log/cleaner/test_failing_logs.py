"""A log that can't be cleaned, or looked at, keeps no other from being cleaned."""

from __future__ import annotations

import errno
from pathlib import Path

from coordinator.log.batch import encode_batch
from coordinator.log.cleaner.checkpoint import read_cleaned
from coordinator.log.disk import File
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.cleaner.worlds import (
    DATA,
    World,
    filled,
    records,
    write,
)


def with_two_logs(disk: MemoryDisk) -> World:
    """Opened again, with a topic `t` and another that are worth cleaning."""
    world = World(disk)
    filled(world)
    other = world.create("other")
    for i in range(50):
        write(other, b"key", b"value-%d" % i)
    world.topics.close()
    disk.locked.clear()
    return World(disk, log_cleaner_backoff_ms=100)


class WithoutDescriptors(MemoryDisk):
    """For a while, files of one partition can't be opened."""

    wanted = False

    def open(self, path: Path) -> File:
        if self.wanted and path.parent.name == "t-0":
            raise OSError(errno.EMFILE, "Too many open files")
        return super().open(path)


def test_a_log_that_can_not_be_looked_at_for_a_while_stops_no_cleaning() -> None:
    disk = WithoutDescriptors()
    again = with_two_logs(disk)
    disk.wanted = True
    again.cleaner.start()
    again.clock.advance(1_000)
    assert {topic for topic, _ in read_cleaned(disk, DATA)} == {"other"}
    disk.wanted = False
    again.clock.advance(1_000)
    assert {topic for topic, _ in read_cleaned(disk, DATA)} == {"other", "t"}


def test_a_log_whose_file_was_cut_keeps_no_other_from_being_cleaned() -> None:
    disk = MemoryDisk()
    again = with_two_logs(disk)
    del disk.files[DATA / "t-0" / f"{0:020}.log"].content[30:]
    again.cleaner.start()
    again.clock.advance(2_000)
    assert {topic for topic, _ in read_cleaned(disk, DATA)} == {"other"}


class Unwritable(MemoryDisk):
    """Nothing can be put beside the log of one partition."""

    wanted = True

    def open(self, path: Path) -> File:
        if self.wanted and path.parent.name == "t-0" and path.suffix == ".cleaned":
            raise OSError(errno.EIO, "no")
        return super().open(path)


def test_a_log_that_can_not_be_cleaned_for_a_while_keeps_no_other_from_it() -> None:
    disk = Unwritable()
    world = World(disk, log_cleaner_backoff_ms=100)
    filled(world, count=500)
    other = world.create("other")
    for i in range(20):
        write(other, b"key-%d" % i, b"value-%d" % i)
    for i in range(20):
        write(other, b"key-%d" % i, b"value-%d" % i)
    world.cleaner.start()
    world.clock.advance(2_000)
    assert {topic for topic, _ in read_cleaned(disk, DATA)} == {"other"}
    disk.wanted = False
    world.clock.advance(2_000)
    assert {topic for topic, _ in read_cleaned(disk, DATA)} == {"other", "t"}


def test_a_batch_that_holds_no_records_keeps_its_log_from_being_cleaned_and_no_other() -> None:
    world = World(MemoryDisk())
    log = filled(world)
    data = bytearray(encode_batch([(b"k", b"v")], timestamp_ms=1))
    data[61:] = b"\xff" * len(data[61:])
    log.append_internal(bytes(data))
    for i in range(20):
        write(log, b"k", b"%d" % i)
    other = world.create("u")
    for i in range(20):
        write(other, b"k", b"%d" % i)
    before = list(records(other))
    world.cleaner.clean_now()
    assert len(list(records(other))) < len(before)
    assert ("t", 0) not in read_cleaned(world.disk, DATA)
    assert ("u", 0) in read_cleaned(world.disk, DATA)
