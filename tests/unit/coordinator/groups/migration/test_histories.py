"""Test groups of members of both protocols in random histories with failures and restarts.

After each step the group has one type, and its persisted state equals the one in memory.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from coordinator.assignors.consumer_protocol import decode_assignment, encode_assignment
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.groups.service import GroupService
from tests.unit.coordinator.groups.classic.members import SESSION_MS
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.groups.migration.migrants import ALL, GROUP, TOPIC, Migrant, consumer
from tests.unit.coordinator.groups.saved_groups import SavedGroups
from tests.unit.coordinator.world import World

NOTHING = encode_assignment([])


def act_as_classic(rng: random.Random, member: Migrant, members: list[Migrant]) -> None:
    match rng.randrange(8):
        case 0 | 1:
            member.join()
        case 2:
            member.member_id, member.has = "", []
            member.join()
        case 3 if member.joined is not None:
            parts = rng.sample(ALL, len(ALL))
            member.sync_with({each: parts[2 * i : 2 * i + 2] for i, each in enumerate(members)})
        case 4 | 5 if member.joined is not None:
            if member.heartbeat() is Code.REBALANCE_IN_PROGRESS:
                member.join()
        case 6 if member.joined is not None:
            member.sync()
            if member.synced is not None and member.synced.code is Code.NONE:
                member.has, _ = decode_assignment(member.synced.assignment or NOTHING)
        case 7 if member.member_id:
            member.leave()
        case _:
            pass


def act_as_consumer(rng: random.Random, member: Consumer) -> None:
    match rng.randrange(6):
        case 0 | 1:
            member.join(*rng.choice([(TOPIC,), (TOPIC, "words")]))
        case 2 | 3:
            member.beat()
        case 4:
            member.leave()
        case 5 if member.instance_id is not None:
            member.leave(to_come_back=True)
        case _:
            pass


def check(world: World, saved_groups: SavedGroups, where: str) -> None:
    """Check that the group has one type, and at rest is what its last record says."""
    shard = world.groups.shards[world.groups.partition_of(GROUP)]
    is_classic, is_consumer = GROUP in shard.state.classic, GROUP in shard.state.consumer
    assert not (is_classic and is_consumer), where
    saved = saved_groups.read_logs()
    assert is_classic == (GROUP in saved), where
    if is_classic and is_at_rest(shard.state.classic[GROUP]):
        assert shard.state.classic[GROUP].to_record() == saved[GROUP], where


def is_at_rest(group: ClassicGroup) -> bool:
    """Return whether a group is all in its record; a rebalance under way is in none."""
    return group.phase in (ClassicGroupPhase.STABLE, ClassicGroupPhase.EMPTY)


def check_reload(world: World, where: str) -> None:
    again = World()
    again.clock, again.topics, again.group_logs = world.clock, world.topics, world.group_logs
    reloaded = _service(again)
    for live, loaded in zip(world.groups.shards, reloaded.shards, strict=True):
        assert loaded.state.classic.keys() == live.state.classic.keys(), where
        for group_id, group in live.state.classic.items():
            if is_at_rest(group):
                assert loaded.state.classic[group_id].to_record() == group.to_record(), where
        assert loaded.state.consumer == live.state.consumer, where
    reloaded.close()


def _service(world: World) -> GroupService:
    world.restart()
    return world.groups


@pytest.mark.parametrize("seed", range(12))
def test_a_group_is_of_one_kind_and_its_log_says_so(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    world.topics.create(TOPIC, 6)
    olds = [Migrant(world, f"c{i}", instance_id="one" if i == 0 else None) for i in range(3)]
    news = [consumer(world, f"n{i}", "one" if i == 0 else None) for i in range(3)]
    kinds: set[str] = set()
    saved_groups = SavedGroups(world.group_logs)
    for step in range(250):
        for log in world.group_logs:
            log.fail_after = 0 if rng.random() < 0.04 else None
        with contextlib.suppress(Refused):
            match rng.randrange(10):
                case 0:
                    world.clock.advance(rng.choice([10, 1_000, SESSION_MS]))
                case 1 if rng.random() < 0.1:
                    world.restart()
                case n if n < 7:
                    act_as_classic(rng, rng.choice(olds), olds)
                case _:
                    act_as_consumer(rng, rng.choice(news))
        if step % 40 == 39:  # the group is converted back
            for each in news:
                with contextlib.suppress(Refused):
                    each.leave()
        check(world, saved_groups, f"{seed=} {step=}")
        kinds.update(each.kind for each in world.groups.list_groups_unless_loading())
        if step % 50 == 0:
            check_reload(world, f"{seed=} {step=}")
    check_reload(world, f"{seed=}")
    assert kinds == {"classic", "consumer"}, f"{seed=}: neither way was gone"
