"""Test OffsetForLeaderEpoch and the epochs in a Fetch, which find truncated logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import ENOUGH_BYTES, produce
from tests.conformance.wire import Api, Client


def ask(
    client: Client,
    topic: str,
    epoch: int,
    *,
    current: int = -1,
    partition: int = 0,
    version: int = 3,
) -> tuple[Code, int, int]:
    """Return the code, leader epoch and end offset of OffsetForLeaderEpoch."""
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    response = client.send(
        Api.OFFSET_FOR_LEADER_EPOCH,
        version,
        topics=[{"topic": topic, "partitions": [asked]}],
        **({"replica_id": -1} if version >= 3 else {}),
    )
    [found] = response.topics[0].partitions
    assert (response.topics[0].topic, found.partition) == (topic, partition)
    return Code(found.error_code), found.leader_epoch, found.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_first_epoch_ends_where_the_log_ends(client: Client, topic: str, version: int) -> None:
    assert ask(client, topic, 0, version=version) == (Code.NONE, 0, 0)
    produce(client, topic, batches.encode(b"a", b"b"))
    assert ask(client, topic, 0, version=version) == (Code.NONE, 0, 2)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(1, (-1, -1)), (7, (-1, -1)), (-1, (-1, -1)), (-2, (-2, 0))]
)
def test_of_an_epoch_that_has_not_been_there_is_no_end(
    client: Client, topic: str, epoch: int, expected: tuple[int, int]
) -> None:
    produce(client, topic, batches.encode(b"a"))
    assert ask(client, topic, epoch) == (Code.NONE, *expected)


@pytest.mark.parametrize(
    ("current", "code"),
    [
        (0, Code.NONE),
        (1, Code.UNKNOWN_LEADER_EPOCH),
        (-2, Code.FENCED_LEADER_EPOCH),
    ],
)
def test_a_client_that_knows_another_leader_epoch_is_refused(
    client: Client, topic: str, current: int, code: Code
) -> None:
    expected = (0, 0) if code == Code.NONE else (-1, -1)
    assert ask(client, topic, 0, current=current) == (code, *expected)


def test_an_unknown_topic_or_partition_is_refused_with_3(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    refused = (Code.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask(client, unique("unknown"), 0) == refused
    assert ask(client, topic, 0, partition=3) == refused


def fetch(client: Client, topic: str, offset: int, **epochs: int) -> Any:
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": ENOUGH_BYTES, **epochs}
    response = client.send(
        Api.FETCH, 12, replica_id=-1, max_wait=0, topics=[{"topic": topic, "partitions": [part]}]
    )
    return response.responses[0].partitions[0]


@pytest.mark.parametrize(
    ("current", "code"),
    [
        (0, Code.NONE),
        (1, Code.UNKNOWN_LEADER_EPOCH),
        (-2, Code.NONE),
    ],
)
def test_a_fetch_with_another_leader_epoch_is_refused(
    client: Client, topic: str, current: int, code: Code
) -> None:
    assert fetch(client, topic, 0, current_leader_epoch=current).error_code == code


def test_a_consumer_beyond_the_end_of_its_epoch_is_told_where_that_is(
    client: Client, topic: str
) -> None:
    produce(client, topic, batches.encode(b"a", b"b"))
    answer = fetch(client, topic, 5, last_fetched_epoch=0)
    assert (answer.error_code, answer.records) == (Code.NONE, b"")
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2)
    assert answer.high_watermark == 2


def test_a_consumer_that_is_not_beyond_it_is_answered(client: Client, topic: str) -> None:
    produce(client, topic, batches.encode(b"a", b"b"))
    answer = fetch(client, topic, 0, last_fetched_epoch=0)
    assert batches.values(answer.records) == [b"a", b"b"]
    assert answer.diverging_epoch.end_offset == -1


def test_a_consumer_that_has_read_in_an_epoch_that_has_not_been_is_out_of_range(
    client: Client, topic: str
) -> None:
    produce(client, topic, batches.encode(b"a"))
    answer = fetch(client, topic, 0, last_fetched_epoch=4)
    assert answer.error_code == Code.OFFSET_OUT_OF_RANGE
