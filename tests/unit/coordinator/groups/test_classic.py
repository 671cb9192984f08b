"""Classic groups: members join, the leader assigns, and whoever falls silent is out."""

from __future__ import annotations

import random

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.classic.draft import Draft, GroupConfig
from coordinator.groups.classic.state import PREVIOUS, Group, Phase
from coordinator.groups.classic.validate import Committer
from tests.unit.coordinator.groups.members import (
    REBALANCE_MS,
    SESSION_MS,
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.world import World, code_of


@pytest.fixture
def world() -> World:
    return World()


# Joining.


def test_a_newcomer_is_given_an_id_to_join_with(world: World) -> None:
    a = FakeMember(world, "a")
    answer = a.join_once()
    assert answer is not None
    assert answer.code is Code.MEMBER_ID_REQUIRED
    assert a.join_once() is None
    world.clock.advance(0)
    assert a.generation == 1
    assert a.joined is not None
    assert a.joined.leader == a.member_id


def test_a_newcomer_of_an_old_version_is_a_member_at_once(world: World) -> None:
    a = FakeMember(world, "a", version=3)
    assert a.join_once() is None
    world.clock.advance(0)
    assert a.generation == 1


def test_an_id_that_was_never_given_is_unknown(world: World) -> None:
    a = FakeMember(world, "a")
    assert code_of(a.join_once, "invented") is Code.UNKNOWN_MEMBER_ID
    stable_group(world, FakeMember(world, "b"))
    assert code_of(a.join_once, "invented") is Code.UNKNOWN_MEMBER_ID


def test_an_id_that_is_not_used_expires_and_leaves_no_group_behind(world: World) -> None:
    a = FakeMember(world, "a")
    a.join_once()
    assert phase(world) == "Empty"
    world.clock.advance(SESSION_MS)
    assert phase(world) == "none"
    assert code_of(a.join_once) is Code.UNKNOWN_MEMBER_ID


def test_the_leader_gets_everybodys_metadata_and_each_member_its_assignment(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    assert a.joined is not None
    assert b.joined is not None
    assert {metadata for _, _, metadata in a.joined.members} == {a.metadata, b.metadata}
    assert b.joined.members == ()
    assert b.joined.leader == a.member_id
    assert (a.assignment, b.assignment) == (b"part of a", b"part of b")
    assert a.heartbeat() is b.heartbeat() is Code.NONE
    assert phase(world) == "Stable"


def test_a_member_that_the_leader_left_out_gets_nothing(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    a.join()
    b.join()
    world.clock.advance(0)
    b.sync()
    a.sync({a: b"everything"})
    assert (a.assignment, b.assignment) == (b"everything", b"")


def test_the_initial_rebalance_waits_for_more_members() -> None:
    world = World(GroupConfig(initial_rebalance_delay_ms=3000))
    a, b, c = (FakeMember(world, name) for name in "abc")
    a.join()
    world.clock.advance(2000)
    b.join()  # so the wait starts again
    world.clock.advance(2000)
    c.join()
    assert a.joined is None
    world.clock.advance(2000)  # at 6 s, and c came in the last round: one more
    assert a.joined is None
    world.clock.advance(3000)
    assert a.generation == b.generation == c.generation == 1


def test_the_initial_wait_ends_with_the_rebalance_timeout_at_the_latest() -> None:
    world = World(GroupConfig(initial_rebalance_delay_ms=3000))
    first = FakeMember(world, "first")
    first.join()
    waited_ms = 0
    while first.joined is None:
        FakeMember(world, "more").join()
        world.clock.advance(1000)
        waited_ms += 1000
    assert waited_ms <= REBALANCE_MS + 3000


def test_the_protocol_is_voted_for_among_those_that_all_have(world: World) -> None:
    a = FakeMember(world, "a", protocols=("x", "range", "sticky"))
    b = FakeMember(world, "b", protocols=("sticky", "range"))
    c = FakeMember(world, "c", protocols=("sticky", "range", "y"))
    for member in (a, b, c):
        member.join()
    world.clock.advance(0)
    assert a.joined is not None
    assert a.joined.protocol == "sticky"


def test_a_member_without_a_common_protocol_is_turned_away(world: World) -> None:
    stable_group(world, FakeMember(world, "a"))
    stranger = FakeMember(world, "b", protocols=("other",))
    assert code_of(stranger.join) is Code.INCONSISTENT_GROUP_PROTOCOL
    nothing = FakeMember(world, "c", protocols=())
    assert code_of(nothing.join) is Code.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_turns_newcomers_away() -> None:
    world = World(GroupConfig(initial_rebalance_delay_ms=0, max_size=1))
    stable_group(world, FakeMember(world, "a"))
    assert code_of(FakeMember(world, "b").join) is Code.GROUP_MAX_SIZE_REACHED


# Rebalances.


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
    assert code_of(a.leave) is Code.UNKNOWN_MEMBER_ID


# Static members.


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


# Commits by members.


@pytest.mark.parametrize("transactional", [True, False])
def test_a_commit_needs_the_exact_generation(world: World, transactional: bool) -> None:
    a = FakeMember(world, "a")
    stable_group(world, a)

    def commit(generation: int, member_id: str) -> Code:
        committer = Committer(generation=generation, member_id=member_id)
        if not transactional:
            return code_of(world.commit, 5, committer=committer)
        owner = world.init()
        world.add_group(owner)
        return code_of(world.stage, owner, 5, committer=committer)

    assert commit(a.generation, a.member_id) is Code.NONE
    assert commit(a.generation - 1, a.member_id) is Code.ILLEGAL_GENERATION
    assert commit(a.generation + 1, a.member_id) is Code.ILLEGAL_GENERATION
    assert commit(a.generation, "nobody") is Code.UNKNOWN_MEMBER_ID
    outsider = commit(-1, "")
    assert outsider is (Code.NONE if transactional else Code.UNKNOWN_MEMBER_ID)


def test_a_commit_to_a_group_that_is_not_there_needs_no_generation(world: World) -> None:
    assert code_of(world.commit, 5) is Code.NONE
    stranger = Committer(generation=3, member_id="m")
    refused = code_of(world.commit, 5, group_id="none", committer=stranger)
    assert refused is Code.ILLEGAL_GENERATION


def test_no_commit_between_generations_except_in_a_transaction(world: World) -> None:
    a = FakeMember(world, "a")
    a.join()
    world.clock.advance(0)
    assert phase(world) == "CompletingRebalance"
    assert code_of(world.commit, 5, committer=a.committer) is Code.REBALANCE_IN_PROGRESS
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 5, committer=a.committer)


# Restarts and failed appends.


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


def test_an_assignment_that_can_not_be_persisted_is_given_to_nobody(world: World) -> None:
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    a.join()
    b.join()
    world.clock.advance(0)
    b.sync()
    for log in world.group_logs:
        log.fail_after = 0
    with pytest.raises(Refused, match="the disk is full"):
        a.sync({a: b"1", b: b"2"})
    assert b.synced is None
    assert phase(world) == "CompletingRebalance"
    for log in world.group_logs:
        log.fail_after = None
    a.sync({a: b"1", b: b"2"})
    assert (a.assignment, b.assignment) == (b"1", b"2")


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
    world = World(GroupConfig(initial_rebalance_delay_ms=rng.choice([0, 3000])))
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
            for group_id, group in shard.groups.items():
                if group.phase in (Phase.STABLE, Phase.EMPTY) and group.generation > 0:
                    said = shard.state.groups[group_id]
                    assert replace_time(group) == replace_time(Group.of(said)), f"{seed=} {step=}"


def replace_time(group: Group) -> tuple[object, ...]:
    saved = group.saved()
    return saved.generation, saved.leader, saved.protocol, saved.members


@pytest.mark.parametrize("before", Phase)
@pytest.mark.parametrize("after", Phase)
def test_only_the_steps_of_the_table_are_taken(before: Phase, after: Phase) -> None:
    draft = Draft(Group("counts", phase=before), GroupConfig(), now_ms=0)
    if before in PREVIOUS[after]:
        draft.go(after)
        assert draft.group.phase is after
    else:
        with pytest.raises(AssertionError, match="can't follow"):
            draft.go(after)


def test_groups_are_listed_with_those_that_have_only_offsets(world: World) -> None:
    stable_group(world, FakeMember(world, "a"))
    world.commit(1, group_id="simple")
    found = {g.group_id: (g.protocol_type, g.phase) for g in world.groups.list_groups()}
    assert found == {"counts": ("consumer", "Stable"), "simple": ("", "Empty")}
    assert world.groups.describe("simple") is not None
    assert world.groups.describe("none") is None
