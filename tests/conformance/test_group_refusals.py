"""Test which requests of classic groups are refused in each version, and with which code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import commit_offset, eventually, settled
from tests.conformance.members import Member, alone, see_rebalance, subscription, together
from tests.conformance.wire import Api, Client, plain

MORE_THAN_A_BATCH_HOLDS = 1_100_000  # bytes


@pytest.fixture
def member(connect: Callable[[], Client], group: str) -> Callable[..., Member]:
    """Return a function that makes members of one group, each on a connection of its own."""
    return lambda *arguments, **fields: Member(connect(), group, *arguments, **fields)


def state(client: Client, group: str) -> str:
    (found,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    return str(found.group_state)


def state_of_new_group(client: Client, group: str, broker: Broker) -> str:
    """Return the state of a group that a refused join has made.

    Kafka refuses before the record of the group is committed: of 600 groups that were described at
    once 3 were not there, and 10 ms later all were.
    """
    if broker.kind != "embedded":
        eventually(lambda: state(client, group), "Empty")
    return state(client, group)


# Versions


@pytest.mark.parametrize("version", range(6))
def test_an_assignment_is_brought_and_taken_in_each_version(
    member: Callable[..., Member], version: int
) -> None:
    someone = member()
    someone.join()
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    answer = someone.sync({someone.member_id: b"mine"}, version, **protocol)
    assert plain(answer) == {"error_code": Code.NONE, "assignment": b"mine", **protocol}
    someone.generation += 1
    refused = someone.sync(None, version, **protocol)
    nothing = dict.fromkeys(protocol)
    assert plain(refused) == {"error_code": Code.ILLEGAL_GENERATION, "assignment": b"", **nothing}


@pytest.mark.parametrize("version", range(5))
def test_a_member_is_alive_in_each_version(member: Callable[..., Member], version: int) -> None:
    someone = alone(member())
    assert someone.heartbeat(version) == Code.NONE
    someone.generation += 1
    assert someone.heartbeat(version) == Code.ILLEGAL_GENERATION
    assert member(member_id="stranger").heartbeat(version) == Code.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_each_version(member: Callable[..., Member], version: int) -> None:
    someone = alone(member())
    assert someone.leave(version) == Code.NONE
    assert someone.leave(version) == Code.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(10))
def test_who_is_refused_hears_its_own_member_id(
    member: Callable[..., Member], version: int
) -> None:
    stranger = member(member_id="stranger")
    stranger.warm_up()
    answer = plain(stranger.joined(stranger.post_join(version)))
    expected: dict[str, object] = {
        "error_code": Code.UNKNOWN_MEMBER_ID,
        "generation_id": -1,
        "protocol_name": None if version >= 7 else "",
        "leader": "",
        "member_id": "stranger",
        "members": [],
    }
    if version >= 7:
        expected["protocol_type"] = None
    if version >= 9:
        expected["skip_assignment"] = False
    assert answer == expected


@pytest.mark.parametrize("version", [0, 4])
def test_an_empty_group_id_is_refused_with_24_everywhere(client: Client, version: int) -> None:
    nobody = Member(client, "", member_id="x")
    assert nobody.joined(nobody.post_join(version)).error_code == Code.INVALID_GROUP_ID
    assert nobody.sync(None, version).error_code == Code.INVALID_GROUP_ID
    assert nobody.heartbeat(version) == Code.INVALID_GROUP_ID
    assert nobody.leave(version) == Code.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"),
    [(None, None), ("consumer", None), (None, "range"), ("", ""), ("connect", "range")],
)
def test_from_version_5_on_a_sync_says_type_and_protocol_or_is_refused_with_23(
    member: Callable[..., Member], protocol_type: str | None, protocol_name: str | None
) -> None:
    someone = alone(member())
    answer = someone.sync(None, version=5, protocol_type=protocol_type, protocol_name=protocol_name)
    assert answer.error_code == Code.INCONSISTENT_GROUP_PROTOCOL


# Member ids


def test_who_has_only_asked_for_an_id_leaves_an_empty_group_behind(
    client: Client, member: Callable[..., Member], group: str, broker: Broker
) -> None:
    someone = member(session_timeout_ms=500)
    someone.warm_up()
    someone.ask_for_id()
    assert state_of_new_group(client, group, broker) == "Empty"
    stranger = member(member_id=someone.member_id)
    unknown = settled(lambda: stranger.leave(), (Code.NONE,))
    assert unknown == Code.UNKNOWN_MEMBER_ID
    assert state(client, group) == "Empty"


def test_an_id_that_is_not_used_within_the_session_time_out_is_unknown(
    member: Callable[..., Member],
) -> None:
    someone, other = member(session_timeout_ms=500), alone(member())
    someone.ask_for_id()
    second = member()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(other)
    answer = other.join()  # it waits for the member that got an id, until its timeout
    assert {each.member_id for each in answer.members} == {other.member_id, second.member_id}
    assert second.joined(joining).error_code == Code.NONE
    assert someone.joined(someone.post_join()).error_code == Code.UNKNOWN_MEMBER_ID


def test_who_has_an_id_and_leaves_is_not_waited_for(member: Callable[..., Member]) -> None:
    first, second = alone(member()), member()
    late = member()
    late.ask_for_id()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    rejoining = first.post_join()
    assert member(member_id=late.member_id).leave(3) == Code.NONE
    assert first.joined(rejoining).error_code == Code.NONE
    assert second.joined(joining).error_code == Code.NONE
    assert late.joined(late.post_join()).error_code == Code.UNKNOWN_MEMBER_ID


def test_an_id_that_a_dynamic_member_was_given_is_none_for_a_static_one(
    member: Callable[..., Member],
) -> None:
    someone = member()
    someone.warm_up()
    someone.ask_for_id()
    someone.instance_id = "one"
    answer = someone.joined(someone.post_join())
    assert (answer.error_code, answer.member_id) == (Code.UNKNOWN_SERVER_ERROR, "")


def test_a_newcomer_that_is_turned_away_leaves_an_empty_group_behind(
    client: Client, member: Callable[..., Member], group: str, broker: Broker
) -> None:
    nothing = member(protocols=())
    nothing.warm_up()
    answer = nothing.joined(nothing.post_join())
    assert (answer.error_code, answer.member_id) == (Code.INCONSISTENT_GROUP_PROTOCOL, "")
    assert state_of_new_group(client, group, broker) == "Empty"


def test_a_join_with_an_unknown_id_makes_no_group(
    client: Client, member: Callable[..., Member], group: str
) -> None:
    stranger = member(member_id="stranger")
    stranger.warm_up()
    assert stranger.joined(stranger.post_join()).error_code == Code.UNKNOWN_MEMBER_ID
    assert state(client, group) == "Dead"


# Between joining and syncing


def test_between_join_and_sync_a_member_is_alive_and_may_not_commit(
    client: Client, member: Callable[..., Member], topic: str, group: str
) -> None:
    someone = member()
    someone.join()
    assert state(client, group) == "CompletingRebalance"
    assert someone.heartbeat() == Code.NONE
    code = commit_offset(
        client, group, topic, 1, generation=someone.generation, member_id=someone.member_id
    )
    assert code == Code.REBALANCE_IN_PROGRESS


def test_a_member_that_repeats_its_join_is_told_the_same_generation(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    first.join()
    second.joined(joining)
    again = first.join()
    assert (again.generation_id, len(again.members)) == (2, 2)
    assert second.join().members == ()
    first.sync({second.member_id: b"yours"})
    assert second.sync().assignment == b"yours"


def test_a_member_that_changes_before_the_assignment_is_there_begins_a_new_round(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member()), member()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    first.join()
    second.joined(joining)
    other_connection = member(
        member_id=second.member_id, generation=second.generation, user_data=b"changed"
    )
    waiting = second.post_sync()
    joining = other_connection.post_join()
    assert second.client.receive(waiting).error_code == Code.REBALANCE_IN_PROGRESS
    answer = first.join()
    assert answer.generation_id == 3
    assert subscription(b"changed") in {each.metadata for each in answer.members}
    other_connection.joined(joining)


def test_a_member_that_never_asks_for_its_assignment_is_out(
    member: Callable[..., Member],
) -> None:
    first, second = alone(member(rebalance_timeout_ms=700)), member(rebalance_timeout_ms=700)
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    first.join()
    second.joined(joining)
    first.sync({second.member_id: b"yours"})
    assert settled(first.heartbeat, (Code.NONE,)) == Code.REBALANCE_IN_PROGRESS
    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert first.join().members[0].member_id == first.member_id


def test_an_assignment_that_can_not_be_saved_is_given_to_nobody_and_all_join_again(
    client: Client, member: Callable[..., Member], group: str
) -> None:
    first, second = alone(member()), member()
    second.ask_for_id()
    joining = second.post_join()
    see_rebalance(first)
    first.join()
    second.joined(joining)
    waiting = second.post_sync()
    # Kafka may handle requests of two connections in either order: after a round trip of the first
    # member the second one's sync, which is answered with the first one's, has come.
    assert first.heartbeat() == Code.NONE
    too_much = {first.member_id: bytes(MORE_THAN_A_BATCH_HOLDS), second.member_id: b"second"}
    assert first.sync(too_much).error_code == Code.UNKNOWN_SERVER_ERROR
    refused = second.client.receive(waiting)
    assert (refused.error_code, refused.assignment) == (Code.UNKNOWN_SERVER_ERROR, b"")
    assert state(client, group) == "PreparingRebalance"
    assert first.heartbeat() == second.heartbeat() == Code.REBALANCE_IN_PROGRESS
    joining = second.post_join()
    assert first.join().generation_id == 3
    second.joined(joining)
    waiting = second.post_sync()
    assert first.sync({second.member_id: b"second"}).error_code == Code.NONE
    assert second.client.receive(waiting).assignment == b"second"


# Leaving


def test_who_leaves_is_named_by_member_id_by_instance_id_or_by_both(
    client: Client, member: Callable[..., Member], group: str
) -> None:
    first, second = alone(member("one")), member("two")
    together(first, second)
    asked = [
        ("", None),
        ("", "nobody"),
        ("stranger", None),
        (first.member_id, "two"),
        (first.member_id, "nobody"),
        (first.member_id, "one"),
        ("", "two"),
        ("", "two"),
    ]
    members = [{"member_id": who, "group_instance_id": instance} for who, instance in asked]
    answer = client.send(Api.LEAVE_GROUP, 5, group_id=group, members=members)
    assert answer.error_code == Code.NONE
    assert [(each.member_id, each.group_instance_id) for each in answer.members] == asked
    assert [each.error_code for each in answer.members] == [
        Code.UNKNOWN_MEMBER_ID,
        Code.UNKNOWN_MEMBER_ID,
        Code.UNKNOWN_MEMBER_ID,
        Code.FENCED_INSTANCE_ID,
        Code.UNKNOWN_MEMBER_ID,
        Code.NONE,
        Code.NONE,
        Code.UNKNOWN_MEMBER_ID,
    ]
    assert state(client, group) == "Empty"


def test_a_request_in_which_nobody_leaves_changes_nothing(
    client: Client, member: Callable[..., Member], group: str
) -> None:
    someone = alone(member())
    answer = client.send(Api.LEAVE_GROUP, 3, group_id=group, members=[])
    assert (answer.error_code, answer.members) == (Code.NONE, ())
    assert someone.heartbeat() == Code.NONE
