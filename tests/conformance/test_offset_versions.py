"""Test what is special in single versions of OffsetCommit, OffsetFetch and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance.calls import (
    commit_offset,
    committed,
    create_topic,
    delete_groups,
    delete_topic,
    fetch_offset,
    topic_id,
)
from tests.conformance.commits import NO_ID, commit, id_of
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client

NEVER_SEEN = UUID(int=0x1234)
COMMIT_VERSIONS = range(2, 11)
FETCH_VERSIONS = range(1, 11)


def fetch(client: Client, version: int, group: str, topics: Any, **fields: Any) -> Any:
    """Return the group's part of OffsetFetch, with topics as the version names them."""
    if version < 8:
        return client.send(Api.OFFSET_FETCH, version, group_id=group, topics=topics, **fields)
    response = client.send(
        Api.OFFSET_FETCH, version, groups=[{"group_id": group, "topics": topics}], **fields
    )
    return response.groups[0]


def named(client: Client, version: int, topic: str, *partitions: int) -> list[dict[str, Any]]:
    """Return the topics of a request as the version names them."""
    found = {"topic_id": topic_id(client, topic)} if version >= 10 else {"name": topic}
    return [{**found, "partition_indexes": partitions}]


# OffsetCommit


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_commit_of_any_version_is_fetched_by_any_version(
    client: Client, group: str, topic: str, version: int
) -> None:
    asked = topic_id(client, topic) if version >= 10 else topic
    assert commit(client, version, group, {asked: [0]}) == {(asked, 0): Code.NONE}
    for fetching in FETCH_VERSIONS:
        answer = fetch(client, fetching, group, named(client, fetching, topic, 0, 1))
        found = [
            (part.partition_index, part.committed_offset, part.metadata, part.error_code)
            for part in answer.topics[0].partitions
        ]
        assert found == [(0, 5, "", Code.NONE), (1, -1, "", Code.NONE)], fetching


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_the_generation_of_a_group_that_does_not_exist_has_its_code_in_each_version(
    client: Client, group: str, topic: str, version: int
) -> None:
    asked = topic_id(client, topic) if version >= 10 else topic
    code = Code.GROUP_ID_NOT_FOUND if version >= 9 else Code.ILLEGAL_GENERATION
    found = commit(client, version, group, {asked: [0]}, generation=1, member_id="m")
    assert found == {(asked, 0): code}


