"""Test that InitProducerId hands a transactional id to its next owner and fences the former."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision, LogRecordOrigin
from coordinator.transactions.apply import apply_record
from coordinator.transactions.init_producer_id import (
    InitProducerIdCommand,
    Prerequisite,
    init_producer_id,
    select_prerequisite_or_refuse,
)
from coordinator.transactions.state import (
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionRecord,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)
from tests.unit.coordinator.world import World, code_of

NEW_ID = 9000
KNOWN = TransactionMetadata(
    transactional_id="app",
    producer_id=4000,
    producer_epoch=5,
    timeout_ms=60_000,
    status=TransactionStatus.COMPLETE_COMMIT,
    update_ms=0,
    start_ms=0,
    previous_producer_id=3000,
    last_producer_epoch=4,
)


def answer(
    known: TransactionMetadata, producer_id: int, epoch: int
) -> ProducerIdAndEpoch | Code | Prerequisite:
    """Return a request's outcome: an owner, a refusal, or a prerequisite."""
    state = TransactionShardState({"app": known})
    command = InitProducerIdCommand("app", 60_000, producer_id, epoch)
    try:
        first = select_prerequisite_or_refuse(state, command)
        if first is Prerequisite.ABORT:
            return first
        return init_producer_id(state, command, NEW_ID, now_ms=1).response
    except Refused as refused:
        return refused.code


def saved_by(decision: Decision[TransactionRecord, ProducerIdAndEpoch]) -> TransactionMetadata:
    [record] = decision.records
    assert isinstance(record, TransactionSaved)
    return record.transaction


def test_an_unknown_id_gets_a_new_producer_id_at_epoch_0() -> None:
    state = TransactionShardState()
    command = InitProducerIdCommand("app", 60_000)
    assert select_prerequisite_or_refuse(state, command) is Prerequisite.NEW_PRODUCER_ID
    decision = init_producer_id(state, command, NEW_ID, now_ms=1)
    assert decision.response == ProducerIdAndEpoch(NEW_ID, 0)
    assert saved_by(decision).status is TransactionStatus.EMPTY


def test_an_unknown_id_is_new_even_to_a_producer_that_had_one() -> None:
    command = InitProducerIdCommand("app", 60_000, 4000, 5)
    assert (
        select_prerequisite_or_refuse(TransactionShardState(), command)
        is Prerequisite.NEW_PRODUCER_ID
    )
    decision = init_producer_id(TransactionShardState(), command, NEW_ID, now_ms=1)
    assert decision.response == ProducerIdAndEpoch(NEW_ID, 0)


@pytest.mark.parametrize(
    "status",
    [TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT],
)
def test_at_rest_the_next_owner_gets_the_next_epoch(status: TransactionStatus) -> None:
    assert answer(replace(KNOWN, status=status), -1, -1) == ProducerIdAndEpoch(4000, 6)


@pytest.mark.parametrize(
    "status", [TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT]
)
def test_while_an_outcome_is_carried_out_the_answer_is_51(status: TransactionStatus) -> None:
    assert answer(replace(KNOWN, status=status), -1, -1) is Code.CONCURRENT_TRANSACTIONS


def test_an_ongoing_transaction_is_aborted_first() -> None:
    ongoing = replace(KNOWN, status=TransactionStatus.ONGOING)
    assert answer(ongoing, -1, -1) is Prerequisite.ABORT
    assert answer(ongoing, 4000, 5) is Prerequisite.ABORT


# KIP-360: the producer sends its present id and epoch.
@pytest.mark.parametrize(
    ("producer_id", "epoch", "expected"),
    [
        (4000, 5, ProducerIdAndEpoch(4000, 6)),  # current: one up
        (4000, 4, ProducerIdAndEpoch(4000, 5)),  # the last one: a retry whose response was lost
        (4000, 3, Code.PRODUCER_FENCED),
        (4000, 6, Code.PRODUCER_FENCED),
        (3000, 5, Code.PRODUCER_FENCED),  # the id before, with epochs left
        (1234, 5, Code.PRODUCER_FENCED),
    ],
)
def test_a_producer_that_names_its_epoch_is_judged_by_it(
    producer_id: int, epoch: int, expected: ProducerIdAndEpoch | Code
) -> None:
    assert answer(KNOWN, producer_id, epoch) == expected


