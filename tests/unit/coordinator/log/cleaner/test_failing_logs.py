"""Test that a log that fails to be cleaned or read keeps no other from being cleaned."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.log.cleaner.cleanable_section import find_cleanable_section
from coordinator.log.cleaner.cleaning import LogCleaningAborted, clean_log
from coordinator.log.cleaner.offset_checkpoint import read_first_dirty_offsets
from coordinator.log.cleaner.steps import run_to_completion
from coordinator.log.disk import BrokerDisk, File
from coordinator.shard import loading
from tests.own_batches import encode_batch
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.log.cleaner.worlds import (
    CONFIGS,
    DATA,
    World,
    filled,
    records,
    write,
)


def with_two_logs(disk: MemoryDisk) -> World:
    """Reopen the topics with `t` and another topic that are due for cleaning."""
    world = World(disk)
    filled(world)
    other = world.create("other")
    for i in range(50):
        write(other, b"key", b"value-%d" % i)
    world.topics.close()
    disk.locked.clear()
    return World(disk, log_cleaner_backoff_ms=100)


class WithoutDescriptors(MemoryDisk):
    """Stands in for a disk that, for a while, can't open files of one partition."""

    wanted = False

    def open_file(self, path: Path) -> File:
        if self.wanted and path.parent.name == "t-0":
            raise OSError(errno.EMFILE, "Too many open files")
        return super().open_file(path)


def test_a_log_that_can_not_be_looked_at_for_a_while_stops_no_cleaning() -> None:
    disk = WithoutDescriptors()
    again = with_two_logs(disk)
    disk.wanted = True
    again.cleaner.start_cleaning()
    again.clock.advance(1_000)
    assert {topic for topic, _ in read_first_dirty_offsets(disk, DATA)} == {"other"}
    disk.wanted = False
    again.clock.advance(1_000)
    assert {topic for topic, _ in read_first_dirty_offsets(disk, DATA)} == {"other", "t"}


def test_a_log_whose_file_was_cut_keeps_no_other_from_being_cleaned() -> None:
    disk = MemoryDisk()
    again = with_two_logs(disk)
    del disk.files[DATA / "t-0" / f"{0:020}.log"].content[30:]
    again.cleaner.start_cleaning()
    again.clock.advance(2_000)
    assert {topic for topic, _ in read_first_dirty_offsets(disk, DATA)} == {"other"}


class Unwritable(MemoryDisk):
    """Stands in for a disk on which nothing can be written beside the log of one partition."""

    wanted = True

    def open_file(self, path: Path) -> File:
        if self.wanted and path.parent.name == "t-0" and path.suffix == ".cleaned":
            raise OSError(errno.EIO, "no")
        return super().open_file(path)


def test_a_log_that_can_not_be_cleaned_for_a_while_keeps_no_other_from_it() -> None:
    disk = Unwritable()
    world = World(disk, log_cleaner_backoff_ms=100)
    filled(world, count=500)
    other = world.create("other")
    for i in range(20):
        write(other, b"key-%d" % i, b"value-%d" % i)
    for i in range(20):
        write(other, b"key-%d" % i, b"value-%d" % i)
    world.cleaner.start_cleaning()
    world.clock.advance(2_000)
    assert {topic for topic, _ in read_first_dirty_offsets(disk, DATA)} == {"other"}
    disk.wanted = False
    world.clock.advance(2_000)
    assert {topic for topic, _ in read_first_dirty_offsets(disk, DATA)} == {"other", "t"}


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
    world.cleaner.clean_regardless_of_ratio()
    assert len(list(records(other))) < len(before)
    assert ("t", 0) not in read_first_dirty_offsets(world.disk, DATA)
    assert ("u", 0) in read_first_dirty_offsets(world.disk, DATA)


def log_files(disk: BrokerDisk) -> dict[Path, bytes]:
    assert isinstance(disk, MemoryDisk)
    return {
        path: bytes(inode.content)
        for path, inode in disk.files.items()
        if path.parent.name == "t-0" and path.suffix not in (".index", ".timeindex", ".snapshot")
    }


@pytest.mark.parametrize("steps_before", [1, 3, 6, 10])
def test_a_cleaning_under_way_leaves_a_log_that_is_protected_meanwhile(steps_before: int) -> None:
    world = World(MemoryDisk())
    log = filled(world, count=60, keys=5)
    before = log_files(world.disk)
    steps = clean_log(log, find_cleanable_section(log, world.clock.now_ms()), 10_000, 0)
    for _ in range(steps_before):
        assert next(steps) is None
    log.refuse_writes_until_repaired("planned")
    with pytest.raises(LogCleaningAborted, match="planned"):
        run_to_completion(steps)
    assert log_files(world.disk) == before


class Later:
    """Stands in for the thread of long calls: runs them when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        self.waiting.append((work, on_done))

    def run_next(self) -> None:
        work, done = self.waiting.pop(0)
        work()
        done(None)

    def close(self) -> None:
        pass


def test_a_run_is_not_replaced_in_a_log_that_is_protected_while_the_journal_is_written() -> None:
    background = Later()
    world = World(MemoryDisk(), background=background)
    log = filled(world, count=60, keys=5)
    while background.waiting:
        background.run_next()
    before = log_files(world.disk)
    run = log.compaction.list_closed_segments()[:2]
    new = log.compaction.create_cleaned_segment(run[0].base_offset)
    outcome: list[Exception | None] = []
    log.compaction.replace_segments(run, new, 10, outcome.append)
    log.refuse_writes_until_repaired("planned")
    background.run_next()
    [error] = outcome
    assert error is not None
    assert "planned" in str(error)
    assert log.compaction.list_closed_segments()[:2] == run
    assert log_files(world.disk) == before


def test_nothing_is_cleaned_before_the_coordinators_have_read_their_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(tmp_path)
    client.broker.topics.create_topic("t", 1, CONFIGS)
    for value in range(40):
        write(client.partition("t"), b"key", b"%d" % value)
    client.broker.close()
    monkeypatch.setattr(loading, "QUICK_MS", -1)
    client = Client(tmp_path)
    log, cleaner = client.partition("t"), client.broker.cleaner
    assert not run_to_completion(cleaner._try_clean_dirtiest_log())
    assert log.compaction.first_dirty_offset == 0
    while not client.broker.coordinators.is_loaded:
        client.scheduler.pending(0)[-1]()
    assert run_to_completion(cleaner._try_clean_dirtiest_log())
    client.broker.close()
