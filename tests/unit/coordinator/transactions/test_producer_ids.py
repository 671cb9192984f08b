"""Test that producer ids are reserved in blocks, and none is given twice after a crash."""

from __future__ import annotations

import random

import pytest

from coordinator.errors import Code, Refused
from coordinator.shard.shard import Shard
from coordinator.transactions.producer_ids import (
    BLOCK_SIZE,
    ProducerIdManager,
    ProducerIdsAllocated,
    ProducerIdsCodec,
    ProducerIdState,
)
from tests.unit.coordinator.fakes import FakeClock, FakeLog
from tests.unit.coordinator.world import code_of


def loaded(log: FakeLog) -> ProducerIdManager:
    """Return a producer id manager as a broker has it after a start."""
    state = ProducerIdState()
    shard: Shard[ProducerIdsAllocated] = Shard(
        "ids", log, ProducerIdsCodec(), state.apply_record, FakeClock()
    )
    shard.replay_log()
    return ProducerIdManager(shard, state)


def test_ids_follow_each_other_over_the_end_of_a_block() -> None:
    ids = loaded(FakeLog())
    assert [ids.generate_producer_id() for _ in range(2 * BLOCK_SIZE + 5)] == list(
        range(2 * BLOCK_SIZE + 5)
    )


def test_the_next_block_is_asked_for_when_nine_tenths_are_gone() -> None:
    log = FakeLog()
    ids = loaded(log)
    for _ in range(BLOCK_SIZE * 9 // 10):
        ids.generate_producer_id()
    assert log.end_offset == 1
    ids.generate_producer_id()
    assert log.end_offset == 2
    log.fail_after = 0
    rest = [ids.generate_producer_id() for _ in range(BLOCK_SIZE)]
    assert rest[-1] == BLOCK_SIZE * 19 // 10


def test_without_a_log_ids_are_handed_out_to_the_last_and_then_refused_with_14() -> None:
    log = FakeLog()
    ids = loaded(log)
    assert ids.generate_producer_id() == 0
    log.fail_after = 0
    for wanted in range(1, BLOCK_SIZE):
        assert ids.generate_producer_id() == wanted
    assert code_of(ids.generate_producer_id) is Code.COORDINATOR_LOAD_IN_PROGRESS
    log.fail_after = None
    assert ids.generate_producer_id() == BLOCK_SIZE


def test_after_a_crash_at_any_point_no_id_comes_twice() -> None:
    for used in (0, 1, 2, 899, 900, 901, 902, 999, 1000, 1001, 1899, 1900, 1901):
        log = FakeLog()
        ids = loaded(log)
        handed_out = [ids.generate_producer_id() for _ in range(used)]
        ids = loaded(log)
        handed_out += [ids.generate_producer_id() for _ in range(BLOCK_SIZE + 1)]
        assert len(set(handed_out)) == len(handed_out), f"{used=}"


@pytest.mark.parametrize("seed", range(10))
def test_crashes_and_failing_logs_never_repeat_an_id(seed: int) -> None:
    rng = random.Random(seed)
    log = FakeLog()
    ids = loaded(log)
    handed_out: list[int] = []
    for _ in range(40):
        log.fail_after = rng.choice([None, None, 0, 1])
        for _ in range(rng.randrange(300)):
            try:
                handed_out.append(ids.generate_producer_id())
            except Refused:
                break
        if rng.random() < 0.3:
            ids = loaded(log)
    assert len(set(handed_out)) == len(handed_out), f"{seed=}"


def test_ids_that_came_with_files_of_another_broker_are_not_handed_out() -> None:
    log = FakeLog()
    ids = loaded(log)
    assert ids.generate_producer_id() == 0
    ids.skip_ids_up_to(0)
    ids.skip_ids_up_to(41)
    assert ids.generate_producer_id() == 42
    ids.skip_ids_up_to(7_500)
    assert [ids.generate_producer_id() for _ in range(2 * BLOCK_SIZE)][:: 2 * BLOCK_SIZE - 1] == [
        7_501,
        9_500,
    ]
    assert loaded(log).generate_producer_id() >= 9_501


def test_an_id_of_its_own_changes_nothing() -> None:
    log = FakeLog()
    last = [loaded(log).generate_producer_id() for _ in range(3)][-1]
    ids = loaded(log)
    ids.skip_ids_up_to(last)
    assert ids.generate_producer_id() == 3 * BLOCK_SIZE
    assert log.end_offset == 4
