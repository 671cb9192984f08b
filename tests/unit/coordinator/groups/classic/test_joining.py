"""Test joining a classic group: member ids, initial delay, protocols, and each response."""

from __future__ import annotations

from coordinator.errors import Code
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from tests.unit.coordinator.groups.classic.members import (
    REBALANCE_MS,
    SESSION_MS,
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.world import World, code_of


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


def test_an_id_that_is_not_used_expires_and_the_empty_group_stays(world: World) -> None:
    a = FakeMember(world, "a")
    a.join_once()
    assert phase(world) == "Empty"
    world.clock.advance(SESSION_MS)
    assert phase(world) == "Empty"
    assert code_of(a.join_once) is Code.UNKNOWN_MEMBER_ID
    world.restart()
    assert phase(world) == "Empty"


def test_a_newcomer_that_is_turned_away_makes_the_group_all_the_same(world: World) -> None:
    answer = FakeMember(world, "a", protocols=()).join_once()
    assert answer is not None
    assert answer.code is Code.INCONSISTENT_GROUP_PROTOCOL
    assert phase(world) == "Empty"


def test_a_group_that_cannot_be_persisted_is_not_made(world: World) -> None:
    for log in world.group_logs:
        log.fail_after = 0
    a = FakeMember(world, "a")
    assert code_of(a.join_once) is Code.KAFKA_STORAGE_ERROR
    assert phase(world) == "none"


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
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=3000))
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
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=3000))
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
    for protocols in (("other",), ()):
        answer = FakeMember(world, "b", protocols=protocols).join_once()
        assert answer is not None
        assert answer.code is Code.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_turns_newcomers_away() -> None:
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=0, max_size=1))
    a = FakeMember(world, "a")
    stable_group(world, a)
    for newcomer in (FakeMember(world, "b"), FakeMember(world, "c", protocols=())):
        answer = newcomer.join_once()
        assert answer is not None
        assert (answer.code, answer.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")
    assert a.heartbeat() is Code.NONE


def test_of_those_that_have_an_id_the_last_to_join_is_one_too_many() -> None:
    """Check that member ids are given to all, and the one free place to the first that joins."""
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=0, max_size=1))
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    for member in (a, b):
        member.join_once()
    assert b.join_once() is None
    full = a.join_once()
    assert full is not None
    assert full.code is Code.GROUP_MAX_SIZE_REACHED
    world.clock.advance(0)
    assert b.generation == 1
    assert code_of(a.join_once, a.member_id) is Code.NONE


def test_in_a_round_the_member_that_comes_last_to_a_full_group_is_out() -> None:
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    a, b, c = (FakeMember(world, name) for name in "abc")
    stable_group(world, a)
    b.join_once()
    c.join_once()  # room for one of them, and both have an id
    b.join_once()
    c.join_once()
    assert c.joined is None
    full = a.join_once()
    assert full is not None
    assert full.code is Code.GROUP_MAX_SIZE_REACHED
    world.clock.advance(REBALANCE_MS)
    assert b.generation == c.generation == 2


def test_a_group_that_is_larger_than_it_may_be_by_now_rebalances_when_it_is_loaded() -> None:
    world = World(ClassicGroupConfig(initial_rebalance_delay_ms=0))
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    world.group_config = ClassicGroupConfig(initial_rebalance_delay_ms=0, max_size=1)
    world.restart()
    assert phase(world) == "PreparingRebalance"
    assert a.heartbeat() is b.heartbeat() is Code.REBALANCE_IN_PROGRESS
    assert a.join_once() is None
    full = b.join_once()
    assert full is not None
    assert full.code is Code.GROUP_MAX_SIZE_REACHED
    world.clock.advance(REBALANCE_MS)
    assert a.joined is not None
    assert [member_id for member_id, _, _ in a.joined.members] == [a.member_id]


def test_an_id_that_was_given_to_a_dynamic_member_is_none_for_a_static_one(world: World) -> None:
    a = FakeMember(world, "a")
    a.join_once()
    a.instance_id = "i-a"
    assert code_of(a.join_once) is Code.UNKNOWN_SERVER_ERROR
