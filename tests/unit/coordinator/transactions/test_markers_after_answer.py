"""Test that EndTxn is answered before its markers are written, and that nobody can tell.

The outcome stands once PrepareCommit is in the log, so that the answer doesn't wait for markers.
They are written before anything more is read from clients.
"""

from __future__ import annotations

from coordinator.transactions.end_transaction import EndTransactionCommand
from coordinator.transactions.state import ProducerIdAndEpoch, TransactionStatus
from tests.unit.coordinator.world import World

WORDS = ("words", 0)


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
        world.transactions.resign_shard(index)
        load_slice = world.transactions.elect_shard(index)
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
