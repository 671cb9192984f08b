"""Test refusals and fencing of classic members in a consumer group."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance.calls import commit_offset, eventually, settled
from tests.conformance.consumers import Consumer, describe
from tests.conformance.migrants import Migrant, kind, settle
from tests.conformance.wire import Api, Client, plain


@pytest.fixture
def new(consumer: Callable[..., Consumer], six: tuple[str, UUID]) -> Consumer:
    """Return the consumer of a group that owns the whole topic."""
    made = consumer()
    made.join(six[0])
    made.acknowledge()
    return made


def joined(member: Migrant) -> Migrant:
    """Let a classic member join the consumer group and get its first assignment."""
    if not member.member_id and member.instance_id is None:
        member.ask_for_id(9)
    assert member.rejoin().error_code == Code.NONE
    member.take()
    return member


# Joining


def test_a_newcomer_is_given_an_id_that_is_not_made_of_its_client_s(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = classic()
    someone.ask_for_id(9)
    assert "conformance" not in someone.member_id
    answer = someone.rejoin()
    assert (answer.error_code, answer.member_id) == (Code.NONE, someone.member_id)
    assert (answer.generation_id, answer.leader, answer.members) == (3, "", ())


def test_before_version_4_a_newcomer_joins_at_once(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = classic()
    answer = someone.rejoin(version=3)
    assert (answer.error_code, answer.generation_id) == (Code.NONE, 3)
    assert answer.member_id


def test_any_member_id_is_as_good_as_one_that_was_given_out(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = classic(member_id="my own")
    answer = someone.rejoin()
    assert (answer.error_code, answer.member_id) == (Code.NONE, "my own")


def test_the_partitions_go_over_without_two_owners(
    classic: Callable[..., Migrant], new: Consumer, six: tuple[str, UUID]
) -> None:
    someone = joined(classic())
    assert someone.has == {}, "the consumer has not given up any of them"
    assert someone.heartbeat() == Code.NONE, "nothing to join for yet"
    new.acknowledge()
    assert len(new.assigned[six[1]]) == 3
    assert someone.heartbeat() == Code.NONE
    new.acknowledge()
    assert someone.heartbeat() == Code.REBALANCE_IN_PROGRESS
    someone.rejoin()
    assert len(someone.take()[six[0]]) == 3
    assert someone.heartbeat() == Code.NONE


def test_a_protocol_that_the_other_classic_members_do_not_have_is_refused_with_23(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    joined(classic(protocols=("range", "sticky")))
    for wrong in (
        classic(protocols=("roundrobin",)),
        classic(protocols=()),
        classic(protocol_type="connect"),
    ):
        answer = wrong.rejoin()
        assert (answer.error_code, answer.member_id) == (Code.INCONSISTENT_GROUP_PROTOCOL, "")
    answer = joined(classic(protocols=("sticky", "roundrobin"))).rejoin()
    assert answer.protocol_name == "sticky", "its own first one: nobody votes"


def test_without_classic_members_any_protocol_of_consumers_will_do(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    answer = joined(classic(protocols=("mine",))).rejoin()
    assert (answer.error_code, answer.protocol_name) == (Code.NONE, "mine")


def test_metadata_that_nobody_can_read_are_refused(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    answer = classic(member_id="x", metadata=b"\x00").rejoin()
    assert answer.error_code == Code.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_refuses_newcomers_with_81(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    for i in range(9):
        assert classic(member_id=f"m{i}").rejoin().error_code == Code.NONE
    assert classic(member_id="m1").rejoin().error_code == Code.NONE
    answer = classic().rejoin()
    assert (answer.error_code, answer.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")
    answer = classic("static").rejoin()
    assert (answer.error_code, answer.member_id) == (Code.GROUP_MAX_SIZE_REACHED, "")


# Syncing, heartbeats, commits


def test_a_wrong_generation_is_refused_with_22(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = joined(classic())
    for wrong in (someone.generation - 1, someone.generation + 1):
        stray = classic(member_id=someone.member_id, generation=wrong)
        assert stray.heartbeat() == Code.ILLEGAL_GENERATION
        assert stray.sync().error_code == Code.ILLEGAL_GENERATION


def test_a_member_that_the_group_does_not_know_is_refused_with_25(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    stranger = classic(member_id="stranger", generation=3)
    assert stranger.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert stranger.sync().error_code == Code.UNKNOWN_MEMBER_ID
    assert stranger.leave() == Code.UNKNOWN_MEMBER_ID
    static = classic("nobody", member_id="stranger", generation=3)
    assert static.rejoin().error_code == Code.UNKNOWN_MEMBER_ID
    assert static.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert static.sync().error_code == Code.UNKNOWN_MEMBER_ID
    assert static.leave(5) == Code.UNKNOWN_MEMBER_ID


def test_a_member_that_speaks_the_consumer_protocol_is_no_classic_member(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    same = classic(member_id=new.member_id, generation=new.epoch)
    assert same.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert same.sync().error_code == Code.UNKNOWN_MEMBER_ID


def test_the_one_that_was_replaced_is_fenced_with_82(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    one = joined(classic("one"))
    back = joined(classic("one"))
    assert one.member_id != back.member_id
    assert one.heartbeat() == Code.FENCED_INSTANCE_ID
    assert one.sync().error_code == Code.FENCED_INSTANCE_ID
    assert one.rejoin().error_code == Code.FENCED_INSTANCE_ID
    assert one.leave(5) == Code.FENCED_INSTANCE_ID
    assert settled(back.heartbeat) in (Code.NONE, Code.REBALANCE_IN_PROGRESS)


def test_a_sync_for_another_protocol_than_the_member_s_is_refused_with_23(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = joined(classic())
    for kind_, name in (("connect", "range"), ("consumer", "sticky"), (None, None)):
        refused = someone.sync(version=5, protocol_type=kind_, protocol_name=name)
        assert plain(refused) == {
            "error_code": Code.INCONSISTENT_GROUP_PROTOCOL,
            "protocol_type": None,
            "protocol_name": None,
            "assignment": b"",
        }
    answer = someone.sync(version=5, protocol_type="consumer", protocol_name="range")
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    before = someone.sync(version=4)
    assert (before.error_code, before.assignment) == (Code.NONE, answer.assignment)


def test_with_a_new_target_a_sync_says_27_and_so_does_a_heartbeat(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], new: Consumer
) -> None:
    someone = joined(classic())
    consumer().join(classic().topics[0])
    assert someone.sync().error_code == Code.REBALANCE_IN_PROGRESS
    assert someone.heartbeat() == Code.REBALANCE_IN_PROGRESS
    assert someone.heartbeat() == Code.REBALANCE_IN_PROGRESS, "until it joins"
    assert someone.rejoin().generation_id == 4
    assert someone.sync().error_code == Code.NONE


def test_a_classic_member_commits_with_its_generation(
    client: Client,
    classic: Callable[..., Migrant],
    new: Consumer,
    six: tuple[str, UUID],
    group: str,
) -> None:
    someone = joined(classic())

    def commit(generation: int) -> Code:
        return commit_offset(
            client, group, six[0], 1, generation=generation, member_id=someone.member_id
        )

    assert commit(someone.generation) == Code.NONE
    assert commit(someone.generation + 1) == Code.ILLEGAL_GENERATION
    assert commit(someone.generation - 1) == Code.ILLEGAL_GENERATION


# Leaving


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_classic_member_leaves_the_consumer_group(
    client: Client, classic: Callable[..., Migrant], new: Consumer, group: str, version: int
) -> None:
    someone = joined(classic())
    assert someone.leave(version) == Code.NONE
    assert someone.leave(version) == Code.UNKNOWN_MEMBER_ID
    found = describe(client, group)
    assert (found.group_epoch, [each.member_id for each in found.members]) == (4, [new.member_id])


def test_several_leave_at_once_and_the_group_gets_one_epoch_for_it(
    client: Client, classic: Callable[..., Migrant], new: Consumer, group: str
) -> None:
    first, second = joined(classic()), joined(classic("two"))
    epoch = describe(client, group).group_epoch
    asked = [
        (first.member_id, None),
        ("", "two"),
        ("", "nobody"),
        ("", None),
        ("stranger", "two"),
        (new.member_id, None),
    ]
    members = [{"member_id": who, "group_instance_id": instance} for who, instance in asked]
    answer = client.send(Api.LEAVE_GROUP, 5, group_id=group, members=members)
    assert [each.error_code for each in answer.members] == [
        Code.NONE,
        Code.NONE,
        Code.UNKNOWN_MEMBER_ID,
        Code.UNKNOWN_MEMBER_ID,
        Code.FENCED_INSTANCE_ID,
        Code.NONE,
    ]
    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID
    found = describe(client, group)
    assert (found.group_state, found.group_epoch) == ("Empty", epoch + 1)


# Timeouts


def test_a_classic_member_that_falls_silent_is_put_out_after_its_own_session_time_out(
    client: Client, classic: Callable[..., Migrant], new: Consumer, group: str
) -> None:
    joined(classic(session_timeout_ms=500))
    assert eventually(lambda: len(describe(client, group).members), 1) == 1


def test_a_classic_member_that_is_told_to_join_again_and_does_not_is_put_out(
    classic: Callable[..., Migrant], consumer: Callable[..., Consumer], new: Consumer
) -> None:
    someone = joined(classic(rebalance_timeout_ms=600))
    consumer().join(classic().topics[0])
    assert someone.heartbeat() == Code.REBALANCE_IN_PROGRESS
    code = settled(someone.heartbeat, (Code.REBALANCE_IN_PROGRESS,))
    assert code == Code.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_joins_and_does_not_sync_is_put_out(
    classic: Callable[..., Migrant], new: Consumer
) -> None:
    someone = classic(rebalance_timeout_ms=600)
    someone.ask_for_id(9)
    someone.rejoin()
    assert someone.heartbeat() == Code.NONE
    assert settled(someone.heartbeat, (Code.NONE,)) == Code.UNKNOWN_MEMBER_ID


# From one protocol to the other


def test_a_member_goes_over_with_the_member_id_that_it_has(
    client: Client,
    classic: Callable[..., Migrant],
    new: Consumer,
    six: tuple[str, UUID],
    group: str,
) -> None:
    someone = joined(classic())
    settle(someone, new)
    same = Consumer(client, group, member_id=someone.member_id)
    assert same.join(six[0]).error_code == Code.NONE
    assert someone.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert [each.member_type for each in describe(client, group).members] == [1, 1]
    assert kind(client, group).startswith("consumer ")
