"""Test that DeleteRecords moves the start of a log, for readers of every kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    create_topic,
    fetch,
    list_offset,
    produce,
)
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client


def delete(
    client: Client, topic: str, offset: int, *, partition: int = 0, version: int = 2
) -> tuple[Code, int]:
    """Delete records; return the code and the low watermark."""
    response = client.send(
        Api.DELETE_RECORDS,
        version,
        topics=[{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}],
        timeout=10_000,
    )
    [answer] = response.topics[0].partitions
    assert (response.topics[0].name, answer.partition_index) == (topic, partition)
    return Code(answer.error_code), answer.low_watermark


@pytest.fixture
def filled(client: Client, topic: str) -> str:
    """Create a topic with records at 0 to 5, three to a batch."""
    produce(client, topic, batches.encode(b"0", b"1", b"2"))
    produce(client, topic, batches.encode(b"3", b"4", b"5"))
    return topic


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_begins_where_it_is_told_to(client: Client, filled: str, version: int) -> None:
    assert delete(client, filled, 3, version=version) == (Code.NONE, 3)
    assert list_offset(client, filled, EARLIEST).offset == 3
    assert list_offset(client, filled, LATEST).offset == 6
    assert fetch(client, filled, 2).error_code == Code.OFFSET_OUT_OF_RANGE
    answer = fetch(client, filled, 3)
    assert batches.values(answer.records) == [b"3", b"4", b"5"]
    assert (answer.log_start_offset, answer.high_watermark) == (3, 6)
    assert produce(client, filled, batches.encode(b"6")).log_start_offset == 3


def test_within_a_batch_the_whole_batch_is_still_read(client: Client, filled: str) -> None:
    assert delete(client, filled, 4) == (Code.NONE, 4)
    assert list_offset(client, filled, EARLIEST).offset == 4
    assert fetch(client, filled, 3).error_code == Code.OFFSET_OUT_OF_RANGE
    assert batches.values(fetch(client, filled, 4).records) == [b"3", b"4", b"5"]


def test_minus_1_means_the_high_watermark(client: Client, filled: str) -> None:
    assert delete(client, filled, -1) == (Code.NONE, 6)
    assert list_offset(client, filled, EARLIEST).offset == 6
    assert fetch(client, filled, 6).records == b""
    assert produce(client, filled, batches.encode(b"6")).base_offset == 6
    assert batches.values(fetch(client, filled, 6).records) == [b"6"]


def test_an_offset_that_is_gone_already_changes_nothing(client: Client, filled: str) -> None:
    assert delete(client, filled, 4) == (Code.NONE, 4)
    assert delete(client, filled, 2) == (Code.NONE, 4)
    assert delete(client, filled, 0) == (Code.NONE, 4)


@pytest.mark.parametrize("offset", [7, 100, -2])
def test_an_offset_outside_the_log_is_refused_with_1(
    client: Client, filled: str, offset: int
) -> None:
    assert delete(client, filled, offset) == (Code.OFFSET_OUT_OF_RANGE, -1)
    assert list_offset(client, filled, EARLIEST).offset == 0


def test_an_unknown_topic_or_partition_is_refused_with_3(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    refused = (Code.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(client, unique("unknown"), 0) == refused
    assert delete(client, topic, 0, partition=4) == refused


def test_the_broker_s_own_topics_keep_their_records(client: Client) -> None:
    assert delete(client, "__consumer_offsets", -1) == (Code.INVALID_TOPIC_EXCEPTION, -1)


@pytest.mark.parametrize(
    ("policy", "code"),
    [("compact", Code.POLICY_VIOLATION), ("compact,delete", Code.NONE), ("delete", Code.NONE)],
)
def test_a_topic_that_is_only_compacted_keeps_its_records(
    client: Client, unique: Callable[[str], str], policy: str, code: Code
) -> None:
    name = unique(policy.replace(",", "-"))
    create_topic(client, name, configs={"cleanup.policy": policy})
    produce(client, name, batches.encode((b"key", b"value")))
    assert delete(client, name, 1)[0] == code


def test_a_time_finds_no_record_that_is_deleted(client: Client, topic: str) -> None:
    time_ms = batches.TIMESTAMP_MS
    produce(client, topic, batches.encode(b"0", b"1", timestamps_ms=[time_ms + 10, time_ms + 5]))
    produce(client, topic, batches.encode(b"2", timestamps_ms=[time_ms + 20]))
    delete(client, topic, 1)
    found = list_offset(client, topic, time_ms + 8)
    assert (found.offset, found.timestamp) == (2, time_ms + 20)
    found = list_offset(client, topic, time_ms)
    assert (found.offset, found.timestamp) == (1, time_ms + 5)


def test_records_of_an_open_transaction_may_be_deleted(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a", b"b")
    assert delete(client, topic, 1) == (Code.NONE, 1)
    assert list_offset(client, topic, LATEST, isolation=READ_COMMITTED).offset <= 1
    producer.write(topic, b"c")
    producer.abort()
    answer = fetch(client, topic, 1, isolation=READ_COMMITTED)
    assert answer.last_stable_offset == 4
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    assert [producer_id for producer_id, _ in aborted] == [producer.producer_id]
