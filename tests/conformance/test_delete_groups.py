"""Test that DeleteGroups deletes a group without members, and all that it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance.calls import (
    commit_offset,
    committed,
    delete_groups,
    fetch_offset,
    fetch_offsets,
    listed_groups,
    settled_offset,
)
from tests.conformance.commits import commit
from tests.conformance.consumers import Consumer, await_known
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_group_goes_with_its_offsets(
    client: Client, group: str, topic: str, other_topic: str, version: int
) -> None:
    commit_offset(client, group, topic, 5)
    commit_offset(client, group, other_topic, 6)
    assert delete_groups(client, group, version=version) == {group: Code.NONE}
    assert group not in listed_groups(client)
    assert fetch_offsets(client, group, None).topics == ()
    assert delete_groups(client, group, version=version) == {group: Code.GROUP_ID_NOT_FOUND}


def test_a_group_that_its_members_have_left_goes_for_good(
    client: Client, group: str, topic: str
) -> None:
    member = alone(Member(client, group, topics=(topic,)))
    commit_offset(client, group, topic, 5, generation=member.generation, member_id=member.member_id)
    assert delete_groups(client, group) == {group: Code.NON_EMPTY_GROUP}
    assert committed(client, group, topic) == 5
    member.leave()
    assert delete_groups(client, group) == {group: Code.NONE}
    assert group not in listed_groups(client)
    assert committed(client, group, topic) == -1
    (described,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert described.group_state == "Dead"
    again = alone(Member(client, group))
    assert again.generation == 1


def test_a_group_in_a_rebalance_is_refused_with_68(client: Client, group: str) -> None:
    member = Member(client, group)
    member.join()
    assert delete_groups(client, group) == {group: Code.NON_EMPTY_GROUP}


def test_each_group_is_answered_for_itself_and_once(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    one, busy, none = unique("group"), unique("group"), unique("group")
    commit_offset(client, one, topic, 5)
    alone(Member(client, busy))
    response = client.send(Api.DELETE_GROUPS, 2, groups_names=[none, one, busy, one])
    found = [(each.group_id, each.error_code) for each in response.results]
    assert sorted(found) == sorted(
        [(none, Code.GROUP_ID_NOT_FOUND), (one, Code.NONE), (busy, Code.NON_EMPTY_GROUP)]
    )
    assert delete_groups(client) == {}


def test_offsets_that_a_transaction_holds_go_too(
    client: Client, group: str, topic: str, other_topic: str, transactional_id: str
) -> None:
    commit_offset(client, group, topic, 5)
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    producer.stage_offset(group, other_topic, 11)
    assert delete_groups(client, group) == {group: Code.NONE}
    assert fetch_offset(client, group, topic, stable=True).error_code == Code.NONE
    producer.commit()
    assert settled_offset(client, group, topic) == -1
    assert settled_offset(client, group, other_topic) == -1


def test_a_group_that_only_an_open_transaction_has_offsets_of_can_be_deleted(
    client: Client, group: str, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    assert listed_groups(client)[group] == ("", "Empty")
    assert delete_groups(client, group) == {group: Code.NONE}
    assert group not in listed_groups(client)
    producer.commit()
    assert settled_offset(client, group, topic) == -1


def test_a_group_whose_transaction_was_aborted_is_still_one(
    client: Client, group: str, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    producer.abort()
    assert settled_offset(client, group, topic) == -1
    assert listed_groups(client)[group] == ("", "Empty")
    assert delete_groups(client, group) == {group: Code.NONE}


def test_the_group_with_an_empty_id_can_be_deleted(client: Client, topic: str) -> None:
    assert commit_offset(client, "", topic, 5) == Code.NONE
    assert committed(client, "", topic) == 5
    assert delete_groups(client, "") == {"": Code.NONE}
    assert committed(client, "", topic) == -1


# Consumer groups (KIP-848)


def test_a_consumer_group_goes_when_its_members_have_left(
    connect: Callable[[], Client], client: Client, group: str, topic: str
) -> None:
    await_known(client, group, topic)
    member = Consumer(connect(), group)
    member.join(topic)
    member.acknowledge()
    commits = {"member_id": member.member_id, "generation": member.epoch}
    assert commit(client, 9, group, {topic: [0]}, **commits) == {(topic, 0): Code.NONE}
    assert delete_groups(client, group) == {group: Code.NON_EMPTY_GROUP}
    assert committed(client, group, topic) == 5
    member.leave()
    assert listed_groups(client)[group] == ("consumer", "Empty")
    assert delete_groups(client, group) == {group: Code.NONE}
    assert group not in listed_groups(client)
    assert committed(client, group, topic) == -1
    assert delete_groups(client, group) == {group: Code.GROUP_ID_NOT_FOUND}
    again = Consumer(member.client, group)
    assert again.join(topic).member_epoch == 2, "a group that is new"


def test_a_group_that_was_deleted_may_be_of_another_kind_the_next_time(
    connect: Callable[[], Client], client: Client, group: str, topic: str
) -> None:
    await_known(client, group, topic)
    for _ in range(2):
        consumer = Consumer(connect(), group)
        consumer.join(topic)
        consumer.leave()
        assert delete_groups(client, group) == {group: Code.NONE}
        classic = alone(Member(connect(), group, topics=(topic,)))
        assert classic.generation == 1
        classic.leave()
        assert delete_groups(client, group) == {group: Code.NONE}
