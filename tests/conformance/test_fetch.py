"""Test Fetch: whole batches from an offset on, long polls, and isolation.

A reader of committed data gets nothing that is still undecided.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import (
    ENOUGH_BYTES,
    READ_COMMITTED,
    fetch,
    post_fetch,
    produce,
    topic_id,
)
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client
from tests.processes import UNREACHED_MS


def base_offsets(data: bytes | None) -> list[int]:
    return [each.base_offset for each in batches.decode(data)]


def aborted(answer: Any) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]


# Records


def test_records_are_read_from_the_offset_that_was_asked_for(client: Client, topic: str) -> None:
    for value in (b"a", b"b", b"c"):
        produce(client, topic, batches.encode(value))
    answer = fetch(client, topic, 1)
    assert answer.error_code == Code.NONE
    assert batches.values(answer.records) == [b"b", b"c"]
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 3, 0)


def test_a_batch_is_read_whole_even_from_its_middle(client: Client, topic: str) -> None:
    produce(client, topic, batches.encode(b"a", b"b", b"c"))
    produce(client, topic, batches.encode(b"d"))
    assert base_offsets(fetch(client, topic, 2).records) == [0, 3]


def test_a_batch_is_stored_as_it_was_sent_but_for_its_offset_and_leader_epoch(
    client: Client, topic: str
) -> None:
    sent = batches.encode((b"key", b"value"), (None, None))
    produce(client, topic, batches.encode(b"before"))
    produce(client, topic, sent)
    read = fetch(client, topic, 1).records
    assert read[8:12] == sent[8:12]
    assert read[16:] == sent[16:]
    (batch,) = batches.decode(read)
    assert batch.base_offset == 1
    assert batch.leader_epoch >= 0
    assert batch.records == ((b"key", b"value"), (None, None))


def test_at_the_end_there_is_nothing_and_beyond_it_an_error(client: Client, topic: str) -> None:
    produce(client, topic, batches.encode(b"a"))
    at_end = fetch(client, topic, 1)
    assert (at_end.error_code, at_end.records) == (Code.NONE, b"")
    beyond = fetch(client, topic, 2)
    assert beyond.error_code == Code.OFFSET_OUT_OF_RANGE
    assert fetch(client, topic, -1).error_code == Code.OFFSET_OUT_OF_RANGE


def test_an_unknown_topic_or_partition_is_refused_with_3(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    unknown = fetch(client, unique("unknown"), 0)
    assert unknown.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.high_watermark == -1
    beyond = fetch(client, topic, 0, partition=1)
    assert beyond.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_topic_is_read_by_name_at_each_version(client: Client, topic: str, version: int) -> None:
    produce(client, topic, batches.encode(b"a"))
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": ENOUGH_BYTES}
    response = client.send(
        Api.FETCH,
        version,
        replica_id=-1,
        max_wait=0,
        max_bytes=ENOUGH_BYTES,
        topics=[{"topic": topic, "partitions": [part]}],
    )
    assert batches.values(response.responses[0].partitions[0].records) == [b"a"]


def fetch_by_id(client: Client, known: UUID, version: int) -> Any:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": ENOUGH_BYTES}
    response = client.send(
        Api.FETCH,
        version,
        max_wait=0,
        max_bytes=ENOUGH_BYTES,
        topics=[{"topic_id": known, "partitions": [part]}],
        **({"replica_id": -1} if version < 15 else {}),
    )
    assert response.error_code == Code.NONE
    assert response.responses[0].topic_id == known
    return response.responses[0].partitions[0]


@pytest.mark.parametrize("version", [13, 15, 16])
def test_a_topic_is_read_by_id_at_each_version(client: Client, topic: str, version: int) -> None:
    produce(client, topic, batches.encode(b"a"))
    answer = fetch_by_id(client, topic_id(client, topic), version)
    assert batches.values(answer.records) == [b"a"]


def test_an_unknown_topic_id_is_refused_with_100(client: Client) -> None:
    unknown = UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF1)
    assert fetch_by_id(client, unknown, 16).error_code == Code.UNKNOWN_TOPIC_ID


def test_a_fetch_session_that_does_not_exist_is_refused_with_70(client: Client, topic: str) -> None:
    response = client.send(
        Api.FETCH, 12, replica_id=-1, max_wait=0, session_id=12345, session_epoch=3
    )
    assert response.error_code == Code.FETCH_SESSION_ID_NOT_FOUND
    assert response.responses == ()


# Sizes


def test_the_first_batch_is_returned_even_if_it_is_larger_than_the_limit(
    client: Client, topic: str
) -> None:
    large = batches.encode(b"x" * 2000)
    produce(client, topic, large)
    produce(client, topic, batches.encode(b"y" * 2000))
    for limits in ({"max_bytes": 100}, {"partition_max_bytes": 100}):
        data = fetch(client, topic, 0, **limits).records
        assert base_offsets(data) == [0]
        assert len(data) < 2 * len(large)


def test_as_many_batches_come_as_fit_the_limit(client: Client, topic: str) -> None:
    size = len(batches.encode(b"x" * 1000))
    for _ in range(10):
        produce(client, topic, batches.encode(b"x" * 1000))
    data = fetch(client, topic, 0, partition_max_bytes=4 * size).records
    assert base_offsets(data) == [0, 1, 2, 3]


def test_a_second_partition_gets_nothing_once_the_limit_of_the_request_is_reached(
    client: Client, topic: str, other_topic: str
) -> None:
    for name in (topic, other_topic):
        produce(client, name, batches.encode(b"x" * 1000))
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": ENOUGH_BYTES}
    response = client.send(
        Api.FETCH,
        12,
        replica_id=-1,
        max_wait=0,
        max_bytes=500,
        topics=[{"topic": name, "partitions": [part]} for name in (topic, other_topic)],
    )
    read = {each.topic: each.partitions[0].records for each in response.responses}
    assert base_offsets(read[topic]) == [0]
    assert base_offsets(read.get(other_topic)) == []


# Waits


def test_a_fetch_at_the_end_waits_as_long_as_it_may_and_then_returns_nothing(
    client: Client, topic: str
) -> None:
    begin = time.monotonic()
    answer = fetch(client, topic, 0, max_wait_ms=300, min_bytes=1)
    waited_s = time.monotonic() - begin
    assert answer.records == b""
    assert waited_s >= 0.29


def test_a_fetch_that_waits_is_answered_when_a_record_comes(
    connect: Callable[[], Client], topic: str
) -> None:
    reader, writer = connect(), connect()
    waiting = post_fetch(reader, topic, 0, max_wait_ms=UNREACHED_MS, min_bytes=1)
    produce(writer, topic, batches.encode(b"news"))
    response = reader.receive(waiting)
    assert batches.values(response.responses[0].partitions[0].records) == [b"news"]


def test_a_fetch_waits_until_there_are_as_many_bytes_as_it_wants(
    connect: Callable[[], Client], topic: str
) -> None:
    reader, writer = connect(), connect()
    small, large = batches.encode(b"small"), batches.encode(b"x" * 3000)
    waiting = post_fetch(reader, topic, 0, max_wait_ms=UNREACHED_MS, min_bytes=3000)
    produce(writer, topic, small)
    produce(writer, topic, large)
    response = reader.receive(waiting)
    assert base_offsets(response.responses[0].partitions[0].records) == [0, 1]


def test_an_error_in_one_partition_is_told_at_once(client: Client, topic: str) -> None:
    answer = fetch(client, topic, 99, max_wait_ms=UNREACHED_MS, min_bytes=1)
    assert answer.error_code == Code.OFFSET_OUT_OF_RANGE


def test_a_reader_of_committed_data_that_waits_is_answered_when_the_transaction_ends(
    connect: Callable[[], Client], topic: str, transactional_id: str
) -> None:
    reader, writer = connect(), connect()
    producer = Producer.init(writer, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    waiting = post_fetch(
        reader, topic, 0, max_wait_ms=UNREACHED_MS, min_bytes=1, isolation=READ_COMMITTED
    )
    producer.commit()
    response = reader.receive(waiting)
    assert batches.values(response.responses[0].partitions[0].records) == [b"a"]


# Isolation


def test_data_of_an_open_transaction_is_hidden_from_readers_of_committed_data(
    client: Client, topic: str, transactional_id: str
) -> None:
    produce(client, topic, batches.encode(b"before"))
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"open")
    produce(client, topic, batches.encode(b"after"))
    committed = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert batches.values(committed.records) == [b"before"]
    assert (committed.last_stable_offset, committed.high_watermark) == (1, 3)
    everything = fetch(client, topic, 0)
    assert batches.values(everything.records) == [b"before", b"open", b"after"]
    assert everything.last_stable_offset == 1
    producer.abort()


def test_at_the_first_undecided_offset_a_reader_of_committed_data_finds_nothing(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a", b"b")
    for offset in (0, 1, 2):
        answer = fetch(client, topic, offset, isolation=READ_COMMITTED)
        assert (answer.error_code, answer.records) == (Code.NONE, b"")
    producer.commit()


def test_a_committed_transaction_ends_with_a_marker_that_takes_one_offset(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a", b"b")
    producer.commit()
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    data, marker = batches.decode(answer.records)
    assert [value for _, value in data.records] == [b"a", b"b"]
    assert data.is_transactional
    assert not data.is_control
    assert (marker.base_offset, marker.marker, marker.base_sequence) == (2, "commit", -1)
    assert marker.is_transactional
    assert marker.producer_id == producer.producer_id
    assert answer.last_stable_offset == answer.high_watermark == 3
    assert aborted(answer) == []


def test_the_marker_s_key_is_version_and_type_and_its_value_version_and_coordinator_epoch(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    producer.abort()
    _, marker = batches.decode(fetch(client, topic, 0).records)
    ((key, value),) = marker.records
    assert key == b"\0\0\0\0"
    assert value is not None
    assert value[:2] == b"\0\0"
    assert int.from_bytes(value[2:6], "big") >= 0


def test_an_aborted_transaction_is_named_with_its_first_offset_to_readers_of_committed_data(
    client: Client, topic: str, transactional_id: str
) -> None:
    produce(client, topic, batches.encode(b"before"))
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    producer.write(topic, b"b")
    producer.abort()
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert aborted(answer) == [(producer.producer_id, 1)]
    assert batches.values(answer.records) == [b"before", b"a", b"b"], "the client leaves them out"
    assert batches.decode(answer.records)[-1].marker == "abort"
    assert fetch(client, topic, 0).aborted_transactions is None


def test_an_aborted_transaction_is_named_only_where_its_offsets_are_read(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    producer.abort()
    produce(client, topic, batches.encode(b"later"))
    on_the_marker = fetch(client, topic, 1, isolation=READ_COMMITTED)
    assert aborted(on_the_marker) == [(producer.producer_id, 0)]
    after = fetch(client, topic, 2, isolation=READ_COMMITTED)
    assert aborted(after) == []
    assert batches.values(after.records) == [b"later"]


def test_transactions_of_two_producers_in_one_partition_are_told_apart(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    one = Producer.init(client, unique("txn"))
    two = Producer.init(client, unique("txn"))
    one.add(topic)
    two.add(topic)
    one.write(topic, b"one")
    two.write(topic, b"two")
    one.write(topic, b"one again")
    two.abort()
    assert fetch(client, topic, 0, isolation=READ_COMMITTED).last_stable_offset == 0
    one.commit()
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert answer.last_stable_offset == 5
    assert aborted(answer) == [(two.producer_id, 1)]
    assert [(each.base_offset, each.producer_id) for each in batches.decode(answer.records)] == [
        (0, one.producer_id),
        (1, two.producer_id),
        (2, one.producer_id),
        (3, two.producer_id),
        (4, one.producer_id),
    ]


def test_a_transaction_that_wrote_nothing_to_a_partition_leaves_a_marker_and_no_entry(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.abort()
    answer = fetch(client, topic, 0, isolation=READ_COMMITTED)
    assert [each.marker for each in batches.decode(answer.records)] == ["abort"]
    assert aborted(answer) == []
