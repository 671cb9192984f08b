"""Test that a group survives a restart, and that a failed append leaves it unchanged."""

from __future__ import annotations

import random

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from coordinator.groups.classic.state import ClassicGroupPhase
from tests.unit.coordinator.groups.classic.members import (
    SESSION_MS,
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.groups.saved_groups import SavedGroups
from tests.unit.coordinator.world import World, code_of


def test_members_go_on_after_a_restart_without_a_rebalance(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b", instance_id="i-b")
    stable_group(world, a, b)
    world.restart()
    assert phase(world) == "Stable"
    assert a.heartbeat() is b.heartbeat() is Code.NONE
    b.sync()
    assert b.assignment == b"part of b"
    world.commit(3, committer=a.committer)
    again = FakeMember(world, "b", instance_id="i-b")
    again.join()
    again.sync()
    assert again.assignment == b"part of b"
    world.restart()
    assert again.heartbeat() is Code.NONE
    assert b.heartbeat() is Code.FENCED_INSTANCE_ID


def test_members_that_do_not_come_back_after_a_restart_are_out(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    world.restart()
    world.clock.advance(SESSION_MS - 1)
    a.heartbeat()
    world.clock.advance(1)
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS


def test_a_rebalance_under_way_is_lost_in_a_restart_and_the_generation_before_is_back(
    world: World,
) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a)
    b.join()
    a.join()
    assert a.generation == 2
    world.restart()
    assert a.heartbeat() is Code.ILLEGAL_GENERATION
    assert a.heartbeat(generation=1) is Code.NONE
    assert code_of(b.join) is Code.UNKNOWN_MEMBER_ID


def test_an_assignment_that_can_not_be_persisted_is_given_to_nobody_and_all_join_again(
    world: World,
) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    a.join()
    b.join()
    world.clock.advance(0)
    b.sync()
    for log in world.group_logs:
        log.fail_after = 0
    with pytest.raises(Refused, match="the disk is full"):
        a.sync({a: b"1", b: b"2"})
    assert b.synced is not None
    assert b.synced.code is Code.KAFKA_STORAGE_ERROR
    assert phase(world) == "PreparingRebalance"
    for log in world.group_logs:
        log.fail_after = None
    stable_group(world, a, b)
    assert (a.generation, a.assignment, b.assignment) == (2, b"part of a", b"part of b")


def test_a_static_place_that_can_not_be_persisted_stays_with_its_member(world: World) -> None:
    a = FakeMember(world, "a", instance_id="i-a")
    stable_group(world, a)
    for log in world.group_logs:
        log.fail_after = 0
    again = FakeMember(world, "a", instance_id="i-a")
    with pytest.raises(Refused):
        again.join()
    assert a.heartbeat() is Code.NONE


@pytest.mark.parametrize("seed", range(15))
def test_a_stable_group_is_what_its_record_says_after_any_history(seed: int) -> None:
    rng = random.Random(seed)
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=rng.choice([0, 3000])))
    saved_groups = SavedGroups(world.group_logs)
    members = [
        FakeMember(world, f"m{i}", instance_id=f"i{i}" if i % 2 else None, version=9 - i)
        for i in range(5)
    ]
    for step in range(300):
        member = rng.choice(members)
        world.group_logs[0].fail_after = world.group_logs[1].fail_after = (
            0 if rng.random() < 0.05 else None
        )
        try:
            match rng.randrange(8):
                case 0 | 1 if member.joined is not None or not member.member_id:
                    member.join()
                case 2:
                    member.member_id = ""
                    member.join()
                case 3 | 4 if member.joined is not None:
                    member.sync({found: bytes([step % 256]) for found in members})
                case 5 if member.joined is not None:
                    member.heartbeat()
                case 6 if rng.random() < 0.3:
                    member.leave()
                case _:
                    world.clock.advance(rng.randrange(SESSION_MS))
        except Refused:
            pass
        for shard in world.groups.shards:
            for group_id, group in shard.state.classic.items():
                if group.phase in (ClassicGroupPhase.STABLE, ClassicGroupPhase.EMPTY):
                    assert group.to_record() == saved_groups.read_logs()[group_id], (
                        f"{seed=} {step=}"
                    )
