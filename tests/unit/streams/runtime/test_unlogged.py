"""Test that stores without a changelog take part in the transaction but write no records."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.rocksdb import RocksDisk
from streams import Store
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, TaskCorrupted
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


def test_a_persistent_store_without_a_changelog_is_on_disk_after_the_commit(
    tmp_path: Path,
) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    world.load("a", "b")
    world.run_until(world.consumed)
    disk = RocksDisk(world.directory.store_path("0_0", "c"))
    assert [(key, value[8:]) for key, value in disk.range(None, None)] == [
        (b"k", (2).to_bytes(8, "big"))
    ]
    disk.close()


def test_a_store_without_a_changelog_that_is_damaged_is_emptied_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(build_counting_topology(UNLOGGED[1]), tmp_path)
    world.load("a", "b")
    world.script.fail("producer.commit_transaction", TaskCorrupted("0_0", ["c"], "planted"))
    world.run_until(world.consumed)
    assert world.read_counts() == {"k": [2]}
    assert "store 'c' is emptied: it has no changelog" in caplog.text
