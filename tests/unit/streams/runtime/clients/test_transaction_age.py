"""Test that a producer whose transaction had expired says so, and one that was fenced does not."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.errors import GenerationOver, OutcomeUnknown, TaskMigrated
from streams.runtime.clients import StreamsProducer
from streams.runtime.clients.transaction_age import TransactionAge
from streams.symptoms.lookup import find_by_message


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


FENCED = TaskMigrated("commit_transaction: fenced (_FENCED)")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(("elapsed_s", "code"), [(9.9, "MR-010"), (10.1, "MR-012")])
def test_a_fenced_producer_is_told_from_an_expired_transaction(
    clock: Clock, elapsed_s: float, code: str
) -> None:
    age = TransactionAge(10_000, clock)
    age.note_beginning()
    clock.now_s += elapsed_s
    explained = age.add_reason_of_fencing(FENCED)
    assert isinstance(explained, TaskMigrated)
    found = find_by_message(str(explained))
    assert (found and found.code) == code


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("no answer"), GenerationOver("ILLEGAL_GENERATION")]
)
def test_other_errors_are_returned_as_they_are(clock: Clock, error: Exception) -> None:
    age = TransactionAge(10_000, clock)
    age.note_beginning()
    clock.now_s += 60
    assert age.add_reason_of_fencing(error) is error


def test_without_an_open_transaction_nothing_had_expired(clock: Clock) -> None:
    age = TransactionAge(10_000, clock)
    clock.now_s += 60
    assert age.add_reason_of_fencing(FENCED) is FENCED
    age.note_beginning()
    clock.now_s += 60
    age.note_end()
    assert age.add_reason_of_fencing(FENCED) is FENCED
    assert TransactionAge(None, clock).add_reason_of_fencing(FENCED) is FENCED


class ExpiredClient:
    """Stands in for a producer of librdkafka whose transaction the brokers have aborted."""

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        pass

    def init_transactions(self, timeout_s: float) -> None:
        pass

    def begin_transaction(self) -> None:
        pass

    def produce(self) -> None:
        pass

    def poll(self, timeout_s: float) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


def test_a_producer_says_of_each_call_that_its_transaction_had_expired(clock: Clock) -> None:
    producer = StreamsProducer(
        "p",
        {"transaction.timeout.ms": 5_000},
        transactional=True,
        timeout_s=1,
        producer_class=ExpiredClient,
    )
    producer.transaction_age = TransactionAge(5_000, clock)
    producer.begin_transaction()
    clock.now_s += 7
    with pytest.raises(TaskMigrated, match=r"open for 7\.0 s, longer than transaction_timeout_ms="):
        producer.poll_delivery_reports()
