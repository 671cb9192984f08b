"""Test that a static member that comes back takes its place again and fences the former one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance.calls import commit_offset
from tests.conformance.members import Member, alone, see_rebalance, together
from tests.conformance.wire import Api, Client


@pytest.fixture
def member(connect: Callable[[], Client], group: str) -> Callable[..., Member]:
    """Return a function that makes members of one group, each on a connection of its own."""
    return lambda instance_id, **fields: Member(connect(), group, instance_id, **fields)


def test_a_static_member_joins_at_once_and_its_id_begins_with_the_instance_id(
    member: Callable[..., Member],
) -> None:
    someone = member("one")
    answer = someone.join()
    assert answer.error_code == Code.NONE
    assert someone.member_id.startswith("one-")
    assert [each.group_instance_id for each in answer.members] == ["one"]


def test_a_follower_that_comes_back_gets_a_new_id_the_same_assignment_and_no_rebalance(
    member: Callable[..., Member],
) -> None:
    leader, old = alone(member("one")), member("two")
    together(leader, old)
    back = member("two")
    answer = back.join()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, old.generation)
    assert back.member_id not in ("", old.member_id)
    assert answer.leader == leader.member_id
    assert answer.members == ()
    assert back.sync().assignment == b"second"
    assert back.heartbeat() == leader.heartbeat() == Code.NONE


def test_the_one_that_was_replaced_is_fenced_with_82_everywhere(
    member: Callable[..., Member], topic: str, group: str
) -> None:
    leader, old = alone(member("one")), member("two")
    together(leader, old)
    member("two").join()
    assert old.heartbeat() == Code.FENCED_INSTANCE_ID
    assert old.sync().error_code == Code.FENCED_INSTANCE_ID
    assert old.joined(old.post_join()).error_code == Code.FENCED_INSTANCE_ID
    code = commit_offset(
        old.client,
        group,
        topic,
        1,
        generation=old.generation,
        member_id=old.member_id,
        instance_id="two",
    )
    assert code == Code.FENCED_INSTANCE_ID


def test_an_instance_id_that_the_group_does_not_know_is_refused_with_25(
    member: Callable[..., Member],
) -> None:
    someone = alone(member("one"))
    stranger = member("two", member_id=someone.member_id, generation=someone.generation)
    assert stranger.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert stranger.sync().error_code == Code.UNKNOWN_MEMBER_ID


def test_a_leader_that_comes_back_unchanged_keeps_the_generation_and_the_assignment(
    member: Callable[..., Member],
) -> None:
    old, follower = alone(member("one")), member("two")
    together(old, follower)
    back = member("one")
    answer = back.join()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, old.generation)
    assert back.sync().assignment == b"first"
    assert follower.heartbeat() == back.heartbeat() == Code.NONE
    assert old.heartbeat() == Code.FENCED_INSTANCE_ID


def test_before_version_9_a_leader_that_comes_back_is_not_told_that_it_leads(
    member: Callable[..., Member],
) -> None:
    """Check that an old leader isn't told that it leads, upon which it would assign anew."""
    old = alone(member("one"))
    back = member("one")
    answer = back.join(version=5)
    assert answer.leader == old.member_id != back.member_id
    assert answer.members == ()


def test_from_version_9_on_a_leader_that_comes_back_is_told_to_skip_the_assignment(
    member: Callable[..., Member],
) -> None:
    """Check that the leader gets the members, whose topics it must watch (KIP-814)."""
    alone(member("one"))
    back = member("one")
    answer = back.join(version=9)
    assert answer.leader == back.member_id
    assert answer.skip_assignment
    assert [each.member_id for each in answer.members] == [back.member_id]
    assert back.sync().assignment == b"all"


def test_a_static_member_that_comes_back_with_other_protocols_begins_a_new_round(
    member: Callable[..., Member],
) -> None:
    leader = alone(member("one", protocols=("range", "sticky")))
    follower = member("two", protocols=("range", "sticky"))
    together(leader, follower)
    back = member("two", protocols=("sticky",))
    joining = back.post_join()
    see_rebalance(leader)
    assert leader.join().protocol_name == "sticky"
    assert back.joined(joining).generation_id == 3


def test_a_static_member_that_comes_back_with_other_metadata_keeps_the_generation(
    member: Callable[..., Member],
) -> None:
    leader, old = alone(member("one")), member("two")
    together(leader, old)
    back = member("two", user_data=b"changed")
    assert back.join().generation_id == old.generation
    assert leader.heartbeat() == Code.NONE


def test_a_static_member_that_comes_back_during_a_round_takes_part_in_it(
    member: Callable[..., Member],
) -> None:
    leader, old = alone(member("one")), member("two")
    together(leader, old)
    third = member("three")
    joining = [third.post_join()]
    see_rebalance(leader)
    back = member("two")
    joining.append(back.post_join())
    answer = leader.join()
    assert answer.generation_id == 3
    assert {each.group_instance_id for each in answer.members} == {"one", "two", "three"}
    assert third.joined(joining[0]).error_code == Code.NONE
    assert back.joined(joining[1]).error_code == Code.NONE


def test_a_static_member_is_removed_by_its_instance_id_alone(
    connect: Callable[[], Client], member: Callable[..., Member], group: str
) -> None:
    leader, follower = alone(member("one")), member("two")
    together(leader, follower)
    response = connect().send(
        Api.LEAVE_GROUP,
        3,
        group_id=group,
        members=[
            {"member_id": "", "group_instance_id": "two"},
            {"member_id": "", "group_instance_id": "nobody"},
            {"member_id": "someone else", "group_instance_id": "one"},
        ],
    )
    codes = {each.group_instance_id: each.error_code for each in response.members}
    assert codes == {
        "two": Code.NONE,
        "nobody": Code.UNKNOWN_MEMBER_ID,
        "one": Code.FENCED_INSTANCE_ID,
    }
    assert leader.heartbeat() == Code.REBALANCE_IN_PROGRESS
    assert follower.heartbeat() == Code.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_longer_than_its_session_is_removed(
    member: Callable[..., Member],
) -> None:
    leader, follower = alone(member("one")), member("two", session_timeout_ms=500)
    together(leader, follower)
    see_rebalance(leader)
    answer = leader.join()
    assert [each.group_instance_id for each in answer.members] == ["one"]
