"""Test that a transaction is opened, decided once, and completed whatever happens in between."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from coordinator.errors import Code, Refused
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from coordinator.transactions.apply import apply_record
from coordinator.transactions.state import (
    PREVIOUS,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)
from tests.unit.coordinator.world import GROUP_TOPIC, TIMEOUT_MS, World, code_of


def status(world: World, id_: str = "app") -> TransactionStatus:
    known = world.transactions.find_transaction(id_)
    assert known is not None
    return known.status


# The steps.


@pytest.mark.parametrize("before", TransactionStatus)
@pytest.mark.parametrize("after", TransactionStatus)
def test_only_the_steps_of_the_table_are_applied_live(
    before: TransactionStatus, after: TransactionStatus
) -> None:
    known = TransactionMetadata("app", 1, 0, 1000, before, 0)
    state = TransactionShardState({"app": known})
    step = TransactionSaved(replace(known, status=after))
    if before in PREVIOUS[after]:
        apply_record(state, step, LogRecordOrigin(0))
        assert state.transactions["app"].status is after
    else:
        with pytest.raises(ValueError, match="can't be followed"):
            apply_record(state, step, LogRecordOrigin(0))
    apply_record(state, step, LogRecordOrigin(0, replaying=True))  # a compacted log may leap


@pytest.mark.parametrize("committed", [True, False])
def test_every_registered_partition_gets_the_marker(committed: bool) -> None:
    world = World()
    owner = world.init()
    world.add(owner, ("words", 0))
    world.add(owner, ("words", 1))
    world.end(owner, committed=committed)
    marker = (owner.producer_id, owner.producer_epoch, committed)
    assert world.words["words", 0].markers() == [marker]
    assert world.words["words", 1].markers() == [marker]
    assert status(world) is (
        TransactionStatus.COMPLETE_COMMIT if committed else TransactionStatus.COMPLETE_ABORT
    )


def test_adding_a_partition_twice_writes_nothing() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    ends = [log.end_offset for log in world.logs()]
    world.add(owner)
    assert [log.end_offset for log in world.logs()] == ends


def test_the_end_of_a_transaction_can_be_asked_for_again_but_not_turned_round() -> None:
    world = World()
    owner = world.init()
    assert code_of(world.end, owner) is Code.INVALID_TXN_STATE  # nothing was opened
    world.add(owner)
    world.end(owner)
    world.end(owner)
    assert code_of(world.end, owner, committed=False) is Code.INVALID_TXN_STATE
    world.add(owner)
    world.end(owner, committed=False)
    world.end(owner, committed=False)
    assert code_of(world.end, owner) is Code.INVALID_TXN_STATE
    assert len(world.words["words", 0].markers()) == 2


def test_while_markers_can_not_be_written_the_outcome_stands_and_is_retried() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.words["words", 0].fail_after = 0
    world.end(owner)
    assert status(world) is TransactionStatus.PREPARE_COMMIT
    assert code_of(world.end, owner) is Code.CONCURRENT_TRANSACTIONS
    assert code_of(world.end, owner, committed=False) is Code.INVALID_TXN_STATE
    assert code_of(world.add, owner) is Code.CONCURRENT_TRANSACTIONS
    assert code_of(world.init) is Code.CONCURRENT_TRANSACTIONS
    world.clock.advance(1000)
    assert status(world) is TransactionStatus.PREPARE_COMMIT
    world.words["words", 0].fail_after = None
    world.clock.advance(1000)
    assert status(world) is TransactionStatus.COMPLETE_COMMIT
    world.end(owner)


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    world = World()
    owner = world.init()
    world.add(owner, ("words", 0), ("gone", 3))
    world.end(owner)
    assert status(world) is TransactionStatus.COMPLETE_COMMIT


def test_a_stranger_is_told_49_and_a_former_owner_90() -> None:
    world = World()
    owner = world.init()
    stranger = ProducerIdAndEpoch(owner.producer_id + 1, owner.producer_epoch)
    assert code_of(world.add, stranger) is Code.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.add, owner, id_="other") is Code.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.end, stranger) is Code.INVALID_PRODUCER_ID_MAPPING
    world.init()
    assert code_of(world.add, owner) is Code.PRODUCER_FENCED
    assert code_of(world.end, owner) is Code.PRODUCER_FENCED


def test_writes_are_expected_on_registered_partitions_only() -> None:
    world = World()
    owner = world.init()

    def check(partition: int) -> Code:
        return code_of(
            world.transactions.verify_partition,
            "app",
            owner.producer_id,
            owner.producer_epoch,
            ("words", partition),
            adds_partition=False,
        )

    assert check(0) is Code.INVALID_TXN_STATE
    world.add(owner, ("words", 0))
    assert check(0) is Code.NONE
    assert check(1) is Code.INVALID_TXN_STATE
    world.end(owner)
    assert check(0) is Code.INVALID_TXN_STATE


# Time.


def test_a_transaction_is_aborted_when_its_time_is_up_and_its_owner_is_fenced() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.clock.advance(TIMEOUT_MS - 1)
    assert status(world) is TransactionStatus.ONGOING
    world.clock.advance(1)
    assert status(world) is TransactionStatus.COMPLETE_ABORT
    fence = (owner.producer_id, owner.producer_epoch + 1, False)
    assert world.words["words", 0].markers() == [fence]
    assert code_of(world.end, owner) is Code.PRODUCER_FENCED


def test_time_runs_from_the_first_partition_and_ends_with_the_transaction() -> None:
    world = World()
    owner = world.init()
    for _ in range(5):
        world.add(owner, ("words", 0))
        world.clock.advance(TIMEOUT_MS - 10)
        world.add(owner, ("words", 1))
        world.end(owner)
        world.clock.advance(20)
    assert all(committed for _, _, committed in world.words["words", 0].markers())


def test_an_abort_by_time_out_that_fails_is_tried_again() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    for log in world.transaction_logs:
        log.fail_after = 0
    world.clock.advance(TIMEOUT_MS)
    assert status(world) is TransactionStatus.ONGOING
    for log in world.transaction_logs:
        log.fail_after = None
    world.clock.advance(10_000)
    assert status(world) is TransactionStatus.COMPLETE_ABORT


def test_an_id_that_nobody_has_used_for_a_week_is_forgotten() -> None:
    world = World()
    world.init("idle")
    busy = world.init("busy", timeout_ms=900_000)
    day_ms = 24 * 3600 * 1000
    for _ in range(8):
        world.add(busy, id_="busy")
        world.end(busy, id_="busy")
        world.clock.advance(day_ms)
    assert world.transactions.find_transaction("idle") is None
    assert world.transactions.find_transaction("busy") is not None
    world.restart()
    assert world.transactions.find_transaction("idle") is None


# Restarts.


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("markers_written", range(3))
def test_a_restart_completes_what_was_decided(committed: bool, markers_written: int) -> None:
    world = World()
    owner = world.init()
    world.add(owner, ("words", 0), ("words", 1))
    world.add_group(owner)
    world.stage(owner, 17)
    partitions = sorted(world.transactions.find_transaction("app").partitions)  # type: ignore[union-attr]
    if markers_written < 3:
        failing = partitions[markers_written]
        log = world.group_logs[failing[1]] if failing[0] == GROUP_TOPIC else world.words[failing]
        log.fail_after = 0
        world.end(owner, committed=committed)
        log.fail_after = None
    assert status(world) in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)
    world.restart()
    assert status(world) is (
        TransactionStatus.COMPLETE_COMMIT if committed else TransactionStatus.COMPLETE_ABORT
    )
    assert world.offset() == (17 if committed else -1)
    marker = (owner.producer_id, owner.producer_epoch, committed)
    for log in world.words.values():
        assert set(log.markers()) == {marker}


def test_a_restart_lets_an_open_transaction_go_on_for_the_rest_of_its_time() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.clock.advance(TIMEOUT_MS // 2)
    world.restart()
    assert status(world) is TransactionStatus.ONGOING
    world.add(owner, ("words", 1))
    world.clock.advance(TIMEOUT_MS // 2 - 1)
    assert status(world) is TransactionStatus.ONGOING
    world.clock.advance(1)
    assert status(world) is TransactionStatus.COMPLETE_ABORT


def test_a_marker_in_the_transaction_log_stops_the_shard() -> None:
    with pytest.raises(ValueError, match="a marker among transaction records"):
        apply_record(
            TransactionShardState(), TransactionEnded(1, 0, committed=True), LogRecordOrigin(5)
        )


# Failed appends and random histories.


def test_a_failed_append_of_a_decision_changes_nothing() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    before = world.transactions.find_transaction("app")
    for log in world.transaction_logs:
        log.fail_after = 0
    with pytest.raises(Refused, match="the disk is full"):
        world.end(owner)
    with pytest.raises(Refused, match="the disk is full"):
        world.init()
    with pytest.raises(Refused, match="the disk is full"):
        world.add(owner, ("words", 1))
    assert world.transactions.find_transaction("app") == before
    assert world.words["words", 0].markers() == []


@pytest.mark.parametrize("seed", range(20))
def test_replaying_a_random_history_rebuilds_the_same_state(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    owners: dict[str, list[ProducerIdAndEpoch]] = {"a": [], "b": [], "c": []}
    for step in range(120):
        id_ = rng.choice(list(owners))
        log = rng.choice(world.logs())
        log.fail_after = rng.choice([0, 1, 2]) if rng.random() < 0.1 else None
        try:
            if not owners[id_] or rng.random() < 0.1:
                owners[id_].append(world.init(id_))
            owner = rng.choice(owners[id_][-2:])
            match rng.randrange(5):
                case 0 | 1:
                    world.add(owner, ("words", rng.randrange(2)), id_=id_)
                case 2:
                    world.add_group(owner, id_=id_)
                    world.stage(owner, step, partition=rng.randrange(2), id_=id_)
                case 3:
                    world.end(owner, committed=rng.random() < 0.7, id_=id_)
                case _:
                    world.clock.advance(rng.randrange(TIMEOUT_MS // 4))
        except Refused:
            pass
        log.fail_after = None
        if step % 10 == 0:
            world.clock.advance(500)  # what was decided gets completed
            live = [dict(shard.state.transactions) for shard in world.transactions.shards]
            offsets = [shard.state.offsets for shard in world.groups.shards]
            world.restart()
            loaded = [shard.state.transactions for shard in world.transactions.shards]
            assert loaded == live, f"{seed=} {step=}"
            assert [s.state.offsets for s in world.groups.shards] == offsets, f"{seed=} {step=}"
