"""Test that EndTxn is answered before its markers are written, and that nobody can tell.

The outcome stands once PrepareCommit is in the log, so that the answer doesn't wait for markers.
They are written before anything more is read from clients.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator import EmbeddedBroker
from coordinator.errors import Code
from coordinator.transactions.end_transaction import EndTransactionCommand
from coordinator.transactions.state import ProducerIdAndEpoch, TransactionStatus
from tests.conformance.calls import READ_COMMITTED
from tests.conformance.wire import Api, Client
from tests.unit.coordinator.world import World

PARTITIONS = 20
TRANSACTIONS = 100
WORDS = ("words", 0)


@pytest.fixture
def world() -> World:
    return World()


def end_without_markers(world: World, owner: ProducerIdAndEpoch) -> None:
    """End a transaction as EndTxn does up to its answer."""
    command = EndTransactionCommand("app", owner.producer_id, owner.producer_epoch, True)
    assert world.transactions.end_transaction(command) == owner


def status(world: World) -> TransactionStatus:
    transaction = world.transactions.find_transaction("app")
    assert transaction is not None
    return transaction.status


def test_the_markers_are_written_after_the_answer(world: World) -> None:
    owner = world.init()
    world.add(owner)
    end_without_markers(world, owner)
    assert status(world) is TransactionStatus.PREPARE_COMMIT
    assert world.words[WORDS].markers() == []
    world.clock.advance(0)
    assert status(world) is TransactionStatus.COMPLETE_COMMIT
    assert world.words[WORDS].markers() == [(owner.producer_id, 0, True)]


def test_markers_are_written_once_though_the_shard_was_loaded_anew_meanwhile(world: World) -> None:
    owner = world.init()
    world.add(owner)
    end_without_markers(world, owner)
    for index in range(len(world.transactions.shards)):
        world.transactions.resign(index)
        load_slice = world.transactions.elect(index)
        while not load_slice():
            pass
    world.clock.advance(0)
    assert status(world) is TransactionStatus.COMPLETE_COMMIT
    assert len(world.words[WORDS].markers()) == 1


def test_nothing_is_written_after_the_coordinator_was_closed(world: World) -> None:
    owner = world.init()
    world.add(owner)
    end_without_markers(world, owner)
    world.transactions.close()
    world.clock.advance(0)
    assert world.words[WORDS].markers() == []
    world.restart()
    assert world.words[WORDS].markers() == [(owner.producer_id, 0, True)]


def test_whoever_has_the_answer_finds_the_markers_written(tmp_path: Path) -> None:
    """Check on a real event loop that the next transaction is never refused as concurrent."""
    topics = [{"name": "words", "partitions": list(range(PARTITIONS))}]
    with (
        EmbeddedBroker(tmp_path, topics={"words": PARTITIONS}) as broker,
        Client(broker.bootstrap_servers) as client,
        Client(broker.bootstrap_servers) as other,
    ):
        owner = client.send(
            Api.INIT_PRODUCER_ID, 4, transactional_id="app", transaction_timeout=60_000
        )
        identity = {"producer_id": owner.producer_id, "producer_epoch": owner.producer_epoch}
        last = {"partition_index": PARTITIONS - 1, "timestamp": -1}
        for number in range(TRANSACTIONS):
            added = client.send(
                Api.ADD_PARTITIONS_TO_TXN,
                3,
                v3_and_below_transactional_id="app",
                v3_and_below_topics=topics,
                **{f"v3_and_below_{name}": value for name, value in identity.items()},
            )
            [result] = added.results_by_topic_v3_and_below
            codes = {each.partition_error_code for each in result.results_by_partition}
            assert codes == {Code.NONE}, number
            ended = client.send(Api.END_TXN, 3, transactional_id="app", **identity, committed=True)
            assert ended.error_code == Code.NONE
            ends = other.send(
                Api.LIST_OFFSETS,
                2,
                replica_id=-1,
                isolation_level=READ_COMMITTED,
                topics=[{"name": "words", "partitions": [last]}],
            )
            assert ends.topics[0].partitions[0].offset == number + 1
