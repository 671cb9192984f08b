"""Test who may commit and fetch offsets of a consumer group (KIP-848), and what admins see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from coordinator.shard.map_order import sort_like_concurrent_map
from coordinator.shard.placement import java_hash, partition_for
from tests.brokers import SETTINGS
from tests.conformance.calls import commit_offset, listed_groups
from tests.conformance.consumers import Consumer, acknowledge_until, describe
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client, plain

PARTITIONS = int(SETTINGS["offsets.topic.num.partitions"])

# Offsets


def test_a_member_commits_with_its_epoch_or_an_older_one_at_which_it_had_the_partition(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client
) -> None:
    topic, topic_id = pair
    first, second = consumer(), consumer()
    first.join(topic)
    second.join(topic)
    acknowledge_until(lambda: len(second.assigned) == 1, first, second)
    [kept], [lost] = first.partitions(topic_id), second.partitions(topic_id)

    def commit(who: Consumer, epoch: int, partition: int, version: int = 9) -> Code:
        asked = {"partition_index": partition, "committed_offset": 1, "committed_metadata": ""}
        response = client.send(
            Api.OFFSET_COMMIT,
            version,
            group_id=who.group,
            generation_id_or_member_epoch=epoch,
            member_id=who.member_id,
            topics=[{"name": topic, "partitions": [asked]}],
        )
        return Code(response.topics[0].partitions[0].error_code)

    assert first.epoch == second.epoch == 3
    assert commit(first, 3, kept) == Code.NONE
    assert commit(first, 3, lost) == Code.NONE, "whose it is, isn't looked at"
    assert commit(first, 2, kept) == Code.NONE, "it had that one at epoch 2"
    assert commit(first, 2, lost) == Code.STALE_MEMBER_EPOCH
    assert commit(second, 2, lost) == Code.STALE_MEMBER_EPOCH
    assert commit(first, 4, kept) == Code.STALE_MEMBER_EPOCH
    assert commit(first, 3, kept, version=8) == Code.UNSUPPORTED_VERSION
    assert commit(first, -1, kept) == Code.STALE_MEMBER_EPOCH
    first.member_id = "stranger"
    assert commit(first, 3, kept) == Code.UNKNOWN_MEMBER_ID


def test_a_member_reads_offsets_with_its_epoch_and_anyone_who_says_nothing_of_itself(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    someone = consumer()
    someone.join(pair[0])

    def fetch(member_id: str | None, epoch: int) -> Code:
        asked = {"group_id": group, "member_id": member_id, "member_epoch": epoch, "topics": None}
        response = client.send(Api.OFFSET_FETCH, 9, groups=[asked], require_stable=False)
        return Code(response.groups[0].error_code)

    assert fetch(None, -1) == Code.NONE
    assert fetch(someone.member_id, 2) == Code.NONE
    assert fetch(someone.member_id, 1) == Code.STALE_MEMBER_EPOCH
    assert fetch(someone.member_id, -1) == Code.STALE_MEMBER_EPOCH
    assert fetch("stranger", 2) == Code.UNKNOWN_MEMBER_ID


def test_in_a_transaction_an_epoch_that_does_not_do_is_refused_with_22(
    consumer: Callable[..., Consumer],
    pair: tuple[str, UUID],
    client: Client,
    group: str,
    transactional_id: str,
) -> None:
    topic, topic_id = pair
    first, second = consumer(), consumer()
    first.join(topic)
    second.join(topic)
    acknowledge_until(lambda: len(second.assigned) == 1, first, second)
    if first.partitions(topic_id) == [0]:
        first, second = second, first
    producer = Producer.init(client, transactional_id)
    assert producer.add_offsets(group) == Code.NONE

    def stage(member_id: str, epoch: int) -> Code:
        return producer.stage_offset(group, topic, 1, generation=epoch, member_id=member_id)

    assert stage(first.member_id, 3) == Code.NONE, "whose the partition is, isn't looked at"
    assert stage(first.member_id, 2) == Code.ILLEGAL_GENERATION
    assert stage(first.member_id, 4) == Code.ILLEGAL_GENERATION
    assert stage("stranger", 3) == Code.UNKNOWN_MEMBER_ID
    assert stage("", -1) == Code.NONE, "who says nothing of itself"
    producer.abort()


# Descriptions


def test_a_group_is_described_in_each_of_its_states(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    topic, _ = pair
    found = describe(client, group)
    assert (found.error_code, found.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        f"Group {group} not found.",
    )
    first, second = consumer(), consumer()
    first.join(topic)
    assert describe(client, group).group_state == "Stable"
    second.join(topic)
    assert describe(client, group).group_state == "Reconciling"
    acknowledge_until(lambda: len(second.assigned) == 1, first, second)
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
    assert found.assignor_name == "uniform"
    first.leave()
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Assigning", 4, 3)
    second.leave()
    found = describe(client, group)
    assert (found.group_state, found.group_epoch, found.members) == ("Empty", 5, ())


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_is_described_with_all_that_it_has_said(
    consumer: Callable[..., Consumer],
    pair: tuple[str, UUID],
    client: Client,
    group: str,
    version: int,
) -> None:
    topic, topic_id = pair
    someone = consumer(instance_id="one")
    someone.join(topic, rack_id="here")
    found = describe(client, group, version)
    [member] = plain(found)["members"]
    mine = {"topic_partitions": [{"topic_id": topic_id, "topic_name": topic, "partitions": [0, 1]}]}
    expected: dict[str, Any] = {
        "member_id": someone.member_id,
        "instance_id": "one",
        "rack_id": "here",
        "member_epoch": 2,
        "client_id": "conformance",
        "client_host": "/127.0.0.1",
        "subscribed_topic_names": [topic],
        "subscribed_topic_regex": "",
        "assignment": mine,
        "target_assignment": mine,
    }
    if version >= 1:
        expected["member_type"] = 1
    assert member == expected
    assert found.authorized_operations == -(2**31)
    asked = describe(client, group, version, include_authorized_operations=True)
    assert {bit for bit in range(32) if asked.authorized_operations >> bit & 1} == {3, 6, 8, 10, 11}


def test_what_a_member_is_to_revoke_is_described_as_its_own(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    first, second = consumer(), consumer()
    first.join(pair[0])
    second.join(pair[0])
    first.beat()
    found = {each.member_id: each for each in describe(client, group).members}
    [mine] = found[first.member_id].assignment.topic_partitions
    assert sorted(mine.partitions) == [0, 1]
    [target] = found[first.member_id].target_assignment.topic_partitions
    assert len(target.partitions) == 1
    assert found[second.member_id].assignment.topic_partitions == ()


def test_what_is_no_consumer_group_is_not_described(client: Client, group: str) -> None:
    alone(Member(client, group))
    found = describe(client, group)
    assert (found.error_code, found.error_message) == (
        Code.GROUP_ID_NOT_FOUND,
        f"Group {group} is not a consumer group.",
    )
    assert describe(client, "").error_code == Code.INVALID_GROUP_ID
    response = client.send(
        Api.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[], include_authorized_operations=False
    )
    assert response.groups == ()


def test_a_group_is_listed_by_its_state_and_type(
    consumer: Callable[..., Consumer], pair: tuple[str, UUID], client: Client, group: str
) -> None:
    someone = consumer()
    someone.join(pair[0])

    def listed(**filters: tuple[str, ...]) -> Any:
        answer = client.send(Api.LIST_GROUPS, 5, **filters)
        return next((plain(each) for each in answer.groups if each.group_id == group), None)

    expected = {
        "group_id": group,
        "protocol_type": "consumer",
        "group_state": "Stable",
        "group_type": "consumer",
    }
    assert listed(types_filter=("Consumer",)) == expected
    assert listed(states_filter=("stable",)) == expected
    assert listed(types_filter=("classic",)) is None
    assert listed(states_filter=("Empty",)) is None
    someone.leave()
    assert listed(states_filter=("Empty",)) == {**expected, "group_state": "Empty"}


# The order of lists


@pytest.mark.parametrize("order", [(2, 1), (3, 2, 1), (3, 5, 7, 2, 4, 6, 1)])
def test_members_are_described_in_the_order_of_kafkas_map(
    client: Client, pair: tuple[str, UUID], group: str, order: tuple[int, ...]
) -> None:
    for number in sorted(order):
        Consumer(client, group, member_id=f"member-{number}").join(pair[0])
    found = [each.member_id for each in describe(client, group).members]
    assert found == [f"member-{number}" for number in order]


def test_groups_are_listed_by_shard_and_then_in_the_order_of_kafkas_map(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    groups = [unique("listed") for _ in range(12)]
    for each in groups:
        commit_offset(client, each, topic, 1)
    ours = [each for each in listed_groups(client) if each in set(groups)]
    by_shard: dict[int, list[str]] = {}
    for each in groups:
        by_shard.setdefault(partition_for(each, PARTITIONS), []).append(each)
    assert [partition_for(each, PARTITIONS) for each in ours] == [
        shard
        for shard in sort_like_concurrent_map("__consumer_offsets", PARTITIONS)
        for _ in by_shard.get(shard, ())
    ]
    for shard in by_shard.values():
        # The size of the map is that for all groups of the broker: only its halves are known.
        halves = [is_in_second_half(each) for each in ours if each in shard]
        assert halves == sorted(halves)


def is_in_second_half(key: str) -> bool:
    """Tell in which half of a TimelineHashMap a key is: by the highest bit of its spread hash."""
    code = java_hash(key) - (java_hash(key) >> 31 << 32)
    return code * -7046029254386353131 % 2**64 >> 63 == 1
