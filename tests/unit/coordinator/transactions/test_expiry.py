"""Test that unused transactional ids expire, however many of them a shard has."""

from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.transactions.config import TransactionConfig
from coordinator.transactions.end_transaction import make_expiry_tombstones
from coordinator.transactions.expiry import LOOKED_AT_PER_SLICE, TOMBSTONES_PER_SLICE
from tests.unit.coordinator.world import World

CONFIG = TransactionConfig()
CHECK_MS = CONFIG.expiry_check_ms
EXPIRATION_MS = CONFIG.transactional_id_expiration_ms


def ids_of(world: World) -> set[str]:
    return {name for shard in world.transactions.shards for name in shard.state.transactions}


def init_many(world: World, count: int) -> set[str]:
    names = {f"app-{i}" for i in range(count)}
    for name in sorted(names):
        world.init(name)
    return names


def expire(world: World) -> None:
    """Let all transactional ids expire and run the check in all its slices."""
    world.clock.advance(EXPIRATION_MS + CHECK_MS)


def test_ids_expire_after_their_time_and_not_before(world: World) -> None:
    init_many(world, 3)
    world.clock.advance(EXPIRATION_MS - CHECK_MS)
    assert len(ids_of(world)) == 3
    world.init("app-1")
    world.clock.advance(2 * CHECK_MS)
    assert ids_of(world) == {"app-1"}
    world.restart()
    assert ids_of(world) == {"app-1"}


def test_an_open_transaction_keeps_its_id(world: World) -> None:
    for name in ("open", "ended"):
        owner = world.init(name)
        world.add(owner, id_=name)
        if name == "ended":
            world.end(owner, id_=name)
    now_ms = world.clock.now_ms()
    expired = [
        record.transactional_id
        for shard in world.transactions.shards
        for record in make_expiry_tombstones(shard.state, ["open", "ended", "none"], 0, now_ms)
    ]
    assert expired == ["ended"]


def test_more_ids_than_one_batch_holds_expire_in_several(world: World) -> None:
    init_many(world, 200)
    for log in world.transaction_logs:
        log.batch_bytes_max = 1_000
    expire(world)
    assert ids_of(world) == set()
    world.restart()
    assert ids_of(world) == set()


def test_a_slice_looks_at_few_ids_and_lets_others_in_between(world: World) -> None:
    init_many(world, 2 * LOOKED_AT_PER_SLICE)
    sizes = [len(ids_of(world))]
    world.clock.advance(EXPIRATION_MS - 1)
    slices: list[int] = []

    def look() -> None:
        slices.append(len(ids_of(world)))
        if slices[-1]:
            world.clock.call_later(0, look)

    world.clock.call_later(1, look)
    world.clock.advance(CHECK_MS)
    went = [before - after for before, after in zip([*sizes, *slices], slices, strict=False)]
    assert max(went) == TOMBSTONES_PER_SLICE
    assert ids_of(world) == set()


def test_an_id_that_comes_back_between_two_slices_stays(world: World) -> None:
    names = init_many(world, 4 * TOMBSTONES_PER_SLICE)
    world.clock.advance(EXPIRATION_MS - 1)
    came_back: set[str] = set()

    def come_back() -> None:
        left = ids_of(world)
        if len(left) == len(names):
            world.clock.call_later(0, come_back)
            return
        came_back.add(max(left))
        world.init(max(left))

    world.clock.call_later(1, come_back)
    world.clock.advance(CHECK_MS)
    assert len(came_back) == 1
    assert ids_of(world) == came_back


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_what_a_failed_append_leaves_goes_with_the_next_check(world: World, batches: int) -> None:
    names = init_many(world, 100)
    for log in world.transaction_logs:
        log.batch_bytes_max = 500
        log.fail_after = batches
    expire(world)
    left = ids_of(world)
    assert left if batches < 3 else left < names
    world.restart()  # as if it was killed there
    assert ids_of(world) == left
    for log in world.transaction_logs:
        log.fail_after = None
    world.clock.advance(CHECK_MS)
    assert ids_of(world) == set()


def test_a_shard_that_resigns_in_between_is_left_alone(world: World) -> None:
    init_many(world, 2 * LOOKED_AT_PER_SLICE)
    world.clock.advance(EXPIRATION_MS - 1)
    batches = [len(list(log.batches())) for log in world.transaction_logs]

    def resign() -> None:
        for index in range(len(world.transactions.shards)):
            world.transactions.resign_shard(index)

    world.clock.call_later(1, resign)
    world.clock.advance(CHECK_MS)
    after = [len(list(log.batches())) for log in world.transaction_logs]
    assert all(0 <= b - a <= 1 for a, b in zip(batches, after, strict=True))
    with pytest.raises(Refused) as refused:
        world.init("app-1")
    assert refused.value.code is Code.NOT_COORDINATOR
