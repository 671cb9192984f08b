"""Test which offsets OffsetCommit accepts and from whom, and what OffsetFetch returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import (
    commit_offset,
    committed,
    create_topic,
    fetch_offset,
    fetch_offsets,
)
from tests.conformance.members import Member, alone
from tests.conformance.wire import Api, Client


def test_a_committed_offset_is_fetched_with_its_metadata(
    client: Client, group: str, topic: str
) -> None:
    assert commit_offset(client, group, topic, 42, metadata="where I was") == Code.NONE
    found = fetch_offset(client, group, topic)
    assert (found.error_code, found.committed_offset) == (Code.NONE, 42)
    assert found.metadata == "where I was"


def test_a_later_commit_replaces_an_earlier_one_even_if_it_goes_back(
    client: Client, group: str, topic: str
) -> None:
    for offset in (10, 30, 20):
        commit_offset(client, group, topic, offset)
    assert committed(client, group, topic) == 20


def test_no_metadata_is_fetched_as_the_empty_string(client: Client, group: str, topic: str) -> None:
    commit_offset(client, group, topic, 1, metadata=None)
    assert fetch_offset(client, group, topic).metadata == ""


def test_an_unknown_group_has_offset_minus_1_and_no_error(
    client: Client, group: str, topic: str
) -> None:
    found = fetch_offset(client, group, topic)
    assert (found.error_code, found.committed_offset, found.metadata) == (Code.NONE, -1, "")
    assert found.committed_leader_epoch == -1


def test_a_partition_without_a_commit_has_offset_minus_1_and_no_error(
    client: Client, group: str, topic: str, unique: Callable[[str], str]
) -> None:
    commit_offset(client, group, topic, 1)
    assert fetch_offset(client, group, topic, partition=5).committed_offset == -1
    unknown = fetch_offset(client, group, unique("unknown"))
    assert (unknown.error_code, unknown.committed_offset) == (Code.NONE, -1)


def test_all_offsets_of_a_group_are_fetched_if_no_topics_are_named(
    client: Client, group: str, topic: str, unique: Callable[[str], str]
) -> None:
    wide = unique("wide")
    create_topic(client, wide, partitions=3)
    commit_offset(client, group, topic, 1)
    commit_offset(client, group, wide, 2, partition=0)
    commit_offset(client, group, wide, 3, partition=2)
    answer = fetch_offsets(client, group, None)
    assert answer.error_code == Code.NONE
    found = {
        (each.name, part.partition_index): part.committed_offset
        for each in answer.topics
        for part in each.partitions
    }
    assert found == {(topic, 0): 1, (wide, 0): 2, (wide, 2): 3}
    assert fetch_offsets(client, unique("group"), None).topics == ()


def test_several_groups_are_fetched_in_one_request(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    one, two = unique("group"), unique("group")
    commit_offset(client, one, topic, 1)
    commit_offset(client, two, topic, 2)
    named = [{"name": topic, "partition_indexes": [0]}]
    response = client.send(
        Api.OFFSET_FETCH,
        8,
        groups=[{"group_id": each, "topics": named} for each in (one, two)],
        require_stable=False,
    )
    found = {
        each.group_id: each.topics[0].partitions[0].committed_offset for each in response.groups
    }
    assert found == {one: 1, two: 2}


@pytest.mark.parametrize("version", [1, 2, 3, 5, 6, 7])
def test_an_offset_is_fetched_by_the_versions_for_one_group(
    client: Client, group: str, topic: str, version: int
) -> None:
    commit_offset(client, group, topic, 7)
    response = client.send(
        Api.OFFSET_FETCH,
        version,
        group_id=group,
        topics=[{"name": topic, "partition_indexes": [0]}],
    )
    assert response.topics[0].partitions[0].committed_offset == 7


@pytest.mark.parametrize("version", [2, 5, 6, 7, 8, 9])
def test_an_offset_is_committed_at_each_version(
    client: Client, group: str, topic: str, version: int
) -> None:
    part = {"partition_index": 0, "committed_offset": 9, "committed_metadata": "m"}
    response = client.send(
        Api.OFFSET_COMMIT,
        version,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [part]}],
    )
    assert response.topics[0].partitions[0].error_code == Code.NONE
    assert committed(client, group, topic) == 9


def test_the_leader_epoch_of_a_commit_is_kept(client: Client, group: str, topic: str) -> None:
    part: dict[str, Any] = {"partition_index": 0, "committed_offset": 9}
    client.send(
        Api.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [{**part, "committed_leader_epoch": 3}]}],
    )
    assert fetch_offset(client, group, topic).committed_leader_epoch == 3


def test_metadata_of_4096_bytes_is_kept_and_one_byte_more_refused_with_12(
    client: Client, group: str, topic: str
) -> None:
    assert commit_offset(client, group, topic, 1, metadata="x" * 4096) == Code.NONE
    too_large = commit_offset(client, group, topic, 2, metadata="x" * 4097)
    assert too_large == Code.OFFSET_METADATA_TOO_LARGE
    found = fetch_offset(client, group, topic)
    assert (found.committed_offset, len(found.metadata)) == (1, 4096)


@pytest.mark.parametrize(("character", "most"), [("a", 4096), ("ä", 4096), ("😀", 2048)])
def test_metadata_is_measured_in_the_units_of_utf_16(
    client: Client, group: str, topic: str, character: str, most: int
) -> None:
    longest = character * most
    assert commit_offset(client, group, topic, 1, metadata=longest) == Code.NONE
    assert fetch_offset(client, group, topic).metadata == longest
    too_large = commit_offset(client, group, topic, 2, metadata=longest + "x")
    assert too_large == Code.OFFSET_METADATA_TOO_LARGE


def test_an_offset_for_an_unknown_topic_or_partition_is_refused_with_3(
    client: Client, group: str, topic: str, unique: Callable[[str], str]
) -> None:
    unknown = commit_offset(client, group, unique("unknown"), 1)
    assert unknown == Code.UNKNOWN_TOPIC_OR_PARTITION
    beyond = commit_offset(client, group, topic, 1, partition=5)
    assert beyond == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_generation_of_a_group_that_does_not_exist_is_refused_with_22(
    client: Client, group: str, topic: str
) -> None:
    code = commit_offset(client, group, topic, 1, generation=3, member_id="someone")
    assert code == Code.ILLEGAL_GENERATION
    assert committed(client, group, topic) == -1


def test_in_a_group_that_has_offsets_but_no_members_every_member_is_unknown(
    client: Client, group: str, topic: str
) -> None:
    commit_offset(client, group, topic, 1)
    code = commit_offset(client, group, topic, 2, generation=3, member_id="someone")
    assert code == Code.UNKNOWN_MEMBER_ID
    assert committed(client, group, topic) == 1


def test_a_group_that_has_offsets_but_no_members_is_empty_and_has_no_protocol(
    client: Client, group: str, topic: str
) -> None:
    commit_offset(client, group, topic, 1)
    (found,) = client.send(Api.DESCRIBE_GROUPS, 5, groups=[group]).groups
    assert (found.error_code, found.group_state, found.protocol_type) == (Code.NONE, "Empty", "")
    listed = client.send(Api.LIST_GROUPS, 4).groups
    assert ("", "Empty") in [
        (each.protocol_type, each.group_state) for each in listed if each.group_id == group
    ]


def test_in_a_group_with_members_only_they_may_commit_and_only_in_their_generation(
    client: Client, group: str, topic: str
) -> None:
    member = alone(Member(client, group))

    def commit(offset: int, generation: int, member_id: str) -> Code:
        return commit_offset(
            client, group, topic, offset, generation=generation, member_id=member_id
        )

    assert commit(1, member.generation, member.member_id) == Code.NONE
    assert commit(2, member.generation - 1, member.member_id) == Code.ILLEGAL_GENERATION
    assert commit(3, member.generation + 1, member.member_id) == Code.ILLEGAL_GENERATION
    assert commit(4, member.generation, "nobody") == Code.UNKNOWN_MEMBER_ID
    assert commit(5, -1, "") == Code.UNKNOWN_MEMBER_ID
    assert committed(client, group, topic) == 1


def test_the_offsets_of_a_group_outlive_its_members(client: Client, group: str, topic: str) -> None:
    member = alone(Member(client, group))
    code = commit_offset(
        client, group, topic, 5, generation=member.generation, member_id=member.member_id
    )
    assert code == Code.NONE
    assert member.leave() == Code.NONE
    assert committed(client, group, topic) == 5
    assert commit_offset(client, group, topic, 6) == Code.NONE


def test_partitions_of_one_commit_are_judged_one_by_one(
    client: Client, group: str, topic: str
) -> None:
    parts = [{"partition_index": index, "committed_offset": 1} for index in (0, 8)]
    response = client.send(
        Api.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": parts}],
    )
    codes = {each.partition_index: each.error_code for each in response.topics[0].partitions}
    assert codes == {0: Code.NONE, 8: Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(client, group, topic) == 1
