"""Test that a whole broker runs on a disk in memory, so that the disk is really an argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.broker import Broker
from coordinator.config import BrokerConfig
from coordinator.log.batch import iterate_batches
from coordinator.log.data_directory import UnusableDataDirectory
from coordinator.log.partition import PartitionLog
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import produced

DIRECTORY = Path("/nowhere/data")


def loaded(disk: MemoryDisk) -> Broker:
    clock = FakeClock()
    broker = Broker(BrokerConfig(data_dir=DIRECTORY), clock, clock, disk)
    broker.start_without_listening()
    return broker


def words(broker: Broker) -> PartitionLog:
    topic = broker.topics.get("words") or broker.topics.create_topic("words", 1)
    return topic.partitions[0]


def values(log: PartitionLog) -> list[bytes | None]:
    found = iterate_batches(log.read(0, 1 << 20))
    return [record.value for batch in found for record in batch.iterate_records()]


def test_a_broker_loads_and_closes_without_touching_the_machine_s_disk() -> None:
    disk = MemoryDisk()
    broker = loaded(disk)
    words(broker).append_produced(produced([b"a"]))
    broker.close()
    assert values(words(loaded(disk))) == [b"a"]
    assert not DIRECTORY.parent.exists()


def test_a_killed_broker_finds_what_it_wrote_and_the_directory_free() -> None:
    disk = MemoryDisk()
    broker = loaded(disk)
    words(broker).append_produced(produced([b"a"]))
    with pytest.raises(UnusableDataDirectory, match="another broker"):
        loaded(disk)
    after = loaded(disk.kill())
    assert values(words(after)) == [b"a"]
    assert after.services.cluster_id == broker.services.cluster_id


def test_a_topic_that_was_made_is_there_when_power_comes_back() -> None:
    disk = MemoryDisk()
    words(loaded(disk))
    after = loaded(disk.lose_power())
    topic = after.topics.get("words")
    assert topic is not None
    assert topic.partitions[0].end_offset == 0
