"""Test the markers of the broker's coordinator after markers that an admin has written."""

from __future__ import annotations

import pytest

from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.add_partitions import AddPartitionsCommand
from coordinator.transactions.end_transaction import EndTransactionCommand
from coordinator.transactions.state import V0, V2
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import produced
from tests.unit.coordinator.transactions.test_producer_ids_stay import loaded


@pytest.mark.parametrize("version", [V0, V2])
def test_a_commit_is_seen_though_a_marker_of_a_higher_coordinator_epoch_was_written(
    version: int,
) -> None:
    clock = FakeClock()
    broker = loaded(MemoryDisk(), clock)
    log = broker.topics.create_topic("words", 1).partitions[0]
    transactions = broker.coordinators.transactions
    owner = transactions.init_producer_id("app", 60_000, -1, -1)
    partition = ("words", 0)
    ended = TransactionEnded(owner.producer_id, owner.producer_epoch, False, coordinator_epoch=5)
    broker.coordinators.write_marker(partition, ended)
    who = ("app", owner.producer_id, owner.producer_epoch)
    transactions.add_partitions(AddPartitionsCommand(*who, frozenset({partition}), version=version))
    log.append_produced(
        produced(producer_id=owner.producer_id, epoch=owner.producer_epoch, transactional=True)
    )
    transactions.end_transaction(EndTransactionCommand(*who, True, version=version))
    clock.advance(0)
    assert transactions.markers.counters.given_up == 0
    assert log.last_stable_offset == log.end_offset == 3
