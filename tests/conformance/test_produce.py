"""Produce: offsets come in order, a repeated batch is written once, and a bad one not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import end_offset, fetch, post_produce, produce
from tests.conformance.producers import init_producer_id
from tests.conformance.wire import Api, Client

SEQUENCE_MAX = 2**31 - 1


@pytest.fixture
def producer_id(client: Client) -> int:
    """The id of an idempotent producer, at epoch 0."""
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
    """A producer that the partition does not know may begin anywhere."""
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


def test_a_batch_with_a_wrong_checksum_is_refused_with_2_and_leaves_no_trace(
    client: Client, topic: str
) -> None:
    answer = produce(client, topic, batches.encode(b"a", corrupt=True))
    assert (answer.error_code, answer.base_offset) == (Code.CORRUPT_MESSAGE, -1)
    assert end_offset(client, topic) == 0


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


def test_a_batch_above_the_topic_s_limit_is_refused_with_10(client: Client, topic: str) -> None:
    answer = produce(client, topic, batches.encode(bytes(1_100_000)))
    assert answer.error_code == Code.MESSAGE_TOO_LARGE


def test_two_batches_for_one_partition_in_one_request_are_refused_with_87(
    client: Client, topic: str
) -> None:
    answer = produce(client, topic, batches.encode(b"a") + batches.encode(b"b"))
    assert answer.error_code == Code.INVALID_RECORD
    assert end_offset(client, topic) == 0


def test_no_records_at_all_are_no_harm_to_the_partition(client: Client, topic: str) -> None:
    answer = produce(client, topic, b"")
    assert answer.error_code in (Code.INVALID_RECORD, Code.CORRUPT_MESSAGE)
    assert end_offset(client, topic) == 0


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
        found = consumer.consume(len(expected), timeout=20)
    finally:
        consumer.close()
    assert [(each.key(), each.value()) for each in found] == expected
    assert [each.offset() for each in found] == list(range(200))
    assert found[0].headers() == [("origin", b"here")]
