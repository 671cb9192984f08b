"""Provide topics on a disk in memory with a cleaner that tests drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from coordinator.clock import Background
from coordinator.config import BrokerConfig
from coordinator.log.batch import iterate_batches, parse_header
from coordinator.log.cleaner.cleaner import LogCleaner
from coordinator.log.data_directory import DataDirectory
from coordinator.log.disk import BrokerDisk
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import TopicRegistry
from tests.own_batches import encode_batch
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import AtOnce

DATA = Path("/data")
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "400",
    "min.cleanable.dirty.ratio": "0.01",
}
PID = 7


class World:
    """Represents the topics of a broker and its cleaner."""

    def __init__(
        self,
        disk: BrokerDisk,
        clock: FakeClock | None = None,
        background: Background | None = None,
        **configs: Any,
    ) -> None:
        self.disk = disk
        self.clock = clock or FakeClock()
        host = BrokerHost(disk, self.clock, self.clock, background or AtOnce())
        self.config = BrokerConfig(data_dir=DATA, **configs)
        storage = DataDirectory(DATA, 1, UUID(int=1), disk)
        ids = iter(range(100, 200))
        self.topics = TopicRegistry(storage, self.config, host, lambda: UUID(int=next(ids)))
        self.topics.load_topics()
        self.cleaner = LogCleaner(self.topics, DATA, host, lambda: self.config)

    def create(self, name: str = "t", configs: Mapping[str, str] = {}) -> PartitionLog:
        return self.topics.create_topic(name, 1, {**CONFIGS, **configs}).partitions[0]

    @property
    def log(self) -> PartitionLog:
        found = self.topics.find_partition("t", 0)
        assert found is not None
        return found


def write(log: PartitionLog, key: bytes, value: bytes | None, **producer: Any) -> None:
    data = encode_batch([(key, value)], timestamp_ms=FakeClock().now_ms(), **producer)
    log.append_produced(parse_header(data))


def filled(world: World, count: int = 50, keys: int = 5, **configs: str) -> PartitionLog:
    log = world.create(configs=configs)
    for i in range(count):
        write(log, b"key-%d" % (i % keys), b"value-%d" % i)
    return log


def records(log: PartitionLog) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    offset = log.start_offset
    while data := log.read(offset, 1_000):
        for batch in iterate_batches(data):
            assert batch.is_intact()
            offset = batch.last_offset + 1
            if not batch.is_control:
                for record in batch.iterate_records():
                    yield record.offset, record.key, record.value


def values(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in records(log)}


def has_each_key_once_where_it_is_clean(log: PartitionLog) -> bool:
    keys = [key for offset, key, _ in records(log) if offset < log.compaction.first_dirty_offset]
    return len(keys) == len(set(keys))
