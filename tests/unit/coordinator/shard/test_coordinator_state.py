"""Test a shard's responses while it is loading, active or resigned, and its loading in slices."""

from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.shard.coordinator_state import VALID_PREVIOUS_STATES, CoordinatorState
from coordinator.shard.decision import Decision, TransactionEnded
from coordinator.shard.loading import QUICK_MS, ShardLoader
from coordinator.transactions.state import ProducerIdAndEpoch, TransactionStatus
from tests.unit.coordinator.fakes import FakeClock, FakeLog
from tests.unit.coordinator.shard.test_shard import Notes
from tests.unit.coordinator.world import World, code_of


def test_a_shard_without_a_log_is_active_and_one_with_a_log_is_loading() -> None:
    log = FakeLog()
    notes = Notes(log)
    assert notes.shard.coordinator_state is CoordinatorState.ACTIVE
    notes.shard.execute_decision(Decision(["a", "b"], None))
    again = Notes(log)
    assert again.shard.coordinator_state is CoordinatorState.LOADING
    refused = code_of(again.shard.execute_decision, Decision(["c"], None))
    assert refused is Code.COORDINATOR_LOAD_IN_PROGRESS
    again.shard.replay_log()
    assert again.applied == notes.applied
    again.shard.execute_decision(Decision(["c"], None))


def test_a_shard_is_loaded_a_slice_at_a_time() -> None:
    log = FakeLog()
    notes = Notes(log)
    for text in ("a", "b", "c"):
        notes.shard.execute_decision(Decision([text], None))
    again = Notes(log)
    for count in (1, 2):
        assert not again.shard.load_next_slice(max_bytes=1)
        assert len(again.applied) == count
        ended = TransactionEnded(1, 0, committed=True)
        assert code_of(again.shard.end_transaction, ended) is Code.COORDINATOR_LOAD_IN_PROGRESS
    assert again.shard.load_next_slice(max_bytes=1)
    assert again.applied == notes.applied


def test_a_shard_that_has_resigned_is_no_coordinator_until_it_is_elected() -> None:
    notes = Notes(FakeLog())
    notes.shard.execute_decision(Decision(["a"], None))
    notes.shard.mark_resigned()
    assert code_of(notes.shard.execute_decision, Decision(["b"], None)) is Code.NOT_COORDINATOR
    assert notes.shard.load_next_slice(), "a slice that was waiting does nothing"
    notes.applied.clear()
    notes.shard.restart_loading_as_leader()
    assert notes.shard.coordinator_state is CoordinatorState.LOADING
    notes.shard.replay_log()
    assert notes.applied == [("a", 0, -1)]
    assert notes.shard.coordinator_epoch == 1


@pytest.mark.parametrize("life", CoordinatorState)
def test_no_state_follows_itself(life: CoordinatorState) -> None:
    assert life not in VALID_PREVIOUS_STATES[life]


def test_an_active_shard_is_not_elected() -> None:
    with pytest.raises(ValueError, match="LOADING can't follow ACTIVE"):
        Notes(FakeLog()).shard.restart_loading_as_leader()


# The loader


class SlowClock(FakeClock):
    """Stands in for a slow clock: each reading takes 10 ms."""

    looks = 0

    def monotonic_ms(self) -> int:
        self.looks += 1
        return super().monotonic_ms() + 10 * self.looks


def test_what_is_quick_is_loaded_at_once_and_the_rest_between_other_work() -> None:
    clock = SlowClock()
    left = {"small": 1, "big": 100}
    slices: list[str] = []

    def load(name: str) -> bool:
        slices.append(name)
        left[name] -= 1
        return left[name] == 0

    loader = ShardLoader(clock, clock)
    loader.load_shards([lambda: load("big"), lambda: load("small")])
    assert left["small"] == 0, "it doesn't wait for the big one"
    assert 0 < left["big"] < 100
    assert len(slices) <= QUICK_MS / 10
    assert not loader.is_done
    while not loader.is_done:
        before = len(slices)
        clock.advance(0)
        assert len(slices) > before
    assert left["big"] == 0


# Both coordinators


def test_a_transaction_shard_comes_back_with_all_that_its_log_says() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    [index] = [i for i, s in enumerate(world.transactions.shards) if s.state.transactions]
    before = world.transactions.find_transaction("app")
    world.transactions.resign_shard(index)
    assert code_of(world.init) is Code.NOT_COORDINATOR
    assert code_of(world.add, owner) is Code.NOT_COORDINATOR
    assert code_of(world.end, owner) is Code.NOT_COORDINATOR
    world.clock.advance(120_000)
    assert world.words["words", 0].markers() == [], "its timers are called off"
    load_slice = world.transactions.elect_shard(index)
    assert code_of(world.end, owner) is Code.COORDINATOR_LOAD_IN_PROGRESS
    assert load_slice()
    assert world.transactions.find_transaction("app") == before
    world.clock.advance(0)
    assert world.words["words", 0].markers() == [(0, 1, False)], "its time is up by now"
    assert world.init() == ProducerIdAndEpoch(0, 2)


def test_a_shard_that_resigns_leaves_its_markers_to_its_next_life() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.words["words", 0].fail_after = 0
    world.end(owner)
    [index] = [i for i, s in enumerate(world.transactions.shards) if s.state.transactions]
    world.transactions.resign_shard(index)
    world.words["words", 0].fail_after = None
    world.clock.advance(10_000)
    assert world.words["words", 0].markers() == []
    assert world.transactions.elect_shard(index)()
    assert world.words["words", 0].markers() == [(0, 0, True)]
    known = world.transactions.find_transaction("app")
    assert known is not None
    assert known.status is TransactionStatus.COMPLETE_COMMIT


def test_offsets_wait_for_their_shard_and_are_true_once_it_is_back() -> None:
    world = World()
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 17)
    index = world.groups.partition_of("counts")
    world.groups.resign_shard(index)
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        world.fetch()
    world.end(owner)
    assert code_of(world.add, owner) is Code.CONCURRENT_TRANSACTIONS
    load_slice = world.groups.elect_shard(index)
    with pytest.raises(Refused, match="COORDINATOR_LOAD_IN_PROGRESS"):
        world.fetch()
    world.clock.advance(1_000)
    assert load_slice()
    world.clock.advance(5_000)
    assert world.offset() == 17
    world.add(owner)