def test_a_stale_producer_aborts_the_owners_transaction_and_is_refused_afterwards() -> None:
    """Check that, as in Kafka, the epoch is checked only when no transaction is open."""
    world = World()
    stale, owner = world.init(), world.init()
    world.add(owner)
    assert code_of(world.init, owner=stale) is Code.PRODUCER_FENCED
    assert world.words["words", 0].markers() == [(0, owner.producer_epoch + 1, False)]
    assert world.init(owner=owner) == ProducerIdAndEpoch(0, owner.producer_epoch + 1)


@pytest.mark.parametrize("level", [0, 1])
def test_before_transactions_v2_a_producer_that_is_aborted_by_its_own_init_is_fenced(
    level: int,
) -> None:
    """Check that the abort forgets the owner's epoch, as in Kafka."""
    world = World()
    world.features.set_level("transaction.version", level)
    owner = world.init()
    world.add(owner)
    assert code_of(world.init, owner=owner) is Code.PRODUCER_FENCED
    assert world.init() == ProducerIdAndEpoch(0, owner.producer_epoch + 2)


@pytest.mark.parametrize("epoch", [32766, 32767])
def test_an_exhausted_epoch_means_a_new_producer_id(epoch: int) -> None:
    exhausted = replace(KNOWN, producer_epoch=epoch, last_producer_epoch=epoch - 1)
    assert answer(exhausted, -1, -1) == ProducerIdAndEpoch(NEW_ID, 0)
    assert answer(exhausted, 4000, epoch) == ProducerIdAndEpoch(NEW_ID, 0)
    assert answer(exhausted, 4000, epoch - 1) == ProducerIdAndEpoch(4000, epoch)


def test_the_retry_of_an_exhausted_producer_gets_the_same_new_id_again() -> None:
    state = TransactionShardState({"app": replace(KNOWN, producer_epoch=32766)})
    command = InitProducerIdCommand("app", 60_000, 4000, 32766)
    for new_id in (NEW_ID, NEW_ID + 1):
        decision = init_producer_id(state, command, new_id, now_ms=1)
        assert decision.response == ProducerIdAndEpoch(NEW_ID, 0)
        apply_record(state, decision.records[0], LogRecordOrigin(0))
        assert select_prerequisite_or_refuse(state, command) is Prerequisite.NOTHING


def test_a_plain_init_forgets_the_epoch_that_could_have_been_retried() -> None:
    decision = init_producer_id(
        TransactionShardState({"app": KNOWN}),
        InitProducerIdCommand("app", 60_000),
        NEW_ID,
        now_ms=1,
    )
    assert saved_by(decision).last_producer_epoch == -1


def test_the_next_owner_is_answered_after_the_abort_and_two_epochs_up() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    successor = world.init()
    assert successor == ProducerIdAndEpoch(owner.producer_id, owner.producer_epoch + 2)
    fence = (owner.producer_id, owner.producer_epoch + 1, False)
    assert world.words["words", 0].markers() == [fence]
    assert code_of(world.add, owner) is Code.PRODUCER_FENCED
    assert code_of(world.end, owner) is Code.PRODUCER_FENCED


def test_a_producer_that_bumps_its_own_ongoing_transaction_stays_the_owner() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    bumped = world.init(owner=owner)
    assert bumped == ProducerIdAndEpoch(owner.producer_id, owner.producer_epoch + 1)
    assert world.init(owner=owner) == bumped  # a retry
    world.add(bumped)
    world.end(bumped)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_must_be_positive_and_within_the_limit(timeout_ms: int) -> None:
    refused = code_of(World().init, timeout_ms=timeout_ms)
    assert refused is Code.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_transactional_id_is_an_invalid_request() -> None:
    assert code_of(World().init, "") is Code.INVALID_REQUEST


def test_without_a_transactional_id_every_producer_is_new() -> None:
    world = World()
    assert [world.init(None), world.init(None)] == [
        ProducerIdAndEpoch(0, 0),
        ProducerIdAndEpoch(1, 0),
    ]


def test_no_producer_id_is_handed_out_twice_after_a_crash() -> None:
    world = World()
    before = {world.producer_ids.generate_producer_id() for _ in range(1500)}
    world.restart()
    after = {world.producer_ids.generate_producer_id() for _ in range(1500)}
    assert len(before | after) == 3000
    assert min(after) == 2000


def test_without_a_log_there_are_no_producer_ids_and_the_client_may_try_again() -> None:
    world = World()
    world.metadata_log.fail_after = 0
    assert code_of(world.init, None) is Code.COORDINATOR_LOAD_IN_PROGRESS
    world.metadata_log.fail_after = None
    assert world.init(None) == ProducerIdAndEpoch(0, 0)
