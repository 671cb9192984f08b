"""No producer id is ever given twice, whatever a broker's logs are told to lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.broker import Broker
from coordinator.config import BrokerConfig
from coordinator.coordinators import METADATA_TOPIC
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import AtOnce

DATA = Path("/data")


def loaded(disk: MemoryDisk, clock: FakeClock, **settings: object) -> Broker:
    config = BrokerConfig.from_settings(DATA, settings)
    broker = Broker(config, clock, clock, disk, background=AtOnce())
    broker.load()
    return broker


def producer_id(broker: Broker) -> int:
    return broker.coordinators.transactions.init_producer_id(None, 1_000, -1, -1).producer_id


@pytest.mark.parametrize("was_made_by_an_older_broker", [False, True])
def test_retention_for_all_topics_leaves_the_producer_ids_alone(
    was_made_by_an_older_broker: bool,
) -> None:
    disk, clock = MemoryDisk(), FakeClock()
    broker = loaded(disk, clock)
    if was_made_by_an_older_broker:
        broker.topics.alter(METADATA_TOPIC, {"retention.ms": "-1"})
    first = producer_id(broker)
    broker.close()
    for _ in range(2):
        broker = loaded(disk, clock, **{"log.retention.bytes": 0, "log.retention.ms": 1})
        clock.advance(400_000)  # retention is looked at every 300 s
        broker.close()
    assert producer_id(loaded(disk, clock)) > first
