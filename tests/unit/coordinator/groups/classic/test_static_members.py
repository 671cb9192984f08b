"""Test that a static member that comes back takes its place and fences the one that had it."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from tests.unit.coordinator.groups.classic.members import (
    SESSION_MS,
    FakeMember,
    stable_group,
)
from tests.unit.coordinator.world import World, code_of


@pytest.mark.parametrize("version", [5, 9])
@pytest.mark.parametrize("leads", [True, False])
def test_a_static_member_that_comes_back_gets_its_assignment_without_a_rebalance(
    world: World, version: int, leads: bool
) -> None:
    a = FakeMember(world, "a", instance_id="i-a", version=version)
    b = FakeMember(world, "b", instance_id="i-b", version=version)
    stable_group(world, a, b)
    old, other = (a, b) if leads else (b, a)
    new = FakeMember(world, old.name, instance_id=old.instance_id, version=version)
    new.join()
    assert new.joined is not None
    assert new.generation == other.generation
    assert new.member_id != old.member_id
    if leads and version >= 9:
        assert new.joined.skip_assignment
        assert new.joined.leader == new.member_id
        assert len(new.joined.members) == 2
    else:
        assert not new.joined.skip_assignment
        assert new.joined.leader == a.member_id  # not its own: it must not assign
        assert new.joined.members == ()
    new.sync()
    assert new.assignment == b"part of " + old.name.encode()
    assert new.heartbeat() is other.heartbeat() is Code.NONE
    assert old.heartbeat() is Code.FENCED_INSTANCE_ID
    assert code_of(old.sync) is Code.FENCED_INSTANCE_ID
    assert code_of(world.commit, 1, committer=old.committer) is Code.FENCED_INSTANCE_ID
    assert code_of(old.join) is Code.FENCED_INSTANCE_ID
    assert old.leave() is Code.FENCED_INSTANCE_ID
    world.commit(1, committer=new.committer)


def test_a_static_member_stays_for_its_session_and_not_longer(world: World) -> None:
    a = FakeMember(world, "a", instance_id="i-a")
    b = FakeMember(world, "b", instance_id="i-b")
    stable_group(world, a, b)
    world.clock.advance(SESSION_MS - 1)
    assert a.heartbeat() is Code.NONE
    world.clock.advance(1)
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS


def test_a_static_member_with_other_protocols_starts_a_rebalance(world: World) -> None:
    a = FakeMember(world, "a", instance_id="i-a", protocols=("range", "sticky"))
    stable_group(world, a)
    again = FakeMember(world, "a", instance_id="i-a", protocols=("sticky",))
    again.join()
    assert again.generation == 2
    assert again.joined is not None
    assert again.joined.protocol == "sticky"


def test_a_static_member_that_comes_back_in_a_rebalance_fences_the_one_that_waits(
    world: World,
) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b", instance_id="i-b")
    stable_group(world, a, b)
    b.metadata = b"new"
    b.join()
    assert b.joined is None  # a has not joined yet
    again = FakeMember(world, "b", instance_id="i-b")
    again.join()
    assert b.joined is not None
    assert b.joined.code is Code.FENCED_INSTANCE_ID
    a.join()
    assert again.generation == a.generation


def test_a_static_member_leaves_by_its_instance_id_alone(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b", instance_id="i-b")
    stable_group(world, a, b)
    assert b.leave(by_instance=True) is Code.NONE
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS
    assert b.leave(by_instance=True) is Code.UNKNOWN_MEMBER_ID
