"""Test ListTransactions, DescribeTransactions, DescribeProducers, and ending hanging ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.errors import Code
from tests.conformance.calls import LATEST, READ_COMMITTED, end_offset, list_offset
from tests.conformance.producers import Producer, init_producer_id
from tests.conformance.transactions import (
    ActiveProducer,
    describe,
    describe_producers,
    list_transactions,
    write_marker,
)
from tests.conformance.wire import Api, Client
from tests.processes import wait_until


def wait_for(client: Client, transactional_id: str, state: str) -> None:
    """Wait until the id is in that state, as real Kafka completes a transaction after EndTxn."""
    wait_until(
        lambda: describe(client, transactional_id).state == state,
        what=f"{transactional_id} is not {state}",
    )


def test_a_transaction_is_described_in_each_of_its_states(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    who = (producer.producer_id, producer.epoch)
    assert describe(client, transactional_id) == (Code.NONE, "Empty", *who, False, [])
    producer.add(topic)
    assert describe(client, transactional_id) == (Code.NONE, "Ongoing", *who, True, [(topic, 0)])
    producer.commit()
    complete: tuple[object, ...] = (Code.NONE, "CompleteCommit", *who, True, [])
    assert describe(client, transactional_id) == complete


def test_what_can_t_be_described_is_refused_one_by_one(
    client: Client, unique: Callable[[str], str]
) -> None:
    nothing: tuple[object, ...] = ("", 0, 0, False, [])
    assert describe(client, "") == (Code.INVALID_REQUEST, *nothing)
    assert describe(client, unique("unknown")) == (Code.TRANSACTIONAL_ID_NOT_FOUND, *nothing)


def test_transactions_are_listed_by_state_and_producer(
    client: Client, topic: str, unique: Callable[[str], str]
) -> None:
    empty = Producer.init(client, unique("txn"))
    ongoing = Producer.init(client, unique("txn"))
    ongoing.add(topic)
    both = {empty.transactional_id: "Empty", ongoing.transactional_id: "Ongoing"}

    def mine(**filters: Any) -> set[str]:
        return set(list_transactions(client, **filters)) & both.keys()

    assert {name: list_transactions(client)[name] for name in both} == both
    assert mine(state_filters=["Ongoing", "CompleteAbort"]) == {ongoing.transactional_id}
    assert mine(producer_id_filters=[empty.producer_id]) == {empty.transactional_id}
    assert mine(state_filters=["Empty"], producer_id_filters=[ongoing.producer_id]) == set()
    response = client.send(
        Api.LIST_TRANSACTIONS, 0, state_filters=["Nope", "Empty", "empty"], producer_id_filters=()
    )
    assert set(response.unknown_state_filters) == {"Nope", "empty"}
    assert mine(state_filters=["Nope"]) == set()
    ongoing.abort()


def test_transactions_are_listed_by_how_long_they_have_been_open(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    hour_ms = 3_600_000
    never = transactional_id in list_transactions(client, 1, duration_filter=hour_ms)
    assert never, "without a transaction it counts as open since 1970"
    producer.add(topic)
    assert transactional_id not in list_transactions(client, 1, duration_filter=hour_ms)
    time.sleep(0.02)
    for duration_ms in (-1, 0, 10):
        assert transactional_id in list_transactions(client, 1, duration_filter=duration_ms)
    producer.abort()


def test_transactions_are_listed_by_a_pattern_of_the_whole_id(
    client: Client, unique: Callable[[str], str]
) -> None:
    first, second = unique("txn"), unique("txn") + "-zz"
    for name in (first, second):
        Producer.init(client, name)

    def matching(pattern: str | None) -> set[str]:
        found = list_transactions(client, 2, duration_filter=-1, transactional_id_pattern=pattern)
        return set(found) & {first, second}

    assert matching(None) == matching("") == {first, second}
    assert matching(first) == {first}
    assert matching(first[:-1]) == set(), "not a part of it"
    assert matching(".*-(z)+") == matching("(?i).*-ZZ") == {second}


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a{1,2000}"])
def test_a_pattern_that_re2_can_t_read_is_refused_with_128(client: Client, pattern: str) -> None:
    response = client.send(
        Api.LIST_TRANSACTIONS,
        2,
        state_filters=(),
        producer_id_filters=(),
        duration_filter=-1,
        transactional_id_pattern=pattern,
    )
    assert response.error_code == Code.INVALID_REGULAR_EXPRESSION
    assert not response.transaction_states


def test_producers_are_described_with_what_is_open(
    client: Client, topic: str, transactional_id: str, unique: Callable[[str], str]
) -> None:
    assert describe_producers(client, topic) == []
    assert describe_producers(client, topic, 1) == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert describe_producers(client, unique("nope")) == Code.UNKNOWN_TOPIC_OR_PARTITION
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", b"b", version=12)
    mine = producer.producer_id
    assert describe_producers(client, topic) == [ActiveProducer(mine, 0, 1, -1, 0)]
    producer.end(committed=True, version=5)
    wait_for(client, transactional_id, "CompleteCommit")
    described = describe_producers(client, topic)
    assert isinstance(described, list)
    [after] = described
    assert (after.epoch, after.last_sequence, after.first_offset) == (1, -1, -1)
    assert after.coordinator_epoch >= 0


# WriteTxnMarkers


def test_a_transaction_that_hangs_is_ended_by_a_marker_with_its_producer_s_epoch(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.add(topic)
    producer.write(topic, b"a")
    assert list_offset(client, topic, LATEST, isolation=READ_COMMITTED).offset == 0
    code = write_marker(client, topic, producer.producer_id, producer.epoch, committed=False)
    assert code == Code.NONE
    assert end_offset(client, topic, isolation=READ_COMMITTED) == 2
    producer.abort()


@pytest.mark.parametrize("version", [None, 0, 1])
def test_before_transactions_v2_a_marker_may_have_the_epoch_of_its_data(
    client: Client, topic: str, transactional_id: str, version: int | None
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)
    mark: dict[str, Any] = {"committed": False, "transaction_version": version}
    assert write_marker(client, topic, producer.producer_id, 0, **mark) == Code.NONE
    assert write_marker(client, topic, producer.producer_id, 0, **mark) == Code.NONE
    assert write_marker(client, topic, producer.producer_id, 3, **mark) == Code.NONE
    lower = write_marker(client, topic, producer.producer_id, 2, **mark)
    assert lower == Code.INVALID_PRODUCER_EPOCH


def test_in_transactions_v2_a_marker_has_a_higher_epoch_than_its_data(
    client: Client, topic: str, transactional_id: str
) -> None:
    producer = Producer.init(client, transactional_id)
    producer.write(topic, b"a", version=12)

    def mark(epoch: int) -> Code:
        return write_marker(
            client,
            topic,
            producer.producer_id,
            epoch,
            committed=False,
            transaction_version=2,
        )

    assert mark(0) == Code.INVALID_PRODUCER_EPOCH, "a late one, of the transaction before"
    assert end_offset(client, topic, isolation=READ_COMMITTED) == 0
    assert mark(1) == Code.NONE
    assert mark(1) == Code.NONE, "nothing is open: a second attempt"
    assert mark(32_767) == Code.NONE
    assert mark(32_767) == Code.NONE
    assert mark(1) == Code.INVALID_PRODUCER_EPOCH


def test_a_marker_for_a_partition_that_is_not_there_is_refused_with_3(
    client: Client, unique: Callable[[str], str]
) -> None:
    producer_id = init_producer_id(client, None).producer_id
    code = write_marker(client, unique("nope"), producer_id, 0, committed=True)
    assert code == Code.UNKNOWN_TOPIC_OR_PARTITION
