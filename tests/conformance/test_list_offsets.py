"""Test that ListOffsets finds the earliest, latest and first offset at a time, by isolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer as ConfluentProducer

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    list_offset,
    produce,
)
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client

T = batches.TIMESTAMP_MS
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6


def test_of_an_empty_partition_the_earliest_and_the_latest_offset_are_0(
    client: Client, topic: str
) -> None:
    for which in (EARLIEST, LATEST):
        answer = list_offset(client, topic, which)
        assert (answer.error_code, answer.offset, answer.timestamp) == (Code.NONE, 0, -1)


def test_the_latest_offset_is_the_one_that_the_next_record_takes(
    client: Client, topic: str
) -> None:
    produce(client, topic, batches.encode(b"a", b"b"))
    assert list_offset(client, topic, EARLIEST).offset == 0
    latest = list_offset(client, topic, LATEST)
    assert (latest.offset, latest.timestamp) == (2, -1)
    assert latest.leader_epoch >= 0


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(T - 1, 0, T), (T, 0, T), (T + 1, 1, T + 10), (T + 10, 1, T + 10), (T + 11, 2, T + 20)],
    ids=["before all", "exactly the first", "between", "exactly the second", "in a later batch"],
)
def test_a_time_finds_the_first_record_that_is_not_older(
    client: Client, topic: str, timestamp: int, offset: int, found: int
) -> None:
    produce(client, topic, batches.encode(b"a", b"b", timestamps_ms=[T, T + 10]))
    produce(client, topic, batches.encode(b"c", timestamps_ms=[T + 20]))
    answer = list_offset(client, topic, timestamp)
    assert (answer.error_code, answer.offset, answer.timestamp) == (Code.NONE, offset, found)


def test_a_time_after_the_last_record_finds_nothing(client: Client, topic: str) -> None:
    produce(client, topic, batches.encode(b"a", timestamps_ms=[T]))
    answer = list_offset(client, topic, T + 1)
    assert (answer.error_code, answer.offset, answer.timestamp) == (Code.NONE, -1, -1)


def test_times_that_go_back_find_the_first_record_in_the_log_s_order(
    client: Client, topic: str
) -> None:
    produce(client, topic, batches.encode(b"late", timestamps_ms=[T + 50]))
    produce(client, topic, batches.encode(b"early", timestamps_ms=[T]))
    answer = list_offset(client, topic, T)
    assert (answer.offset, answer.timestamp) == (0, T + 50)


def test_the_record_with_the_highest_time_can_be_asked_for(client: Client, topic: str) -> None:
    produce(client, topic, batches.encode(b"a", b"b", b"c", timestamps_ms=[T, T + 9, T + 5]))
    answer = list_offset(client, topic, MAX_TIMESTAMP)
    assert (answer.offset, answer.timestamp) == (1, T + 9)


def test_the_latest_offset_of_committed_data_is_the_first_undecided_one(
    client: Client, topic: str, transactional_id: str
) -> None:
    produce(client, topic, batches.encode(b"before"))
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a", b"b")

    def latest() -> tuple[int, int]:
        seen = (READ_COMMITTED, READ_UNCOMMITTED)
        one, two = (list_offset(client, topic, LATEST, isolation=each).offset for each in seen)
        return one, two

    assert latest() == (1, 3)
    producer.commit()
    assert latest() == (4, 4)


def test_a_time_finds_no_undecided_record_for_readers_of_committed_data(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    assert list_offset(client, topic, T, isolation=READ_UNCOMMITTED).offset == 0
    assert list_offset(client, topic, T, isolation=READ_COMMITTED).offset == -1
    producer.commit()
    assert list_offset(client, topic, T, isolation=READ_COMMITTED).offset == 0


def fields(answer: Any) -> tuple[int, int, int, int]:
    return Code(answer.error_code), answer.offset, answer.timestamp, answer.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "version", "expected"),
    [
        (T + 1, 11, (Code.NONE, 1, T + 1, 0)),
        (T + 2, 11, (Code.NONE, -1, -1, -1)),
        (LATEST, 11, (Code.NONE, 2, -1, 0)),
        (EARLIEST, 11, (Code.NONE, 0, -1, 0)),
        (MAX_TIMESTAMP, 6, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
        (MAX_TIMESTAMP, 7, (Code.NONE, 1, T + 1, 0)),
        (EARLIEST_LOCAL, 7, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
        (EARLIEST_LOCAL, 8, (Code.NONE, 0, -1, 0)),
        (LATEST_TIERED, 8, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
        (LATEST_TIERED, 9, (Code.NONE, -1, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, 10, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, 11, (Code.NONE, -1, -1, -1)),
        (-7, 11, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
        (-(2**63), 11, (Code.UNSUPPORTED_VERSION, -1, -1, -1)),
    ],
)
def test_each_kind_of_look_up_has_a_first_version(
    client: Client, topic: str, timestamp: int, version: int, expected: tuple[int, int, int, int]
) -> None:
    produce(client, topic, batches.encode(b"a", b"b", timestamps_ms=[T, T + 1]))
    assert fields(list_offset(client, topic, timestamp, version=version)) == expected


@pytest.mark.parametrize("timestamp", [T, MAX_TIMESTAMP])
def test_of_an_empty_partition_no_time_is_found(client: Client, topic: str, timestamp: int) -> None:
    assert fields(list_offset(client, topic, timestamp)) == (Code.NONE, -1, -1, -1)


def test_the_highest_time_counts_for_readers_of_committed_data_once_it_is_decided(
    client: Client, topic: str, transactional_id: str
) -> None:
    produce(client, topic, batches.encode(b"before", timestamps_ms=[T - 10]))
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    assert list_offset(client, topic, MAX_TIMESTAMP).offset == 1
    undecided = list_offset(client, topic, MAX_TIMESTAMP, isolation=READ_COMMITTED)
    assert fields(undecided) == (Code.NONE, -1, -1, -1)
    producer.abort()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_found_one_by_one(
    broker: Broker, client: Client, topic: str, codec: str
) -> None:
    producer = ConfluentProducer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 1_000,
        }
    )
    for number, time_ms in enumerate((T, T + 10, T + 30, T + 20)):
        producer.produce(topic, b"value " * 30 + b"%d" % number, timestamp=time_ms)
    assert producer.flush(20) == 0
    assert fields(list_offset(client, topic, T + 5)) == (Code.NONE, 1, T + 10, 0)
    assert fields(list_offset(client, topic, T + 11)) == (Code.NONE, 2, T + 30, 0)
    assert fields(list_offset(client, topic, MAX_TIMESTAMP)) == (Code.NONE, 2, T + 30, 0)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, Code.NONE),
        (0, Code.NONE),
        (1, Code.UNKNOWN_LEADER_EPOCH),
        (-2, Code.FENCED_LEADER_EPOCH),
    ],
)
def test_a_client_that_knows_another_leader_epoch_is_refused(
    client: Client, topic: str, epoch: int, code: Code
) -> None:
    asked = {"partition_index": 0, "timestamp": LATEST, "current_leader_epoch": epoch}
    response = client.send(
        Api.LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": topic, "partitions": [asked]}]
    )
    assert response.topics[0].partitions[0].error_code == code


def test_a_partition_that_is_named_twice_is_refused_with_42(client: Client, topic: str) -> None:
    asked = {"partition_index": 0, "timestamp": LATEST}
    response = client.send(
        Api.LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": topic, "partitions": [asked, asked]}]
    )
    found = {Code(part.error_code) for part in response.topics[0].partitions}
    assert found == {Code.INVALID_REQUEST}


@pytest.mark.parametrize("version", [1, 2, 4, 6, 7])
def test_the_latest_offset_is_told_at_each_version(
    client: Client, topic: str, version: int
) -> None:
    produce(client, topic, batches.encode(b"a"))
    response = client.send(
        Api.LIST_OFFSETS,
        version,
        replica_id=-1,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": LATEST}]}],
    )
    answer = response.topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (Code.NONE, 1)


def test_an_unknown_topic_or_partition_is_refused_with_3(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    unknown = list_offset(client, unique("unknown"), LATEST)
    assert unknown.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.offset == -1
    beyond = list_offset(client, topic, LATEST, partition=7)
    assert beyond.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
