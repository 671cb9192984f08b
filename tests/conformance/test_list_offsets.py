"""ListOffsets: the earliest, the latest and the first at a time, seen at either isolation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.errors import Code
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
