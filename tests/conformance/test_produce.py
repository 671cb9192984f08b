"""Produce: offsets come in order, a repeated batch is written once, and a bad one not at all."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from crc32c import crc32c

from coordinator.errors import Code
from coordinator.log.compression import Codec, compress
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


def patched(at: int, format_: str, value: int, *, data: bytes | None = None) -> bytes:
    """A batch that says something else there, with the checksum of what it says."""
    good = batches.encode(b"a") if data is None else data
    new = good[:at] + struct.pack(format_, value) + good[at + struct.calcsize(format_) :]
    return new[:17] + struct.pack(">I", crc32c(new[21:])) + new[21:]


def old_format(magic: int) -> bytes:
    """A record as producers sent it before 0.11."""
    time_ms = struct.pack(">q", batches.TIMESTAMP_MS) if magic else b""
    message = bytes([magic, 0]) + time_ms + struct.pack(">ii", -1, 1) + b"a"
    message = struct.pack(">I", zlib.crc32(message)) + message
    return struct.pack(">qi", 0, len(message)) + message


GOOD = batches.encode(b"a")
BAD = {
    "nothing": (b"", Code.INVALID_RECORD, -1),
    "a few bytes": (b"abc", Code.INVALID_RECORD, -1),
    "zeros": (bytes(100), Code.CORRUPT_MESSAGE, -1),
    "cut short": (GOOD[:-1], Code.INVALID_RECORD, -1),
    "a length of 13": (patched(8, ">i", 13), Code.CORRUPT_MESSAGE, -1),
    "a length of 48": (patched(8, ">i", 48), Code.CORRUPT_MESSAGE, -1),
    "a negative length": (patched(8, ">i", -1), Code.CORRUPT_MESSAGE, -1),
    "a length beyond the end": (patched(8, ">i", len(GOOD)), Code.INVALID_RECORD, -1),
    "format 0": (old_format(0), Code.INVALID_RECORD, -1),
    "format 1": (old_format(1), Code.INVALID_RECORD, -1),
    "format 3": (patched(16, ">b", 3), Code.CORRUPT_MESSAGE, -1),
    "two batches": (GOOD + GOOD, Code.INVALID_RECORD, -1),
    "zeros behind": (GOOD + bytes(20), Code.CORRUPT_MESSAGE, -1),
    "a base offset": (patched(0, ">q", 5), Code.INVALID_RECORD, 0),
    "fewer records than offsets": (patched(23, ">i", 1), Code.INVALID_RECORD, 0),
    "more records than offsets": (patched(57, ">i", 2), Code.INVALID_RECORD, 0),
    "a negative number of records": (patched(57, ">i", -1), Code.INVALID_RECORD, 0),
    "no offsets": (patched(23, ">i", -1), Code.INVALID_RECORD, 0),
    "a control batch": (patched(21, ">h", 0x20), Code.INVALID_RECORD, 0),
    "no sequence": (batches.encode(b"a", producer_id=7, epoch=0), Code.INVALID_RECORD, 0),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_batch_is_refused_and_leaves_no_trace(
    client: Client, topic: str, what: str
) -> None:
    data, code, start_offset = BAD[what]
    answer = produce(client, topic, data)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.log_start_offset == start_offset
    assert answer.record_errors == ()
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("behind", [b"a", bytes(11), GOOD[:-1]])
def test_what_follows_a_batch_and_is_none_is_dropped(
    client: Client, topic: str, behind: bytes
) -> None:
    assert produce(client, topic, GOOD + behind).error_code == Code.NONE
    assert batches.values(fetch(client, topic, 0).records) == [b"a"]


@pytest.mark.parametrize("version", [3, 6, 7])
def test_zstd_came_with_version_7(client: Client, topic: str, version: int) -> None:
    body = bytes(compress(Codec.ZSTD, GOOD[61:]))
    data = patched(21, ">h", Codec.ZSTD, data=GOOD[:61] + body)
    data = patched(8, ">i", len(data) - 12, data=data)
    expected = Code.NONE if version >= 7 else Code.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, topic, data, version=version).error_code == expected


def test_a_timestamp_in_the_future_is_refused_with_the_record_that_has_it(
    client: Client, topic: str
) -> None:
    now_ms = batches.TIMESTAMP_MS
    times = [now_ms, now_ms + 4_000_000, now_ms, now_ms + 5_000_000]
    answer = produce(client, topic, batches.encode(b"a", b"b", b"c", b"d", timestamps_ms=times))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message
    assert answer.log_start_offset == 0


def test_a_timestamp_too_far_in_the_past_is_refused_with_the_record_that_has_it(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("recent")
    create_topic(client, name, configs={"message.timestamp.before.max.ms": "3600000"})
    now_ms = batches.TIMESTAMP_MS
    times = [now_ms, now_ms - 4_000_000, -1, 5]
    answer = produce(client, name, batches.encode(b"a", b"b", b"c", b"d", timestamps_ms=times))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    answer = produce(client, name, batches.encode(b"a", b"b", timestamps_ms=[now_ms, -1]))
    assert answer.error_code == Code.NONE


def test_a_producer_does_not_say_that_its_times_are_the_log_s(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    data = patched(21, ">h", 8)
    assert produce(client, topic, data).error_code == Code.NONE
    (batch,) = batches.decode(fetch(client, topic, 0).records)
    assert not batch.attributes & 8
    name = unique("arrival")
    create_topic(client, name, configs={"message.timestamp.type": "LogAppendTime"})
    answer = produce(client, name, data)
    assert answer.error_code == Code.INVALID_TIMESTAMP


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(
    client: Client, unique: Callable[[str], str]
) -> None:
    name = unique("compacted")
    create_topic(client, name, configs={"cleanup.policy": "compact"})
    keyed: tuple[bytes, bytes] = (b"key", b"value")
    answer = produce(client, name, batches.encode(keyed, b"a", keyed, b"b"))
    assert (answer.error_code, answer.base_offset) == (Code.INVALID_RECORD, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message
    assert produce(client, name, batches.encode(keyed, (b"", b""))).error_code == Code.NONE


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
        found = consumer.consume(len(expected), timeout=20)
    finally:
        consumer.close()
    assert [(each.key(), each.value()) for each in found] == expected
    assert [each.offset() for each in found] == list(range(200))
    assert found[0].headers() == [("origin", b"here")]
