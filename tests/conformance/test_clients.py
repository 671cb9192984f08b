"""Test confluent-kafka's transactions, fencing and groups as an application uses them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.brokers import Broker
from tests.conformance.calls import commit_offset, create_topic, settled_offset
from tests.conformance.members import Member, alone
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until


@pytest.fixture
def consumer(broker: Broker, unique: Callable[[str], str]) -> Iterator[Callable[..., Consumer]]:
    """Return a function that makes consumers, which are closed at the end."""
    made: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        defaults = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
        }
        made.append(Consumer({**defaults, **dotted}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def transactional(broker: Broker, transactional_id: str) -> Callable[[], Producer]:
    """Return a function that makes initialised producers with one transactional id."""

    def make() -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 60_000,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(HANG_LIMIT_S)
        return producer

    return make


def read(consumer: Consumer, topic: str, count: int) -> list[bytes | None]:
    """Read so many values from the beginning of partition 0."""
    consumer.assign([TopicPartition(topic, 0, 0)])
    return [each.value() for each in consumer.consume(count, timeout=HANG_LIMIT_S)]


def test_committed_transactions_are_read_and_aborted_ones_are_not(
    topic: str, transactional: Callable[[], Producer], consumer: Callable[..., Consumer]
) -> None:
    producer = transactional()
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        if number % 2:
            producer.abort_transaction(HANG_LIMIT_S)
        else:
            producer.commit_transaction(HANG_LIMIT_S)
    assert read(consumer(), topic, 3) == [b"0", b"2", b"4"]


def test_a_reader_of_uncommitted_data_sees_what_was_flushed_even_if_it_is_aborted(
    topic: str, transactional: Callable[[], Producer], consumer: Callable[..., Consumer]
) -> None:
    producer = transactional()
    producer.begin_transaction()
    producer.produce(topic, b"a")
    producer.flush(HANG_LIMIT_S)
    assert read(consumer(isolation_level="read_uncommitted"), topic, 1) == [b"a"]
    producer.abort_transaction(HANG_LIMIT_S)


def test_a_consumer_s_position_passes_markers_and_aborted_records(
    topic: str, transactional: Callable[[], Producer], consumer: Callable[..., Consumer]
) -> None:
    producer = transactional()
    for value, finish in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(HANG_LIMIT_S)
        finish(HANG_LIMIT_S)
    reader = consumer()
    assert read(reader, topic, 1) == [b"a"]

    def at_the_end() -> bool:
        assert reader.consume(1, timeout=0.02) == []
        return bool(reader.position([TopicPartition(topic, 0)])[0].offset == 4)

    wait_until(at_the_end, what="the position stays behind")
    low_high = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=HANG_LIMIT_S)
    assert low_high == (0, 4)


def test_a_second_producer_with_the_same_id_fences_the_first_for_good(
    topic: str, transactional: Callable[[], Producer], consumer: Callable[..., Consumer]
) -> None:
    old = transactional()
    old.begin_transaction()
    old.produce(topic, b"of the old one")
    old.flush(HANG_LIMIT_S)
    new = transactional()
    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(HANG_LIMIT_S)
    error: KafkaError = caught.value.args[0]
    assert error.fatal()
    assert error.code() == KafkaError._FENCED
    new.begin_transaction()
    new.produce(topic, b"of the new one")
    new.commit_transaction(HANG_LIMIT_S)
    assert read(consumer(), topic, 1) == [b"of the new one"]


def test_input_offsets_and_output_are_committed_together(
    topic: str,
    other_topic: str,
    group: str,
    client: Client,
    transactional: Callable[[], Producer],
    consumer: Callable[..., Consumer],
) -> None:
    reader = consumer(group_id=group)
    producer = transactional()
    for finish, offset, output in (
        (producer.abort_transaction, 7, b"aborted"),
        (producer.commit_transaction, 8, b"committed"),
    ):
        producer.begin_transaction()
        producer.produce(other_topic, output)
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], reader.consumer_group_metadata(), HANG_LIMIT_S
        )
        finish(HANG_LIMIT_S)
    assert read(consumer(), other_topic, 1) == [b"committed"]
    assert settled_offset(client, group, topic) == 8


def test_a_read_of_committed_offsets_waits_for_the_pending_transaction(
    topic: str,
    group: str,
    client: Client,
    transactional: Callable[[], Producer],
    consumer: Callable[..., Consumer],
) -> None:
    commit_offset(client, group, topic, 1)
    reader = consumer(group_id=group)
    producer = transactional()
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, 0, 2)], reader.consumer_group_metadata(), HANG_LIMIT_S
    )
    with pytest.raises(KafkaException):
        reader.committed([TopicPartition(topic, 0)], timeout=0.3)
    producer.commit_transaction(HANG_LIMIT_S)
    (found,) = reader.committed([TopicPartition(topic, 0)], timeout=HANG_LIMIT_S)
    assert found.offset == 2


def metadata_of(group: str, generation: int, member_id: str) -> bytes:
    """Encode librdkafka's group metadata: `CGMDv2:`, generation, names, no instance id."""
    names = group.encode() + b"\0" + member_id.encode() + b"\0"
    return b"CGMDv2:" + struct.pack("=i", generation) + names + b"\1"


def test_offsets_of_a_member_that_was_left_behind_are_refused_and_the_producer_goes_on(
    topic: str,
    group: str,
    connect: Callable[[], Client],
    transactional: Callable[[], Producer],
) -> None:
    member = alone(Member(connect(), group))
    producer = transactional()

    def send(generation: int, offset: int) -> None:
        producer.begin_transaction()
        metadata = metadata_of(group, generation, member.member_id)
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], metadata, HANG_LIMIT_S
        )

    with pytest.raises(KafkaException) as caught:
        send(member.generation - 1, 1)
    error: KafkaError = caught.value.args[0]
    assert error.code() == KafkaError.ILLEGAL_GENERATION
    assert error.txn_requires_abort()
    assert not error.fatal()
    producer.abort_transaction(HANG_LIMIT_S)
    send(member.generation, 2)
    producer.commit_transaction(HANG_LIMIT_S)
    assert settled_offset(member.client, group, topic) == 2


def test_two_consumers_share_a_topic_and_the_rest_takes_over_when_one_leaves(
    client: Client, group: str, unique: Callable[[str], str], consumer: Callable[..., Consumer]
) -> None:
    name = unique("topic")
    create_topic(client, name, partitions=4)
    settings = {
        "group_id": group,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 100,
        "partition_assignment_strategy": "range",
    }
    one = consumer(**settings)
    one.subscribe([name])

    def assigned(*counts: int) -> Callable[[], bool]:
        members = (one, two) if len(counts) == 2 else (one,)

        def look() -> bool:
            for each in members:
                each.poll(0.02)
            return tuple(len(each.assignment()) for each in members) == counts

        return look

    two = one
    wait_until(assigned(4), what="the first gets all")
    two = consumer(**settings)
    two.subscribe([name])
    wait_until(assigned(2, 2), what="each gets two")
    two.close()
    wait_until(assigned(4), what="the first gets all again")
