"""Test that librdkafka's admin client lists, alters and deletes a group's offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.brokers import Broker
from tests.conformance.calls import commit_offset, create_topic, fetch_offset
from tests.conformance.members import Member, alone
from tests.conformance.producers import Producer
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


@pytest.fixture
def wide(client: Client, topic: str) -> str:
    """Create a topic of three partitions."""
    name = f"{topic}-wide"
    create_topic(client, name, partitions=3)
    return name


def listed(admin: AdminClient, group: str, *, stable: bool = False) -> dict[int, TopicPartition]:
    """Return the group's offsets by partition."""
    asked = [ConsumerGroupTopicPartitions(group)]
    futures = admin.list_consumer_group_offsets(asked, require_stable=stable)
    return {each.partition: each for each in futures[group].result(HANG_LIMIT_S).topic_partitions}


def alter(admin: AdminClient, group: str, *partitions: TopicPartition) -> None:
    asked = [ConsumerGroupTopicPartitions(group, list(partitions))]
    altered = admin.alter_consumer_group_offsets(asked)[group].result(HANG_LIMIT_S)
    for each in altered.topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)


def delete(admin: AdminClient, group: str) -> int:
    """Delete a group; return 0, or the code of the refusal."""
    try:
        admin.delete_consumer_groups([group])[group].result(HANG_LIMIT_S)
    except KafkaException as refused:
        code: int = refused.args[0].code()
        return code
    return 0


def test_offsets_are_listed_moved_and_deleted_with_their_group(
    admin: AdminClient, client: Client, group: str, wide: str
) -> None:
    for partition in range(3):
        code = commit_offset(client, group, wide, 10, partition=partition, metadata="there")
        assert code == 0
    assert {part: each.offset for part, each in listed(admin, group).items()} == {
        0: 10,
        1: 10,
        2: 10,
    }
    # Not by librdkafka's list: what is behind the metadata in its memory may come along.
    assert fetch_offset(client, group, wide).metadata == "there"
    alter(admin, group, TopicPartition(wide, 1, 4), TopicPartition(wide, 2, 0))
    assert {part: each.offset for part, each in listed(admin, group).items()} == {0: 10, 1: 4, 2: 0}
    assert delete(admin, group) == 0
    assert listed(admin, group) == {}
    assert delete(admin, group) == KafkaError.GROUP_ID_NOT_FOUND


def test_a_group_that_is_in_use_keeps_its_offsets(
    admin: AdminClient, client: Client, group: str, topic: str
) -> None:
    member = alone(Member(client, group, topics=(topic,)))
    commit_offset(client, group, topic, 5, generation=member.generation, member_id=member.member_id)
    with pytest.raises(KafkaException) as refused:
        alter(admin, group, TopicPartition(topic, 0, 1))
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert delete(admin, group) == KafkaError.NON_EMPTY_GROUP
    assert listed(admin, group)[0].offset == 5


def test_only_who_asks_for_stable_offsets_is_told_of_a_pending_one(
    admin: AdminClient, client: Client, group: str, topic: str, transactional_id: str
) -> None:
    commit_offset(client, group, topic, 5)
    producer = Producer.init(client, transactional_id)
    producer.add_offsets(group)
    producer.stage_offset(group, topic, 6)
    assert listed(admin, group)[0].offset == 5
    error = listed(admin, group, stable=True)[0].error
    assert error is not None
    assert error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT
    producer.commit()
