"""Test that stores without a changelog take part in the transaction but write no records."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams import Store
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError, TaskCorrupted
from tests.unit.streams.runtime.world import CHANGELOG, World, build_counting_topology

UNLOGGED = [Store.in_memory("c", logged=False), Store.persistent("c", logged=False)]


@pytest.mark.parametrize("store", UNLOGGED, ids=["memory", "rocksdb"])
def test_a_store_without_a_changelog_rolls_back_with_its_transaction(
    tmp_path: Path, store: Store
) -> None:
    world = World(build_counting_topology(store), tmp_path)
    world.load("a", "b")
    world.script.fail("producer.commit_transaction", OutcomeUnknown("no answer"))
    world.run_until(world.consumed)
    assert world.read_counts() == {"k": [2]}
    assert world.kafka.logs[Partition(CHANGELOG, 0)].high_watermark == 0
    assert world.loop.counters.restored_records == 0


def read_count(world: World) -> int:
    """Return the count of the key k on disk, once the tasks are closed."""
    disk = RocksDisk(world.directory.build_store_path("0_0", "c"))
    ((_, stored),) = disk.range(None, None)
    disk.close()
    return int.from_bytes(stored[8:], "big")


def test_a_persistent_store_without_a_changelog_is_on_disk_after_the_commit(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    world.load("a", "b")
    world.run_until(world.consumed)
    disk = RocksDisk(world.directory.build_store_path("0_0", "c"))
    assert [(key, value[8:]) for key, value in disk.range(None, None)] == [
        (b"k", (2).to_bytes(8, "big"))
    ]
    disk.close()


def test_a_store_without_a_changelog_that_is_damaged_is_refused_and_left_as_it_is(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    world.load("a", "b")
    while not world.consumed():
        world.turn()
    world.load("c")
    world.script.fail("producer.commit_transaction", TaskCorrupted("0_0", ["c"], "planted"))
    with pytest.raises(StreamsError, match=r"'c' has no changelog .* left as it is: planted"):
        world.run_until(world.consumed)
    assert read_count(world) == 2


def test_a_store_without_a_changelog_of_another_layout_is_refused_and_left_as_it_is(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    path = world.directory.build_store_path("0_0", "c")
    disk = RocksDisk(path)
    disk.write_changes({b"k": b"v"}, StoreCheckpoint(0, "", layout="windows in segments of 5 ms"))
    disk.close()
    world.load("a")
    with pytest.raises(StreamsError, match=f"left as it is: its kind, .* was changed .*{path}"):
        world.run_until(world.consumed)
    disk = RocksDisk(path)
    assert list(disk.range(None, None)) == [(b"k", b"v")]
    disk.close()


def test_a_damaged_store_without_a_changelog_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    path = world.directory.build_store_path("0_0", "c")
    RocksDisk(path).close()
    (path / "CURRENT").write_text("nothing\n")
    world.load("a")
    with pytest.raises(StreamsError, match=f"left as it is: store 'c' in {path} is damaged"):
        world.run_until(world.consumed)
    assert (path / "CURRENT").read_text() == "nothing\n"
