"""Test EndTxn of transactions v2 as tables: each end bumps the epoch; the former is a retry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.errors import Code, Refused
from coordinator.shard.decision import LogRecordOrigin
from coordinator.transactions.apply import apply_record
from coordinator.transactions.end_transaction import (
    EndTransactionCommand,
    complete_transaction_end,
    fence_and_abort,
    needs_new_producer_id,
    prepare_transaction_end,
    require_transaction_to_end,
)
from coordinator.transactions.state import (
    EPOCH_MAX,
    V0,
    V2,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)
from tests.unit.coordinator.world import World, code_of

WORDS = ("words", 0)
KNOWN = TransactionMetadata(
    transactional_id="app",
    producer_id=4000,
    producer_epoch=5,
    timeout_ms=60_000,
    status=TransactionStatus.ONGOING,
    update_ms=10,
    start_ms=10,
    partitions=frozenset({WORDS}),
    previous_producer_id=4000,
)
ENDS = "end the transaction"
DONE = "done before"


def answer(
    known: TransactionMetadata, epoch: int, *, committed: bool, producer_id: int = 4000
) -> object:
    state = TransactionShardState({"app": known})
    try:
        _, wanted = require_transaction_to_end(
            state, EndTransactionCommand("app", producer_id, epoch, committed, V2)
        )
    except Refused as refused:
        return refused.code
    return ENDS if wanted else DONE


@pytest.mark.parametrize(
    ("status", "epoch", "of_commit", "of_abort"),
    [
        (TransactionStatus.ONGOING, 5, ENDS, ENDS),
        (TransactionStatus.ONGOING, 4, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
        (TransactionStatus.EMPTY, 5, Code.INVALID_TXN_STATE, ENDS),
        (TransactionStatus.EMPTY, 4, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
        (TransactionStatus.PREPARE_COMMIT, 5, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
        (TransactionStatus.PREPARE_COMMIT, 4, Code.CONCURRENT_TRANSACTIONS, Code.INVALID_TXN_STATE),
        (TransactionStatus.PREPARE_ABORT, 5, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
        (TransactionStatus.PREPARE_ABORT, 4, Code.INVALID_TXN_STATE, Code.CONCURRENT_TRANSACTIONS),
        (TransactionStatus.COMPLETE_COMMIT, 5, Code.INVALID_TXN_STATE, ENDS),
        (TransactionStatus.COMPLETE_COMMIT, 4, DONE, Code.INVALID_TXN_STATE),
        (TransactionStatus.COMPLETE_ABORT, 5, Code.INVALID_TXN_STATE, ENDS),
        (TransactionStatus.COMPLETE_ABORT, 4, Code.INVALID_TXN_STATE, DONE),
        *(
            (status, 3, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED)
            for status in tuple(TransactionStatus)[:6]
        ),
        *(
            (status, 6, Code.PRODUCER_FENCED, Code.PRODUCER_FENCED)
            for status in tuple(TransactionStatus)[:6]
        ),
    ],
)
def test_an_end_is_judged_by_state_and_epoch(
    status: TransactionStatus, epoch: int, of_commit: object, of_abort: object
) -> None:
    known = replace(KNOWN, status=status)
    assert answer(known, epoch, committed=True) == of_commit
    assert answer(known, epoch, committed=False) == of_abort
    foreign = answer(known, epoch, committed=True, producer_id=7)
    assert foreign is Code.INVALID_PRODUCER_ID_MAPPING


def test_an_unknown_id_is_no_producer_s() -> None:
    with pytest.raises(Refused) as refused:
        require_transaction_to_end(
            TransactionShardState(), EndTransactionCommand("app", 1, 0, True, V2)
        )
    assert refused.value.code is Code.INVALID_PRODUCER_ID_MAPPING


def ended(
    known: TransactionMetadata, next_producer_id: int = -1
) -> tuple[TransactionMetadata, ProducerIdAndEpoch]:
    decision = prepare_transaction_end(
        known, committed=True, version=V2, next_producer_id=next_producer_id, now_ms=20
    )
    [record] = decision.records
    assert isinstance(record, TransactionSaved)
    return record.transaction, decision.response


def test_the_decision_bumps_the_epoch_and_the_answer_says_so() -> None:
    prepared, owner = ended(KNOWN)
    assert (prepared.status, prepared.producer_epoch) == (TransactionStatus.PREPARE_COMMIT, 6)
    assert prepared.last_producer_epoch == 5
    assert owner == ProducerIdAndEpoch(4000, 6)


def test_with_the_last_epoch_the_id_is_left_for_a_new_one() -> None:
    last = replace(KNOWN, producer_epoch=EPOCH_MAX - 1)
    assert needs_new_producer_id(last, V2)
    assert not needs_new_producer_id(last, V0)
    prepared, owner = ended(last, next_producer_id=5000)
    assert (prepared.producer_id, prepared.producer_epoch) == (4000, EPOCH_MAX)
    assert (prepared.next_producer_id, owner) == (5000, ProducerIdAndEpoch(5000, 0))
    [record] = complete_transaction_end(prepared, now_ms=30).records
    assert isinstance(record, TransactionSaved)
    done = record.transaction
    assert (done.producer_id, done.producer_epoch) == (5000, 0)
    assert (done.previous_producer_id, done.next_producer_id) == (4000, -1)
    assert answer(done, EPOCH_MAX - 1, committed=True) == DONE
    assert answer(done, EPOCH_MAX - 1, committed=False) is Code.INVALID_TXN_STATE


def test_an_abort_of_nothing_starts_when_it_ends() -> None:
    empty = replace(KNOWN, status=TransactionStatus.EMPTY, start_ms=-1, partitions=frozenset())
    decision = prepare_transaction_end(
        empty, committed=False, version=V2, next_producer_id=-1, now_ms=20
    )
    [record] = decision.records
    assert isinstance(record, TransactionSaved)
    assert record.transaction.start_ms == 20
    state = TransactionShardState({"app": empty})
    apply_record(state, record, LogRecordOrigin(0))
    apply_record(
        state, complete_transaction_end(record.transaction, 30).records[0], LogRecordOrigin(1)
    )
    assert state.transactions["app"].status is TransactionStatus.COMPLETE_ABORT


@pytest.mark.parametrize(("level", "last_epoch"), [(V0, -1), (V2, 5)])
def test_the_coordinator_aborts_in_the_version_that_is_finalised(
    level: int, last_epoch: int
) -> None:
    decision = fence_and_abort(KNOWN, version=level, next_producer_id=-1, now_ms=20)
    [record] = decision.records
    assert isinstance(record, TransactionSaved)
    aborted = record.transaction
    assert (aborted.status, aborted.producer_epoch) == (TransactionStatus.PREPARE_ABORT, 6)
    assert (aborted.last_producer_epoch, aborted.client_version) == (last_epoch, level)


# The service


def test_a_v2_producer_goes_from_epoch_to_epoch_and_markers_carry_the_new_one() -> None:
    world = World()
    owner = world.init()
    for epoch in (1, 2, 3):
        world.add(owner, version=V2)
        owner = world.end(owner, version=V2)
        assert owner == ProducerIdAndEpoch(0, epoch)
    assert world.words[WORDS].markers() == [(0, epoch, True) for epoch in (1, 2, 3)]


def test_a_producer_that_runs_out_of_epochs_goes_on_with_another_id() -> None:
    world = World()
    owner = world.init()
    for _ in range(EPOCH_MAX - 1):
        owner = world.init(owner=owner)
    assert owner == ProducerIdAndEpoch(0, EPOCH_MAX - 1)
    world.add(owner, version=V2)
    successor = world.end(owner, version=V2)
    assert successor == ProducerIdAndEpoch(1, 0)
    assert world.words[WORDS].markers() == [(0, EPOCH_MAX, True)]
    assert world.end(owner, version=V2) == successor, "a retry"
    world.restart()
    assert world.end(owner, version=V2) == successor, "a retry that the log tells"
    world.add(successor, version=V2)
    world.end(successor, version=V2)


def test_an_id_moves_between_clients_of_both_versions_in_the_middle_of_a_transaction() -> None:
    world = World()
    owner = world.init()
    world.add(owner, version=V2)
    assert world.end(owner, version=V0) == owner, "v1 ends what v2 opened: no bump"
    world.add(owner, version=V0)
    bumped = world.end(owner, version=V2)
    assert bumped == ProducerIdAndEpoch(0, 1), "v2 ends what v1 opened"
    assert code_of(world.add, owner) is Code.PRODUCER_FENCED
    world.add(bumped)
    world.end(bumped)
    assert world.words[WORDS].markers() == [(0, 0, True), (0, 1, True), (0, 1, True)]


def test_what_v2_decided_is_completed_after_a_restart() -> None:
    world = World()
    owner = world.init()
    world.add(owner, version=V2)
    world.words[WORDS].fail_after = 0
    bumped = world.end(owner, version=V2)
    assert code_of(world.add, bumped) is Code.CONCURRENT_TRANSACTIONS
    world.words[WORDS].fail_after = None
    world.restart()
    assert world.words[WORDS].markers() == [(0, 1, True)]
    assert world.end(owner, version=V2) == bumped
    world.add(bumped, version=V2)
