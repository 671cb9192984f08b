"""Test that Metadata returns the brokers, and topics by name and by id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import create_topic, metadata, settled, topic_id
from tests.conformance.wire import Api, Client


def test_the_broker_lists_itself_at_the_address_that_it_was_reached_by(
    broker: Broker, client: Client
) -> None:
    response = metadata(client)
    (node,) = response.brokers
    assert f"{node.host}:{node.port}" == broker.bootstrap_servers
    assert response.controller_id == node.node_id
    assert response.cluster_id


def test_a_topic_has_an_id_and_each_partition_a_leader(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    create_topic(client, name, partitions=3)
    response = metadata(client, name)
    (found,) = response.topics
    assert (found.error_code, found.name, found.is_internal) == (Code.NONE, name, False)
    assert isinstance(found.topic_id, UUID)
    assert sorted(each.partition_index for each in found.partitions) == [0, 1, 2]
    node = response.brokers[0].node_id
    for partition in found.partitions:
        assert partition.error_code == Code.NONE
        assert partition.leader_id == node
        assert partition.leader_epoch >= 0
        assert partition.replica_nodes == partition.isr_nodes == (node,)
        assert partition.offline_replicas == ()


@pytest.mark.parametrize("version", [1, 4, 8, 9, 12, 13])
def test_a_topic_is_described_at_each_version(client: Client, topic: str, version: int) -> None:
    fields: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
    response = client.send(Api.METADATA, version, topics=[{"name": topic}], **fields)
    (found,) = response.topics
    assert (found.error_code, found.name) == (Code.NONE, topic)
    assert [each.partition_index for each in found.partitions] == [0]


def test_a_topic_is_found_by_its_id(client: Client, topic: str) -> None:
    known = topic_id(client, topic)
    response = client.send(Api.METADATA, 12, topics=[{"topic_id": known, "name": None}])
    (found,) = response.topics
    assert (found.error_code, found.name, found.topic_id) == (Code.NONE, topic, known)


def test_an_unknown_topic_id_is_refused_with_100_and_has_no_name(client: Client) -> None:
    unknown = UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0)
    [found] = ask(client, {"topic_id": unknown, "name": None}).topics
    assert (found.error_code, found.name, found.topic_id) == (Code.UNKNOWN_TOPIC_ID, None, unknown)


def test_an_unknown_topic_is_refused_with_3_and_not_created(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("unknown")
    for _ in range(2):
        (found,) = metadata(client, name).topics
        assert found.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert found.partitions == ()


def test_an_unknown_topic_is_created_if_the_client_asks_for_that(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("auto")
    passing = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.LEADER_NOT_AVAILABLE)
    response = settled(lambda: metadata(client, name, create=True), passing)
    assert response.topics[0].error_code == Code.NONE
    assert len(response.topics[0].partitions) == 1


@pytest.mark.parametrize("name", ["a b", "a/b", "x" * 250, "..", ""])
def test_a_name_that_no_topic_can_have_is_refused_with_17(client: Client, name: str) -> None:
    (found,) = metadata(client, name, create=True).topics
    assert found.error_code == Code.INVALID_TOPIC_EXCEPTION


def test_no_list_of_topics_means_all_and_an_empty_list_means_none(
    client: Client, topic: str
) -> None:
    everything = client.send(Api.METADATA, 12, topics=None, allow_auto_topic_creation=False)
    assert topic in {each.name for each in everything.topics}
    assert metadata(client).topics == ()


def test_the_broker_s_own_topics_are_marked_as_internal(client: Client, group: str) -> None:
    client.send(Api.FIND_COORDINATOR, 2, key=group, key_type=0)
    (found,) = metadata(client, "__consumer_offsets").topics
    assert (found.error_code, found.is_internal) == (Code.NONE, True)


def test_a_topic_is_asked_for_by_its_id_from_version_12_on(client: Client, topic: str) -> None:
    by_id = {"name": None, "topic_id": topic_id(client, topic)}
    both = {"name": topic, "topic_id": topic_id(client, topic)}
    for version, asked in ((10, by_id), (11, by_id), (11, both)):
        answer = client.send(Api.METADATA, version, topics=[asked], allow_auto_topic_creation=False)
        (found,) = answer.topics
        assert (found.error_code, found.name) == (Code.INVALID_REQUEST, asked["name"] or "")
    (found,) = client.send(Api.METADATA, 12, topics=[by_id], allow_auto_topic_creation=False).topics
    assert (found.error_code, found.name) == (Code.NONE, topic)


def described(response: Any) -> list[tuple[str | None, Code]]:
    return sorted((each.name or "", Code(each.error_code)) for each in response.topics)


def ask(client: Client, *topics: dict[str, Any], version: int = 12, **options: Any) -> Any:
    return client.send(
        Api.METADATA, version, topics=topics, **{"allow_auto_topic_creation": False, **options}
    )


def test_a_topic_that_is_named_twice_is_described_once(
    client: Client, topic: str, other_topic: str
) -> None:
    names = ({"name": name} for name in (topic, other_topic, topic))
    expected = sorted([(topic, Code.NONE), (other_topic, Code.NONE)])
    assert described(ask(client, *names)) == expected


def test_where_topics_are_asked_for_by_id_names_do_not_count(
    client: Client, topic: str, other_topic: str
) -> None:
    known = topic_id(client, topic)
    for names in ([topic], [other_topic], [None, other_topic]):
        asked = [{"name": name, "topic_id": known} for name in names[:1]]
        asked += [{"name": name} for name in names[1:]]
        assert described(ask(client, *asked)) == [(topic, Code.NONE)]


def test_an_unknown_id_is_told_beside_a_known_one(client: Client, topic: str) -> None:
    unknown = UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF3)
    ids = [unknown, topic_id(client, topic)]
    response = ask(client, *({"name": None, "topic_id": each} for each in ids))
    assert described(response) == [("", Code.UNKNOWN_TOPIC_ID), (topic, Code.NONE)]
    assert {each.topic_id for each in response.topics} == set(ids)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_what_may_be_done_is_told_if_asked_for(
    client: Client, topic: str, unique: Callable[[str], str], version: int
) -> None:
    """Check that the authorized operations are all that there are without an authorizer."""
    names = [{"name": name} for name in (topic, unique("unknown"))]
    silent = ask(client, *names, version=version)
    assert {each.topic_authorized_operations for each in silent.topics} == {-(2**31)}
    assert silent.cluster_authorized_operations == -(2**31)
    told = ask(
        client,
        *names,
        version=version,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert {each.topic_authorized_operations for each in told.topics} == {0b1101_1111_1000}
    assert told.cluster_authorized_operations == 0b1_1111_1010_0000


def test_a_topic_whose_name_collides_with_another_one_s_is_not_created(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("a")
    create_topic(client, f"{name}.x")
    for _ in range(2):
        [found] = metadata(client, f"{name}_x", create=True).topics
        assert found.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["a b", "..", ""])
def test_a_name_that_no_topic_can_have_is_refused_without_creation_too(
    client: Client, name: str
) -> None:
    (found,) = metadata(client, name).topics
    assert found.error_code == Code.INVALID_TOPIC_EXCEPTION


def test_version_0_has_all_topics_for_an_empty_list(client: Client, topic: str) -> None:
    response = client.send(Api.METADATA, 0, topics=())
    assert topic in {each.name for each in response.topics}
