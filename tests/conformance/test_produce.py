"""Test that Produce gives offsets in order, and writes a repeated batch once."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import (
    create_topic,
    end_offset,
    fetch,
    post_produce,
    produce,
    topic_id,
)
from tests.conformance.producers import init_producer_id
from tests.conformance.wire import Api, Client, Disconnected
from tests.processes import HANG_LIMIT_S

SEQUENCE_MAX = 2**31 - 1
GOOD = batches.encode(b"a")


@pytest.fixture
def producer_id(client: Client) -> int:
    """Return the id of an idempotent producer at epoch 0."""
    response = init_producer_id(client, None)
    assert (response.error_code, response.producer_epoch) == (Code.NONE, 0)
    found: int = response.producer_id
    return found


def test_each_record_takes_the_next_offset(client: Client, topic: str) -> None:
    first = produce(client, topic, batches.encode(b"a", b"b", b"c"))
    second = produce(client, topic, batches.encode(b"d"))
    assert (first.error_code, first.base_offset, first.log_start_offset) == (Code.NONE, 0, 0)
    assert (second.error_code, second.base_offset) == (Code.NONE, 3)
    assert first.log_append_time is None, "timestamps are the client's"
    assert end_offset(client, topic) == 4


@pytest.mark.parametrize("version", [3, 7, 8, 9, 10, 11, 12])
def test_a_batch_is_taken_at_each_version(client: Client, topic: str, version: int) -> None:
    assert produce(client, topic, batches.encode(b"a"), version=version).error_code == Code.NONE
    assert end_offset(client, topic) == 1


def test_a_write_that_asks_for_no_answer_gets_none_and_is_kept(client: Client, topic: str) -> None:
    client.forget(post_produce(client, topic, batches.encode(b"quiet"), acks=0))
    assert produce(client, topic, batches.encode(b"loud")).base_offset == 1
    assert batches.values(fetch(client, topic, 0).records) == [b"quiet", b"loud"]


def test_a_batch_that_is_repeated_gets_its_first_offset_again_and_is_kept_once(
    client: Client, topic: str, producer_id: int
) -> None:
    data = batches.encode(b"a", b"b", producer_id=producer_id, epoch=0, sequence=0)
    assert produce(client, topic, data).base_offset == 0
    produce(client, topic, batches.encode(b"of another producer"))
    again = produce(client, topic, data)
    assert (again.error_code, again.base_offset) == (Code.NONE, 0)
    assert end_offset(client, topic) == 3


def test_any_of_a_producer_s_last_five_batches_may_be_repeated_and_no_older_one(
    client: Client, topic: str, producer_id: int
) -> None:
    sent = [
        batches.encode(b"%d" % number, producer_id=producer_id, epoch=0, sequence=number)
        for number in range(6)
    ]
    for data in sent:
        assert produce(client, topic, data).error_code == Code.NONE
    for offset in range(1, 6):
        again = produce(client, topic, sent[offset])
        assert (again.error_code, again.base_offset) == (Code.NONE, offset)
    assert produce(client, topic, sent[0]).error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(client, topic) == 6


def test_a_gap_in_the_sequence_is_refused_with_45(
    client: Client, topic: str, producer_id: int
) -> None:
    produce(client, topic, batches.encode(b"a", producer_id=producer_id, epoch=0, sequence=0))
    gap = batches.encode(b"c", producer_id=producer_id, epoch=0, sequence=2)
    assert produce(client, topic, gap).error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(client, topic) == 1


def test_after_the_last_sequence_number_comes_0(
    client: Client, topic: str, producer_id: int
) -> None:
    """Check that a producer that the partition does not know may begin with any sequence."""
    last = batches.encode(b"a", producer_id=producer_id, epoch=0, sequence=SEQUENCE_MAX)
    first = batches.encode(b"b", producer_id=producer_id, epoch=0, sequence=0)
    assert produce(client, topic, last).error_code == Code.NONE
    assert produce(client, topic, first).error_code == Code.NONE


def test_a_batch_may_wrap_around_the_last_sequence_number(
    client: Client, topic: str, producer_id: int
) -> None:
    wrapping = batches.encode(b"a", b"b", producer_id=producer_id, epoch=0, sequence=SEQUENCE_MAX)
    following = batches.encode(b"c", producer_id=producer_id, epoch=0, sequence=1)
    assert produce(client, topic, wrapping).error_code == Code.NONE
    assert produce(client, topic, following).error_code == Code.NONE


def test_an_epoch_below_the_producer_s_last_is_refused_with_47(
    client: Client, topic: str, producer_id: int
) -> None:
    new = batches.encode(b"new", producer_id=producer_id, epoch=1, sequence=0)
    old = batches.encode(b"old", producer_id=producer_id, epoch=0, sequence=0)
    assert produce(client, topic, new).error_code == Code.NONE
    assert produce(client, topic, old).error_code == Code.INVALID_PRODUCER_EPOCH
    assert end_offset(client, topic) == 1


def test_a_new_epoch_begins_at_sequence_0(client: Client, topic: str, producer_id: int) -> None:
    produce(client, topic, batches.encode(b"a", producer_id=producer_id, epoch=0, sequence=0))
    wrong = batches.encode(b"b", producer_id=producer_id, epoch=1, sequence=1)
    right = batches.encode(b"b", producer_id=producer_id, epoch=1, sequence=0)
    assert produce(client, topic, wrong).error_code == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, topic, right).base_offset == 1


def test_a_topic_or_partition_that_does_not_exist_is_refused_with_3(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    data = batches.encode(b"a")
    unknown = produce(client, unique("unknown"), data)
    assert unknown.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    beyond = produce(client, topic, data, partition=1)
    assert beyond.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_acks_that_mean_nothing_are_refused_with_21(client: Client, topic: str) -> None:
    answer = produce(client, topic, batches.encode(b"a"), acks=2)
    assert answer.error_code == Code.INVALID_REQUIRED_ACKS


def test_a_topic_may_give_records_the_time_of_their_arrival(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("arrival")
    create_topic(client, name, configs={"message.timestamp.type": "LogAppendTime"})
    answer = produce(client, name, batches.encode(b"a", timestamps_ms=[17]))
    assert answer.log_append_time is not None
    (batch,) = batches.decode(fetch(client, name, 0).records)
    assert batch.max_timestamp_ms == round(answer.log_append_time.timestamp() * 1_000)
    assert batch.attributes & 8


@pytest.mark.parametrize("acks", [1, -1])
def test_more_in_sync_replicas_than_there_can_be_are_not_waited_for(
    client: Client, unique: Callable[[str], str], acks: int
) -> None:
    name = unique("isr")
    create_topic(client, name, configs={"min.insync.replicas": "2"})
    assert produce(client, name, GOOD, acks=acks).error_code == Code.NONE


def test_a_transactional_batch_needs_a_transactional_id(client: Client, topic: str) -> None:
    data = batches.encode(b"a", producer_id=7, epoch=0, sequence=0, transactional=True)
    answer = produce(client, topic, data)
    assert answer.error_code == Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_the_broker_s_own_topics_are_not_written_to(client: Client) -> None:
    answer = produce(client, "__consumer_offsets", GOOD)
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_TOPIC_EXCEPTION, -1)


def test_a_refused_write_that_asked_for_no_answer_cuts_its_client_off(
    connect: Callable[[], Client], topic: str
) -> None:
    client = connect()
    client.forget(post_produce(client, topic, batches.encode(b"a", corrupt=True), acks=0))
    with pytest.raises((Disconnected, ConnectionError)):
        produce(client, topic, GOOD)


def by_id(client: Client, *topics: tuple[UUID, int]) -> list[tuple[UUID, int, Code]]:
    response = client.send(
        Api.PRODUCE,
        13,
        acks=-1,
        timeout=10_000,
        topic_data=[
            {"topic_id": known, "partition_data": [{"index": index, "records": GOOD}]}
            for known, index in topics
        ],
    )
    return [
        (each.topic_id, part.index, Code(part.error_code))
        for each in response.responses
        for part in each.partition_responses
    ]


def test_topics_are_written_to_by_id(client: Client, topic: str) -> None:
    known, unknown = topic_id(client, topic), UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF2)
    assert by_id(client, (known, 0)) == [(known, 0, Code.NONE)]
    assert by_id(client, (known, 9)) == [(known, 9, Code.UNKNOWN_TOPIC_OR_PARTITION)]
    assert by_id(client, (unknown, 0)) == [(unknown, 0, Code.UNKNOWN_TOPIC_ID)]


def test_of_a_partition_that_comes_twice_the_latter_counts(client: Client, topic: str) -> None:
    response = client.send(
        Api.PRODUCE,
        9,
        acks=-1,
        timeout=10_000,
        topic_data=[
            {"name": topic, "partition_data": [{"index": 0, "records": batches.encode(value)}]}
            for value in (b"one", b"two")
        ],
    )
    [answers] = [each.partition_responses for each in response.responses]
    assert [(each.index, each.error_code, each.base_offset) for each in answers] == [(0, 0, 0)]
    assert batches.values(fetch(client, topic, 0).records) == [b"two"]


def test_partitions_of_one_request_are_judged_one_by_one(client: Client, topic: str) -> None:
    response = client.send(
        Api.PRODUCE,
        10,
        acks=-1,
        timeout=10_000,
        topic_data=[
            {
                "name": topic,
                "partition_data": [
                    {"index": 0, "records": batches.encode(b"a")},
                    {"index": 9, "records": batches.encode(b"b")},
                ],
            }
        ],
    )
    answers = {each.index: each.error_code for each in response.responses[0].partition_responses}
    assert answers == {0: Code.NONE, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_whatever_the_compression(
    broker: Broker, topic: str, group: str, compression: str
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": compression,
            "enable.idempotence": True,
        }
    )
    expected = [(b"key-%d" % number, b"value " * 20 + b"%d" % number) for number in range(200)]
    for key, value in expected:
        producer.produce(topic, key=key, value=value, headers=[("origin", b"here")])
    assert producer.flush(20) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(len(expected), timeout=HANG_LIMIT_S)
    finally:
        consumer.close()
    assert [(each.key(), each.value()) for each in found] == expected
    assert [each.offset() for each in found] == list(range(200))
    assert found[0].headers() == [("origin", b"here")]
