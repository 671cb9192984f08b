"""Test that the cleaner uses only a first dirty offset that belongs to this very log.

Below the offset of another log it would keep the older value of a key, while the tombstone behind
it goes at its delete horizon: a deleted key would come back.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from coordinator.log.cleaner.cleanable_section import find_cleanable_section
from coordinator.log.cleaner.offset_checkpoint import (
    FILE_NAME,
    read_first_dirty_offsets,
    write_first_dirty_offsets,
)
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.cleaner.worlds import (
    DATA,
    World,
    filled,
    has_each_key_once_where_it_is_clean,
    values,
    write,
)

RETENTION_MS = 1_000
CONFIGS = {"delete.retention.ms": str(RETENTION_MS)}


class WithoutCheckpoint(MemoryDisk):
    """Stands in for a disk that can't replace the cleaner's checkpoint while `is_failing`."""

    is_failing = False

    def replace_file(self, path: Path, content: bytes) -> None:
        if self.is_failing and path.name == FILE_NAME:
            raise OSError(28, "No space left on device")
        super().replace_file(path, content)


def write_history_with_a_deleted_key(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """Set and delete a key below offset 20, write up to 100; return what is alive at 20."""
    write(log, b"deleted", b"old")
    for i in range(100):
        key = b"key-%d" % (i % 10)
        if i == 10:
            write(log, b"deleted", None)
        write(log, key, b"%d" % i)
    return {b"key-%d" % i: b"%d" % (90 + i) for i in range(10)}


def clean_past_the_delete_horizon(world: World) -> None:
    """Clean, wait until the tombstones may go, and clean the records written meanwhile."""
    for _ in range(3):
        world.cleaner.clean_regardless_of_ratio()
        world.clock.advance(2 * RETENTION_MS)
        for i in range(20):
            write(world.log, b"later", b"%d" % i)


def alive(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {
        key: value for key, value in values(log).items() if value is not None and key != b"later"
    }


def delete_topic(world: World) -> None:
    topic = world.topics.get("t")
    assert topic is not None
    world.topics.delete_topic(topic)


def restarted(disk: MemoryDisk) -> World:
    return World(disk.kill())


@pytest.mark.parametrize("is_made_again_before_the_kill", [False, True])
def test_a_deleted_key_stays_deleted_in_a_topic_of_an_older_ones_name(
    is_made_again_before_the_kill: bool,
) -> None:
    disk = WithoutCheckpoint()
    world = World(disk)
    filled(world, count=90)
    world.cleaner.clean_regardless_of_ratio()
    disk.is_failing = True  # or the broker is killed before the file without the topic is there
    delete_topic(world)
    if is_made_again_before_the_kill:
        world.create(configs=CONFIGS)
        again = restarted(disk)
    else:
        again = restarted(disk)
        again.create(configs=CONFIGS)
    expected = write_history_with_a_deleted_key(again.log)
    clean_past_the_delete_horizon(again)
    assert alive(again.log) == expected


def test_a_deleted_key_stays_deleted_if_a_namesake_is_cleaned_after_its_deletion() -> None:
    world = World(MemoryDisk())
    filled(world, count=90)
    world.cleaner.clean_regardless_of_ratio()
    delete_topic(world)
    world.create(configs=CONFIGS)
    expected = write_history_with_a_deleted_key(world.log)
    clean_past_the_delete_horizon(world)
    assert alive(world.log) == expected


def test_a_deleted_key_stays_deleted_in_files_that_take_the_place_of_others() -> None:
    """Check the procedure of docs/broker.md: the topic id stays, the files are another's."""
    source = World(MemoryDisk())
    source.create(configs=CONFIGS)
    expected = write_history_with_a_deleted_key(source.log)
    source.topics.close()
    disk = MemoryDisk()
    world = World(disk)
    filled(world, 90, 5, **CONFIGS)
    world.cleaner.clean_regardless_of_ratio()
    world.topics.close()
    target = disk.kill()
    directory = DATA / "t-0"
    for name in target.list_names(directory):
        if name != "partition.metadata":
            target.remove_file(directory / name)
    assert isinstance(source.disk, MemoryDisk)
    for path, inode in source.disk.files.items():
        if path.parent == directory and path.name != "partition.metadata":
            target.files[path] = inode
    again = World(target)
    assert again.log.end_offset == 102
    clean_past_the_delete_horizon(again)
    assert alive(again.log) == expected


