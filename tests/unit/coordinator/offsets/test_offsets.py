"""Test that offsets count at once when committed, or with the transaction that has them."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.offsets.apply import apply_record
from coordinator.offsets.commit import OffsetCommitCommand, OffsetToCommit, decide_offset_commit
from coordinator.offsets.fetch import fetch_all_offsets, fetch_offsets
from coordinator.offsets.state import OffsetCommitted, OffsetForgotten, OffsetState
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from tests.unit.coordinator.world import World, code_of


def committed(offset: int, topic_id: UUID | None = None) -> OffsetCommitted:
    return OffsetCommitted("counts", "words", 0, offset, -1, "", 0, topic_id)


def test_offsets_staged_in_a_transaction_stay_hidden_until_it_commits() -> None:
    world = World()
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 100)
    assert world.fetch().code is Code.UNSTABLE_OFFSET_COMMIT
    assert world.offset() == -1
    world.end(owner)
    assert world.fetch().code is Code.NONE
    assert world.offset() == 100


def test_offsets_of_an_aborted_transaction_are_gone() -> None:
    world = World()
    world.commit(7)
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 100)
    assert world.offset() == -1  # unstable
    world.end(owner, committed=False)
    assert world.offset() == 7


def test_only_a_fetch_that_wants_stable_offsets_minds_an_open_transaction() -> None:
    state = OffsetState()
    apply_record(state, committed(7), LogRecordOrigin(0))
    apply_record(state, committed(9), LogRecordOrigin(1, producer_id=3))
    wanted = [("words", 0, None)]
    [stable] = fetch_offsets(state, "counts", wanted, require_stable=True)
    [any_offset] = fetch_offsets(state, "counts", wanted, require_stable=False)
    assert (stable.code, stable.offset) == (Code.UNSTABLE_OFFSET_COMMIT, -1)
    assert (any_offset.code, any_offset.offset) == (Code.NONE, 7)


def test_a_staged_offset_is_not_materialised_over_a_newer_one() -> None:
    state = OffsetState()
    apply_record(state, committed(10), LogRecordOrigin(0, producer_id=3))
    apply_record(state, committed(20), LogRecordOrigin(1))
    apply_record(state, TransactionEnded(3, 0, committed=True), LogRecordOrigin(2, 3))
    assert state.committed["counts"]["words", 0].offset == 20
    apply_record(state, committed(5), LogRecordOrigin(3, producer_id=3))
    apply_record(state, TransactionEnded(3, 0, committed=True), LogRecordOrigin(4, 3))
    assert state.committed["counts"]["words", 0].offset == 5
    assert state.pending == {}


def test_transactions_of_different_producers_do_not_end_each_other() -> None:
    state = OffsetState()
    apply_record(state, committed(10), LogRecordOrigin(0, producer_id=3))
    apply_record(state, committed(20), LogRecordOrigin(1, producer_id=4))
    apply_record(state, TransactionEnded(3, 0, committed=True), LogRecordOrigin(2, 3))
    assert state.committed["counts"]["words", 0].offset == 10
    assert state.pending_producers == {"counts": {("words", 0): {4}}}


def test_a_forgotten_offset_is_gone_pending_or_not() -> None:
    state = OffsetState()
    apply_record(state, committed(10), LogRecordOrigin(0))
    apply_record(state, committed(20), LogRecordOrigin(1, producer_id=4))
    apply_record(state, OffsetForgotten("counts", "words", 0), LogRecordOrigin(2))
    apply_record(state, TransactionEnded(4, 0, committed=True), LogRecordOrigin(3, 4))
    assert state == OffsetState(groups={"counts"})


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    world = World()
    world.commit(7)
    owner = world.init()
    world.add_group(owner, "others")
    world.stage(owner, 8, group_id="others")
    world.forget_topic("words")
    world.end(owner)
    world.restart()
    assert (world.offset("counts"), world.offset("others")) == (-1, -1)


def test_a_topic_that_is_deleted_while_its_offsets_are_being_loaded_takes_them_along() -> None:
    world = World()
    world.commit(7)
    index = world.groups.partition_of("counts")
    world.groups.resign_shard(index)
    world.forget_topic("words")
    load_slice = world.groups.elect_shard(index)
    while not load_slice():
        pass
    assert world.offset() == -1
    world.commit(8)
    world.groups.resign_shard(index)
    load_slice = world.groups.elect_shard(index)
    while not load_slice():
        pass
    assert world.offset() == 8


def test_a_group_with_more_offsets_than_tombstones_fit_into_a_batch_is_deleted_in_several() -> None:
    world = World()
    for partition in range(200):
        world.commit(7, partition=partition)
    log = world.group_logs[world.groups.partition_of("counts")]
    begin_offset, log.batch_bytes_max = log.end_offset, 2_000
    world.delete_group("counts")
    sizes = [len(each.data) for each in log.batches() if each.base_offset >= begin_offset]
    assert len(sizes) == 5
    assert max(sizes) <= 2_000
    world.restart()
    assert world.groups.list_groups_unless_loading() == []
    assert world.offset() == -1


def test_a_deletion_that_fails_in_the_middle_leaves_the_group_to_be_deleted_again() -> None:
    world = World()
    for partition in range(200):
        world.commit(7, partition=partition)
    log = world.group_logs[world.groups.partition_of("counts")]
    log.batch_bytes_max, log.fail_after = 2_000, 1
    assert code_of(world.delete_group, "counts") is Code.KAFKA_STORAGE_ERROR
    assert world.offset(partition=199) == 7
    log.fail_after = None
    world.delete_group("counts")
    assert world.groups.list_groups_unless_loading() == []


def test_metadata_that_is_too_long_keeps_that_partition_out() -> None:
    command = OffsetCommitCommand(
        "counts",
        [
            OffsetToCommit("words", 0, 1, metadata="x" * 4096),
            OffsetToCommit("words", 1, 2, metadata="x" * 4097),
        ],
    )
    decision = decide_offset_commit(command, 4096, now_ms=0)
    assert decision.response == [Code.NONE, Code.OFFSET_METADATA_TOO_LARGE]
    assert [record.partition for record in decision.records] == [0]


def test_an_offset_of_a_topics_deleted_namesake_is_not_found_by_id() -> None:
    old, new = UUID(int=1), UUID(int=2)
    state = OffsetState()
    apply_record(state, committed(10, old), LogRecordOrigin(0))

    def found(topic_id: UUID | None) -> int:
        wanted = [("words", 0, topic_id)]
        return fetch_offsets(state, "counts", wanted, require_stable=True)[0].offset

    assert (found(old), found(new), found(None)) == (10, -1, 10)


def test_all_offsets_of_a_group_can_be_asked_for() -> None:
    state = OffsetState()
    for partition in (2, 0, 1):
        record = OffsetCommitted("counts", "words", partition, partition * 10, -1, "", 0)
        apply_record(state, record, LogRecordOrigin(partition))
    fetched = fetch_all_offsets(state, "counts", require_stable=True)
    assert [(f.partition, f.offset) for f in fetched] == [(0, 0), (1, 10), (2, 20)]
    assert fetch_all_offsets(state, "another", require_stable=True) == []


def test_staging_needs_the_group_to_be_registered() -> None:
    world = World()
    owner = world.init()
    assert code_of(world.stage, owner, 5) is Code.INVALID_TXN_STATE
    world.add(owner, ("words", 0))
    assert code_of(world.stage, owner, 5) is Code.INVALID_TXN_STATE


def test_a_fenced_producer_can_not_stage() -> None:
    world = World()
    owner = world.init()
    world.add_group(owner)
    world.init()
    assert code_of(world.stage, owner, 5) is Code.PRODUCER_FENCED


def test_staging_that_can_not_be_appended_stages_nothing() -> None:
    world = World()
    owner = world.init()
    world.add_group(owner)
    for log in world.group_logs:
        log.fail_after = 0
    with pytest.raises(Refused):
        world.stage(owner, 5)
    for log in world.group_logs:
        log.fail_after = None
    assert world.fetch().code is Code.NONE
    world.end(owner)
    assert world.offset() == -1


@pytest.mark.parametrize("seed", range(10))
def test_offsets_of_the_next_transaction_never_count_with_this_one(seed: int) -> None:
    """Check that the end of a transaction doesn't complete offsets of the next one (KAFKA-17507).

    There the end was answered before its offsets were materialised, and then completed those that
    the producer's next transaction had staged meanwhile.
    """
    rng = random.Random(seed)
    world = World()
    owner = world.init()
    expected = -1
    for offset in range(60):
        log = rng.choice(world.group_logs)
        log.fail_after = rng.choice([None, None, 0, 1, 2])
        try:
            world.add_group(owner)
            world.stage(owner, offset)
            log.fail_after = rng.choice([None, 0])
            commits = rng.random() < 0.6
            world.end(owner, committed=commits)
            if commits:
                expected = offset
        except Refused:
            log.fail_after = None
            world.clock.advance(1000)
            if code_of(world.end, owner, committed=False) is Code.NONE:
                continue
        log.fail_after = None
        if rng.random() < 0.5:
            world.clock.advance(1000)
        if rng.random() < 0.1:
            world.restart()
        fetched = world.fetch()
        if fetched.code is Code.NONE:
            assert fetched.offset == expected, f"{seed=} {offset=}"
    world.clock.advance(1000)
    assert world.offset() == expected, f"{seed=}"
