"""Test that classic groups rebalance in rounds, and what members get that missed one."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance.calls import settled
from tests.conformance.members import (
    Member,
    alone,
    see_rebalance,
    subscription,
    together,
)
from tests.conformance.wire import Api, Client


@pytest.fixture
def member(connect: Callable[[], Client], group: str) -> Callable[..., Member]:
    """Return a function that makes members of one group, each on a connection of its own."""
    return lambda **fields: Member(connect(), group, **fields)


# Joining


def test_the_first_join_of_a_member_is_refused_with_79_and_tells_its_id(
    member: Callable[..., Member],
) -> None:
    someone = member()
    someone.warm_up()
    someone.ask_for_id(version=4)
    answer = someone.joined(someone.post_join(version=4))
    assert (answer.error_code, answer.member_id) == (Code.NONE, someone.member_id)
    assert someone.member_id.startswith("conformance-"), "it begins with the client's id"


def test_before_version_4_a_member_joins_at_once(member: Callable[..., Member]) -> None:
    someone = member()
    someone.warm_up()
    answer = someone.joined(someone.post_join(version=3))
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 1)
    assert answer.member_id


@pytest.mark.parametrize("version", range(10))
def test_one_member_joins_and_leads_at_each_version(
    member: Callable[..., Member], version: int
) -> None:
    someone = member(user_data=b"mine")
    answer = someone.join(version)
    assert answer.error_code == Code.NONE
    assert (answer.generation_id, answer.protocol_name) == (1, "range")
    assert answer.leader == answer.member_id == someone.member_id
    (listed,) = answer.members
    assert (listed.member_id, listed.metadata) == (someone.member_id, subscription(b"mine"))


def test_two_members_get_what_the_leader_assigned_to_them(member: Callable[..., Member]) -> None:
    first, second = alone(member()), member()
    together(first, second)
    assert (first.generation, second.generation) == (2, 2)
    assert first.heartbeat() == second.heartbeat() == Code.NONE


def test_only_the_leader_is_told_who_the_members_are(member: Callable[..., Member]) -> None:
    first, second = alone(member(user_data=b"1")), member(user_data=b"2")
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    to_leader = first.join()
    to_follower = second.joined(joining)
    told = {each.member_id: each.metadata for each in to_leader.members}
    assert told == {
        first.member_id: subscription(b"1"),
        second.member_id: subscription(b"2"),
    }
    assert to_follower.members == ()
    assert to_follower.leader == first.member_id


def test_a_protocol_that_all_members_know_is_chosen_by_their_votes(
    member: Callable[..., Member],
) -> None:
    first = alone(member(protocols=("sticky", "range")))
    second = member(protocols=("range", "sticky"))
    third = member(protocols=("range",))
    for each in (second, third):
        each.ask_for_id()
    numbers = [second.post_join(), third.post_join()]
    see_rebalance(first)
    answer = first.join()
    assert answer.protocol_name == "range"
    assert all(
        each.joined(number).protocol_name == "range"
        for each, number in zip((second, third), numbers, strict=True)
    )


def test_a_member_that_shares_no_protocol_with_the_group_is_refused_with_23(
    member: Callable[..., Member],
) -> None:
    alone(member(protocols=("range",)))
    other_name = member(protocols=("sticky",))
    assert other_name.joined(other_name.post_join()).error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    other_type = member(protocol_type="connect")
    assert other_type.joined(other_type.post_join()).error_code == Code.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_without_any_protocol_is_refused_with_23(member: Callable[..., Member]) -> None:
    nothing = member(protocols=())
    nothing.warm_up()
    assert nothing.joined(nothing.post_join()).error_code == Code.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("timeout_ms", [0, 499, 1_800_001])
def test_a_session_time_out_outside_the_broker_s_bounds_is_refused_with_26(
    member: Callable[..., Member], timeout_ms: int
) -> None:
    someone = member(session_timeout_ms=timeout_ms)
    someone.warm_up()
    answer = someone.joined(someone.post_join())
    assert answer.error_code == Code.INVALID_SESSION_TIMEOUT


def test_a_join_with_an_id_that_the_group_does_not_know_is_refused_with_25(
    member: Callable[..., Member],
) -> None:
    stranger = member(member_id="stranger")
    stranger.warm_up()
    assert stranger.joined(stranger.post_join()).error_code == Code.UNKNOWN_MEMBER_ID
    alone(member())
    assert stranger.joined(stranger.post_join()).error_code == Code.UNKNOWN_MEMBER_ID


def test_an_empty_group_id_is_refused_with_24(connect: Callable[[], Client]) -> None:
    nowhere = Member(connect(), "")
    assert nowhere.joined(nowhere.post_join()).error_code == Code.INVALID_GROUP_ID


# Rebalances


def test_a_join_makes_the_others_heartbeats_say_27(member: Callable[..., Member]) -> None:
    first, second = alone(member()), member()
    assert first.heartbeat() == Code.NONE
    second.ask_for_id()
    assert first.heartbeat() == Code.NONE, "a member that only asked for its id is not in yet"
    joining = second.post_join()
    see_rebalance(first)
    assert first.sync().error_code == Code.REBALANCE_IN_PROGRESS
    first.join()
    assert second.joined(joining).error_code == Code.NONE


def test_a_leader_that_joins_again_begins_a_new_round(member: Callable[..., Member]) -> None:
    leader = alone(member())
    answer = leader.join()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 2)


def test_a_follower_that_joins_again_unchanged_gets_the_same_generation(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    together(first, second)
    answer = second.join()
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 2)
    assert first.heartbeat() == Code.NONE


def test_a_follower_that_joins_again_with_other_metadata_begins_a_new_round(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    together(first, second)
    second.user_data = b"changed"
    joining = second.post_join()
    see_rebalance(first)
    told = {each.member_id: each.metadata for each in first.join().members}
    assert told[second.member_id] == subscription(b"changed")
    assert second.joined(joining).generation_id == 3


def test_a_follower_waits_for_the_leader_s_assignment(member: Callable[..., Member]) -> None:
    first, second = alone(member()), member()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    first.join()
    second.joined(joining)
    waiting = second.post_sync()
    first.sync({second.member_id: b"yours"})
    assert second.client.receive(waiting).assignment == b"yours"


def test_a_member_that_the_leader_forgot_gets_an_empty_assignment(
    member: Callable[..., Member],
) -> None:
    someone = member()
    someone.join()
    assert someone.sync({}).assignment == b""


def test_a_sync_that_is_repeated_gets_the_same_assignment(member: Callable[..., Member]) -> None:
    someone = alone(member(), assignment=b"mine")
    assert someone.sync().assignment == b"mine"
    assert someone.sync({someone.member_id: b"something else"}).assignment == b"mine"


def test_a_member_that_does_not_join_the_round_in_time_is_left_out(
    member: Callable[..., Member],
) -> None:
    first = alone(member(rebalance_timeout_ms=600))
    second = member(rebalance_timeout_ms=600)
    second.ask_for_id()
    begin = time.monotonic()
    answer = second.joined(second.post_join())
    assert time.monotonic() - begin >= 0.55
    assert answer.leader == second.member_id
    assert [each.member_id for each in answer.members] == [second.member_id]
    assert first.heartbeat() == Code.UNKNOWN_MEMBER_ID


def test_a_member_that_stops_heartbeating_is_removed_and_the_rest_rebalance(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member(session_timeout_ms=500)
    together(first, second)
    assert settled(first.heartbeat, (Code.NONE,)) == Code.REBALANCE_IN_PROGRESS
    answer = first.join()
    assert [each.member_id for each in answer.members] == [first.member_id]
    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID


# Refusals


def test_a_wrong_generation_is_refused_with_22(member: Callable[..., Member]) -> None:
    someone = alone(member())
    for wrong in (someone.generation - 1, someone.generation + 1):
        someone.generation = wrong
        assert someone.heartbeat() == Code.ILLEGAL_GENERATION
        assert someone.sync().error_code == Code.ILLEGAL_GENERATION
        someone.generation = 1


def test_an_unknown_member_is_refused_with_25_everywhere(member: Callable[..., Member]) -> None:
    alone(member())
    stranger = member(member_id="stranger", generation=1)
    assert stranger.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert stranger.sync().error_code == Code.UNKNOWN_MEMBER_ID
    assert stranger.leave() == Code.UNKNOWN_MEMBER_ID


def test_in_a_group_that_does_not_exist_every_member_is_unknown(
    member: Callable[..., Member],
) -> None:
    stranger = member(member_id="stranger", generation=1)
    assert stranger.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert stranger.sync().error_code == Code.UNKNOWN_MEMBER_ID
    assert stranger.leave() == Code.UNKNOWN_MEMBER_ID


def test_a_sync_for_another_protocol_than_the_group_s_is_refused_with_23(
    member: Callable[..., Member],
) -> None:
    someone = member()
    someone.join()
    wrong_name = someone.sync(version=5, protocol_type="consumer", protocol_name="sticky")
    assert wrong_name.error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    wrong_type = someone.sync(version=5, protocol_type="connect", protocol_name="range")
    assert wrong_type.error_code == Code.INCONSISTENT_GROUP_PROTOCOL
    right = someone.sync(version=5, protocol_type="consumer", protocol_name="range")
    assert (right.error_code, right.protocol_name) == (Code.NONE, "range")


# Leaving


def test_a_member_that_leaves_is_unknown_and_the_rest_rebalance(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    together(first, second)
    assert second.leave() == Code.NONE
    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert second.leave() == Code.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == Code.REBALANCE_IN_PROGRESS
    answer = first.join()
    assert [each.member_id for each in answer.members] == [first.member_id]


def test_generations_go_on_when_a_group_was_empty(member: Callable[..., Member]) -> None:
    first = alone(member())
    assert first.leave() == Code.NONE
    second = member()
    answer = second.join()
    assert answer.generation_id > 2, "the empty group took a generation, too"


def test_several_members_are_removed_by_one_request(
    connect: Callable[[], Client], member: Callable[..., Member], group: str
) -> None:
    first, second = alone(member()), member()
    together(first, second)
    response = connect().send(
        Api.LEAVE_GROUP,
        3,
        group_id=group,
        members=[
            {"member_id": first.member_id, "group_instance_id": None},
            {"member_id": "stranger", "group_instance_id": None},
        ],
    )
    assert response.error_code == Code.NONE
    codes = {each.member_id: each.error_code for each in response.members}
    assert codes == {first.member_id: Code.NONE, "stranger": Code.UNKNOWN_MEMBER_ID}
    assert second.heartbeat() == Code.REBALANCE_IN_PROGRESS


def test_of_a_group_that_does_not_exist_each_member_that_leaves_is_unknown(
    client: Client, group: str
) -> None:
    members = [{"member_id": each, "group_instance_id": None} for each in ("one", "two")]
    response = client.send(Api.LEAVE_GROUP, 3, group_id=group, members=members)
    assert response.error_code == Code.NONE
    assert [each.error_code for each in response.members] == [Code.UNKNOWN_MEMBER_ID] * 2


def test_a_round_that_all_have_left_goes_on_for_one_with_an_id_and_with_any_protocol(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    late, other = member(protocols=("range", "sticky")), member(protocols=("sticky",))
    late.ask_for_id()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    assert first.leave() == Code.NONE
    assert member(member_id=second.member_id).leave() == Code.NONE
    assert second.client.receive(joining).error_code == Code.UNKNOWN_MEMBER_ID
    other.ask_for_id()
    joining = other.post_join()
    assert late.joined(late.post_join()).protocol_name == "sticky"
    assert other.joined(joining).error_code == Code.NONE


# Descriptions


def test_a_stable_group_is_described_with_its_members(
    connect: Callable[[], Client], member: Callable[..., Member], group: str
) -> None:
    someone = alone(member(user_data=b"mine"), assignment=b"all of it")
    (found,) = connect().send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert (found.error_code, found.group_state) == (Code.NONE, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (listed,) = found.members
    assert (listed.member_id, listed.client_id) == (someone.member_id, "conformance")
    assert listed.member_metadata == subscription(b"mine")
    assert listed.member_assignment == b"all of it"
    someone.leave()
    (found,) = connect().send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert (found.group_state, found.members) == ("Empty", ())


def test_a_group_that_does_not_exist_is_described_as_dead(client: Client, group: str) -> None:
    (found,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert (found.error_code, found.group_state) == (Code.NONE, "Dead")


def test_groups_are_listed_with_their_states(
    connect: Callable[[], Client], member: Callable[..., Member], group: str
) -> None:
    alone(member())
    response = connect().send(Api.LIST_GROUPS, 4)
    found = {each.group_id: (each.protocol_type, each.group_state) for each in response.groups}
    assert found[group] == ("consumer", "Stable")