def test_a_deleted_key_stays_deleted_where_a_log_was_cut_and_grew_again() -> None:
    """Check a log that was restored in part beside the checkpoint of a longer one."""
    disk = MemoryDisk()
    world = World(disk)
    filled(world, 90, 5, **CONFIGS)
    world.cleaner.clean_regardless_of_ratio()
    world.topics.close()
    target = disk.kill()
    for path in [each for each in target.files if each.suffix in (".log", ".index", ".timeindex")]:
        if path.parent == DATA / "t-0":
            target.remove_file(path)
    again = World(target)
    assert again.log.end_offset == 0
    expected = write_history_with_a_deleted_key(again.log)
    clean_past_the_delete_horizon(again)
    assert alive(again.log) == expected


def test_a_line_of_another_broker_is_not_believed() -> None:
    disk = MemoryDisk()
    disk.make_directory(DATA)
    write_first_dirty_offsets(disk, DATA, {("t", 0): 60})
    world = World(disk)
    world.create(configs=CONFIGS)
    expected = write_history_with_a_deleted_key(world.log)
    clean_past_the_delete_horizon(world)
    assert alive(world.log) == expected


def test_a_log_is_not_cleaned_again_after_a_restart() -> None:
    for restart in (MemoryDisk.kill, MemoryDisk.lose_power):
        disk = MemoryDisk()
        world = World(disk)
        filled(world)
        assert world.cleaner.clean_regardless_of_ratio() == 1
        cleaned_to = world.log.compaction.active_base_offset
        again = World(restart(disk))
        section = find_cleanable_section(again.log, FakeClock().now_ms())
        assert section.first_dirty_offset == cleaned_to
        assert section.dirty_bytes == 0
        assert again.cleaner.clean_regardless_of_ratio() == 0


def test_a_log_without_a_checkpoint_that_can_be_believed_is_cleaned_from_its_start() -> None:
    disk = MemoryDisk()
    world = World(disk)
    filled(world)
    assert world.cleaner.clean_regardless_of_ratio() == 1
    after = disk.kill()
    after.remove_file(DATA / "t-0" / "checkpoint")
    again = World(after)
    assert find_cleanable_section(again.log, FakeClock().now_ms()).first_dirty_offset == 0


def test_the_file_for_others_names_no_topic_that_has_gone() -> None:
    disk = WithoutCheckpoint()
    world = World(disk)
    filled(world)
    other = world.create("other")
    for i in range(50):
        write(other, b"key", b"%d" % i)
    assert world.cleaner.clean_regardless_of_ratio() == 2
    disk.is_failing = True
    delete_topic(world)
    after = disk.kill()
    assert read_first_dirty_offsets(after, DATA).keys() == {("t", 0), ("other", 0)}
    again = World(after)
    again.cleaner.start_cleaning()
    assert read_first_dirty_offsets(after, DATA) == {
        ("other", 0): other.compaction.active_base_offset
    }


def test_a_log_stays_clean_whether_the_file_for_others_can_be_written_or_not() -> None:
    disk = WithoutCheckpoint()
    world = World(disk)
    filled(world)
    disk.is_failing = True
    assert world.cleaner.clean_regardless_of_ratio() == 1
    assert world.cleaner.clean_regardless_of_ratio() == 0
    assert read_first_dirty_offsets(disk, DATA) == {}
    assert World(disk.kill()).cleaner.clean_regardless_of_ratio() == 0


@pytest.mark.parametrize("seed", range(10))
def test_in_any_history_of_topics_of_one_name_what_is_deleted_stays_deleted(seed: int) -> None:
    rng = Random(seed)
    disk = WithoutCheckpoint()
    world = World(disk)
    configs = {"delete.retention.ms": "0"}
    world.create(configs=configs)
    model: dict[bytes | None, bytes | None] = {}
    for step in range(100):
        for _ in range(rng.randrange(10)):
            key = b"key-%d" % rng.randrange(8)
            value = None if rng.random() < 0.3 else b"%d" % step
            write(world.log, key, value)
            model.pop(key, None)
            if value is not None:
                model[key] = value
        chance = rng.random()
        if chance < 0.7:
            world.cleaner.clean_regardless_of_ratio()
        elif chance < 0.85:
            disk = killed(disk)
            world = World(disk)
        elif chance < 0.95:
            disk.is_failing = True
            delete_topic(world)
            world.create(configs=configs)
            disk = killed(disk)
            world = World(disk)
            model = {}
        assert alive(world.log) == model, f"{seed=} {step=}"
        assert has_each_key_once_where_it_is_clean(world.log), f"{seed=} {step=}"


def killed(disk: WithoutCheckpoint) -> WithoutCheckpoint:
    """Return the disk that the next broker finds after a kill."""
    after = WithoutCheckpoint()
    after.__dict__.update(disk.kill().__dict__)
    return after
