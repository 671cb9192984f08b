"""Test that a member that joins, changes, leaves or times out starts a rebalance, and none else."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from coordinator.groups.classic.group_transition import ClassicGroupConfig, GroupTransition
from coordinator.groups.classic.state import VALID_PREVIOUS_PHASES, ClassicGroup, ClassicGroupPhase
from tests.unit.coordinator.groups.classic.members import (
    REBALANCE_MS,
    SESSION_MS,
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.world import World, code_of


def test_a_newcomer_starts_a_rebalance_and_heartbeats_tell(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a)
    b.join()
    assert b.joined is None
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS
    a.join()
    assert a.generation == b.generation == 2
    assert b.heartbeat(generation=1) is Code.ILLEGAL_GENERATION


def test_a_member_that_does_not_rejoin_in_time_is_out(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a)
    b.join()
    for _ in range(REBALANCE_MS // 5000):
        a.heartbeat()  # alive, but not joining
        world.clock.advance(5000)
    assert b.generation == 2
    assert b.joined is not None
    assert b.joined.leader == b.member_id
    assert a.heartbeat(generation=1) is Code.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out_after_its_session_timeout(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    for _ in range(3):
        world.clock.advance(SESSION_MS // 2)
        code = a.heartbeat()
    assert code is Code.REBALANCE_IN_PROGRESS
    a.join()
    assert a.joined is not None
    assert len(a.joined.members) == 1


def test_a_commit_keeps_the_session_alive(world: World) -> None:
    a = FakeMember(world, "a")
    stable_group(world, a)
    for offset in range(5):
        world.clock.advance(SESSION_MS - 1)
        world.commit(offset, committer=a.committer)
    assert a.heartbeat() is Code.NONE


def test_a_member_that_never_syncs_is_out(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    a.join()
    b.join()
    world.clock.advance(0)
    a.sync({a: b"1", b: b"2"})
    for _ in range(REBALANCE_MS // 5000):
        a.heartbeat()
        b.heartbeat()  # alive, but not syncing
        world.clock.advance(5000)
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS
    assert b.heartbeat() is Code.UNKNOWN_MEMBER_ID


def test_a_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not(
    world: World,
) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    before = b.generation
    b.join()
    assert b.generation == before
    b.sync()
    assert b.assignment == b"part of b"
    a.join()
    assert a.joined is None
    assert b.heartbeat(before) is Code.REBALANCE_IN_PROGRESS


def test_a_follower_that_has_changed_starts_a_rebalance(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    b.metadata = b"something new"
    b.join()
    assert b.joined is None
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS


def test_a_sync_that_waits_is_told_of_the_next_rebalance(world: World) -> None:
    a, b, c = (FakeMember(world, name) for name in "abc")
    a.join()
    b.join()
    world.clock.advance(0)
    b.sync()
    c.join()
    assert b.synced is not None
    assert b.synced.code is Code.REBALANCE_IN_PROGRESS
    assert code_of(a.sync) is Code.REBALANCE_IN_PROGRESS


def test_a_lost_answer_to_a_join_is_given_again_while_the_generation_completes(
    world: World,
) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    a.join()
    b.join()
    world.clock.advance(0)
    before = a.joined
    a.join()
    assert a.joined == before
    assert phase(world) == "CompletingRebalance"


def test_leaving_starts_a_rebalance_and_the_last_one_leaves_the_group_empty(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    assert b.leave() is Code.NONE
    assert code_of(b.leave) is Code.NONE  # a code for the member, not for the request
    assert b.leave() is Code.UNKNOWN_MEMBER_ID
    assert a.heartbeat() is Code.REBALANCE_IN_PROGRESS
    assert a.leave() is Code.NONE
    assert phase(world) == "Empty"
    assert a.heartbeat() is Code.UNKNOWN_MEMBER_ID
    assert a.leave() is Code.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("before", ClassicGroupPhase)
@pytest.mark.parametrize("after", ClassicGroupPhase)
def test_only_the_steps_of_the_table_are_taken(
    before: ClassicGroupPhase, after: ClassicGroupPhase
) -> None:
    draft = GroupTransition(ClassicGroup("counts", phase=before), ClassicGroupConfig(), now_ms=0)
    if before in VALID_PREVIOUS_PHASES[after]:
        draft.transition_to(after)
        assert draft.group.phase is after
    else:
        with pytest.raises(AssertionError, match="can't follow"):
            draft.transition_to(after)


def test_groups_are_listed_with_those_that_have_only_offsets(world: World) -> None:
    stable_group(world, FakeMember(world, "a"))
    world.commit(1, group_id="simple")
    found = {
        g.group_id: (g.protocol_type, g.phase) for g in world.groups.list_groups_unless_loading()
    }
    assert found == {"counts": ("consumer", "Stable"), "simple": ("", "Empty")}
    assert world.groups.describe_classic_group("simple").phase == "Empty"
    assert code_of(world.groups.describe_classic_group, "none") is Code.GROUP_ID_NOT_FOUND