@pytest.mark.parametrize("version", [2, 8, 9])
def test_a_request_that_names_no_partition_that_there_is_never_reaches_the_group(
    client: Client, group: str, topic: str, unique: Callable[[str], str], version: int
) -> None:
    alone(Member(client, group))
    unknown = unique("unknown")
    wrong = {"generation": 99, "member_id": "nobody"}
    assert commit(client, version, group, {topic: [7], unknown: [0]}, **wrong) == {
        (topic, 7): Code.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert commit(client, version, group, {}, **wrong) == {}
    assert commit(client, version, group, {topic: [0, 7], unknown: [0]}, **wrong) == {
        (topic, 0): Code.UNKNOWN_MEMBER_ID,
        (topic, 7): Code.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): Code.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_negative_partition_is_none(client: Client, group: str, topic: str) -> None:
    found = commit(client, 8, group, {topic: [-1]})
    assert found == {(topic, -1): Code.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("offset", [-1, -5, 2**63 - 1])
def test_any_number_is_an_offset(client: Client, group: str, topic: str, offset: int) -> None:
    part = {"partition_index": 0, "committed_offset": offset}
    assert commit(client, 8, group, {topic: [part]}) == {(topic, 0): Code.NONE}
    assert committed(client, group, topic) == offset


def test_metadata_that_is_too_long_keeps_only_its_own_partition_out(
    client: Client, group: str, unique: Callable[[str], str]
) -> None:
    wide = unique("wide")
    create_topic(client, wide, partitions=3)
    parts = [
        {"partition_index": index, "committed_metadata": "x" * size}
        for index, size in enumerate((4_096, 4_097, 0))
    ]
    assert commit(client, 9, group, {wide: parts}) == {
        (wide, 0): Code.NONE,
        (wide, 1): Code.OFFSET_METADATA_TOO_LARGE,
        (wide, 2): Code.NONE,
    }


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("retention_ms", [-1, 0, 86_400_000])
def test_a_client_may_say_for_how_long_its_offset_is_kept(
    client: Client, group: str, topic: str, version: int, retention_ms: int
) -> None:
    found = commit(client, version, group, {topic: [0]}, retention_time=retention_ms)
    assert found == {(topic, 0): Code.NONE}
    answer = fetch_offset(client, group, topic)
    assert (answer.committed_offset, answer.committed_leader_epoch) == (5, -1)


@pytest.mark.parametrize("version", range(6, 11))
def test_a_leader_epoch_comes_back_in_the_versions_that_know_it(
    client: Client, group: str, topic: str, version: int
) -> None:
    asked = topic_id(client, topic) if version >= 10 else topic
    part = {"partition_index": 0, "committed_leader_epoch": 3}
    commit(client, version, group, {asked: [part]})
    for fetching in range(5, 11):
        answer = fetch(client, fetching, group, named(client, fetching, topic, 0))
        assert answer.topics[0].partitions[0].committed_leader_epoch == 3


# Topic ids


def test_a_topic_id_that_is_not_known_is_refused_with_100(
    client: Client, group: str, topic: str
) -> None:
    known = topic_id(client, topic)
    assert commit(client, 10, group, {known: [0, 7], NEVER_SEEN: [0, 1], NO_ID: [0]}) == {
        (known, 0): Code.NONE,
        (known, 7): Code.UNKNOWN_TOPIC_OR_PARTITION,
        (NEVER_SEEN, 0): Code.UNKNOWN_TOPIC_ID,
        (NEVER_SEEN, 1): Code.UNKNOWN_TOPIC_ID,
        (NO_ID, 0): Code.UNKNOWN_TOPIC_ID,
    }
    topics = [
        {"topic_id": each, "partition_indexes": [0, 1]} for each in (known, NEVER_SEEN, NO_ID)
    ]
    answer = fetch(client, 10, group, topics)
    assert answer.error_code == Code.NONE
    found = {
        (id_of(each), part.partition_index): (part.error_code, part.committed_offset)
        for each in answer.topics
        for part in each.partitions
    }
    assert found == {
        (known, 0): (Code.NONE, 5),
        (known, 1): (Code.NONE, -1),
        (NEVER_SEEN, 0): (Code.UNKNOWN_TOPIC_ID, -1),
        (NEVER_SEEN, 1): (Code.UNKNOWN_TOPIC_ID, -1),
        (NO_ID, 0): (Code.UNKNOWN_TOPIC_ID, -1),
        (NO_ID, 1): (Code.UNKNOWN_TOPIC_ID, -1),
    }


def test_topics_with_an_unknown_id_are_fetched_last(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    known, other = topic_id(client, topic), topic_id(client, other_topic)
    topics = [
        {"topic_id": each, "partition_indexes": [0]} for each in (NEVER_SEEN, known, NO_ID, other)
    ]
    answer = fetch(client, 10, group, topics)
    assert [id_of(each) for each in answer.topics] == [known, other, NEVER_SEEN, NO_ID]


def test_unknown_topic_ids_alone_never_reach_the_group(client: Client, group: str) -> None:
    found = commit(client, 10, group, {NEVER_SEEN: [0]}, generation=99, member_id="nobody")
    assert found == {(NEVER_SEEN, 0): Code.UNKNOWN_TOPIC_ID}


def test_all_offsets_are_fetched_with_the_ids_of_their_topics(
    client: Client, group: str, topic: str, other_topic: str
) -> None:
    commit_offset(client, group, topic, 1)
    commit_offset(client, group, other_topic, 2)
    answer = fetch(client, 10, group, None)
    found = {each.topic_id: each.partitions[0].committed_offset for each in answer.topics}
    assert found == {topic_id(client, topic): 1, topic_id(client, other_topic): 2}


def test_a_topic_that_was_deleted_and_made_again_has_no_offsets_under_either_id(
    client: Client, group: str, topic: str, other_topic: str, transactional_id: str
) -> None:
    commit_offset(client, group, topic, 1)
    commit_offset(client, group, other_topic, 2)
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 10)
    before = topic_id(client, topic)
    delete_topic(client, topic)
    create_topic(client, topic)
    producer.commit()
    after = topic_id(client, topic)
    assert after != before
    topics = [{"topic_id": each, "partition_indexes": [0]} for each in (after, before)]
    answer = fetch(client, 10, group, topics, require_stable=True)
    found = {
        each.topic_id: (each.partitions[0].error_code, each.partitions[0].committed_offset)
        for each in answer.topics
    }
    assert found == {after: (Code.NONE, -1), before: (Code.UNKNOWN_TOPIC_ID, -1)}
    assert committed(client, group, topic) == -1
    assert [each.name for each in fetch(client, 9, group, None).topics] == [other_topic]
    assert commit(client, 10, group, {after: [0], before: [0]}) == {
        (after, 0): Code.NONE,
        (before, 0): Code.UNKNOWN_TOPIC_ID,
    }


# OffsetFetch


def test_each_group_of_a_request_is_answered_for_itself(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    one, two, none = unique("group"), unique("group"), unique("group")
    commit_offset(client, one, topic, 1)
    commit_offset(client, two, topic, 2)
    delete_groups(client, none)
    topics = [{"name": topic, "partition_indexes": [0]}]
    response = client.send(
        Api.OFFSET_FETCH,
        8,
        groups=[
            {"group_id": one, "topics": topics},
            {"group_id": two, "topics": None},
            {"group_id": none, "topics": topics},
            {"group_id": none, "topics": None},
            {"group_id": one, "topics": []},
            {"group_id": "", "topics": topics},
        ],
    )
    found = [
        (
            group.group_id,
            group.error_code,
            [part.committed_offset for each in group.topics for part in each.partitions],
        )
        for group in response.groups
    ]
    assert found == [
        (one, Code.NONE, [1]),
        (two, Code.NONE, [2]),
        (none, Code.NONE, [-1]),
        (none, Code.NONE, []),
        (one, Code.NONE, []),
        ("", Code.NONE, [-1]),
    ]


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("member_id", "epoch"), [(None, -1), (None, 5), ("", -1), ("nobody", 7)])
def test_a_classic_group_does_not_mind_who_fetches(
    client: Client, topic: str, group: str, version: int, member_id: str | None, epoch: int
) -> None:
    topics = named(client, version, topic, 0)
    asked = {"group_id": group, "member_id": member_id, "member_epoch": epoch, "topics": topics}

    def fetched() -> tuple[Code, int]:
        [found] = client.send(Api.OFFSET_FETCH, version, groups=[asked]).groups
        return found.error_code, found.topics[0].partitions[0].committed_offset

    assert fetched() == (Code.NONE, -1)
    member = alone(Member(client, group))
    commit_offset(client, group, topic, 6, generation=member.generation, member_id=member.member_id)
    assert fetched() == (Code.NONE, 6)


@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_are_asked_for_by_null(
    client: Client, group: str, topic: str, version: int
) -> None:
    commit_offset(client, group, topic, 4)
    answer = fetch(client, version, group, None)
    assert answer.error_code == Code.NONE
    [found] = answer.topics
    if version < 10:
        assert found.name == topic
    assert [part.committed_offset for part in found.partitions] == [4]


@pytest.mark.parametrize("version", range(7, 11))
def test_of_all_offsets_only_committed_ones_are_listed_and_unstable_ones_with_88(
    client: Client,
    group: str,
    topic: str,
    other_topic: str,
    transactional_id: str,
    version: int,
) -> None:
    commit_offset(client, group, topic, 4)
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 5)
    producer.stage_offset(group, other_topic, 6)
    for stable, expected in (
        (True, (Code.UNSTABLE_OFFSET_COMMIT, -1)),
        (False, (Code.NONE, 4)),
    ):
        [found] = fetch(client, version, group, None, require_stable=stable).topics
        [part] = found.partitions
        assert (part.error_code, part.committed_offset) == expected
    producer.abort()


# TxnOffsetCommit


@pytest.mark.parametrize("version", range(6))
def test_offsets_are_staged_at_each_version(
    client: Client, group: str, topic: str, transactional_id: str, version: int
) -> None:
    producer = Producer.init(client, transactional_id)
    if version < 5:
        producer.add_offsets(group)
    assert producer.stage_offset(group, topic, 9, metadata=None, version=version) == Code.NONE
    producer.commit()
    found = fetch_offset(client, group, topic, stable=True)
    assert (found.committed_offset, found.metadata, found.committed_leader_epoch) == (9, "", -1)


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_partitions_that_are_not_there_alone_never_reach_the_transaction(
    client: Client, group: str, transactional_id: str, unique: Callable[[str], str], version: int
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.epoch += 7
    code = producer.stage_offset(group, unique("unknown"), 9, version=version)
    assert code == Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [3, 5])
def test_an_empty_group_id_is_refused_with_24_in_a_transaction(
    client: Client, topic: str, transactional_id: str, version: int
) -> None:
    producer = Producer.init(client, transactional_id)
    assert producer.stage_offset("", topic, 9, version=version) == Code.INVALID_GROUP_ID
