"""Test that the verdict on a copy accepts a right one and sees what is wrong with any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.brokers import Broker
from tests.clients.copying import (
    PARTITIONS,
    Copying,
    check_no_transaction,
    check_output,
    has_reached_the_end,
    prepare,
)
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import open_partitions

RECORDS = 40
BATCH = 10


@pytest.fixture
def copying(broker: Broker, unique: Callable[[str], str]) -> Copying:
    return prepare(broker, unique, RECORDS)


@contextmanager
def copier(broker: Broker, copying: Copying) -> Iterator[Producer]:
    """Provide a producer that copies by hand; what it leaves open is aborted in the end."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "transactional.id": copying.transactional_id,
        "transaction.timeout.ms": 300_000,
    }
    producer = Producer(settings)
    producer.init_transactions(HANG_LIMIT_S)
    yield producer
    Producer(settings).init_transactions(HANG_LIMIT_S)


def begin(broker: Broker, producer: Producer, copying: Copying, first: int, *copies: int) -> None:
    """Begin a transaction with these copies, and with the offsets behind the batch at `first`."""
    producer.begin_transaction()
    for number in copies:
        partition = number % PARTITIONS
        producer.produce(copying.output, str(number).encode(), partition=partition)
    assert producer.flush(HANG_LIMIT_S) == 0
    behind = (first + BATCH) // PARTITIONS
    offsets = [TopicPartition(copying.input, each, behind) for each in range(PARTITIONS)]
    group = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": copying.group})
    metadata = group.consumer_group_metadata()
    producer.send_offsets_to_transaction(offsets, metadata, HANG_LIMIT_S)
    group.close()


def copy(
    broker: Broker,
    producer: Producer,
    copying: Copying,
    change: Callable[[list[int]], list[int]] = list,
) -> None:
    """Copy everything; of the last batch, copy what `change` makes of it."""
    for first in range(0, RECORDS, BATCH):
        numbers = list(range(first, first + BATCH))
        is_last = first + BATCH == RECORDS
        begin(broker, producer, copying, first, *(change(numbers) if is_last else numbers))
        producer.commit_transaction(HANG_LIMIT_S)


def test_a_copy_that_is_right_passes(broker: Broker, copying: Copying) -> None:
    with copier(broker, copying) as producer:
        copy(broker, producer, copying)
        wait_for_the_end(broker, copying)
        check_no_transaction(broker, copying)
        check_output(broker, copying)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda numbers: [], "5 lost, 0 doubled"),
        (lambda numbers: [*numbers, numbers[-1]], "0 lost, 1 doubled"),
        (lambda numbers: [*numbers[2:], *numbers[:2]], "0 lost, 0 doubled; in order up to 15"),
    ],
    ids=["loses the last batch", "doubles a record", "changes the order"],
)
def test_a_copy_with_other_records_than_the_input_fails(
    broker: Broker, copying: Copying, change: Callable[[list[int]], list[int]], found: str
) -> None:
    with copier(broker, copying) as producer:
        copy(broker, producer, copying, change)
        wait_for_the_end(broker, copying)
        check_no_transaction(broker, copying)
        with pytest.raises(AssertionError, match=found):
            check_output(broker, copying)


def wait_for_the_end(broker: Broker, copying: Copying) -> None:
    """Wait until the last transaction's offsets are stable: its markers may be on their way."""
    wait_until(lambda: has_reached_the_end(broker, copying), what="the copy never got to the end")


def test_a_copy_whose_last_transaction_is_open_is_not_at_the_end(
    broker: Broker, copying: Copying
) -> None:
    with copier(broker, copying) as producer:
        for first in range(0, RECORDS, BATCH):
            begin(broker, producer, copying, first, *range(first, first + BATCH))
            if first + BATCH < RECORDS:
                producer.commit_transaction(HANG_LIMIT_S)
        assert not has_reached_the_end(broker, copying)
        with pytest.raises(AssertionError, match="Ongoing"):
            check_no_transaction(broker, copying)


def test_a_copy_with_an_open_transaction_behind_it_fails(broker: Broker, copying: Copying) -> None:
    """Whoever reads what is committed sees a right copy, and nothing of the records behind it."""
    with copier(broker, copying) as producer:
        copy(broker, producer, copying)
        producer.begin_transaction()
        producer.produce(copying.output, b"0", partition=0)
        assert producer.flush(HANG_LIMIT_S) == 0
        wait_for_the_end(broker, copying)
        assert open_partitions(broker.bootstrap_servers, copying.output, PARTITIONS) == [0]
        with pytest.raises(AssertionError, match="Ongoing"):
            check_no_transaction(broker, copying)
