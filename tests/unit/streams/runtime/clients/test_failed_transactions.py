"""Test that a flush does not wait for records that a failed transaction never sends."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.errors import OutcomeUnknown
from streams.runtime.clients import StreamsProducer

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large", txn_requires_abort=True)
UNKNOWN_TOPIC = KafkaError(
    KafkaError.UNKNOWN_TOPIC_OR_PART, "unknown topic", txn_requires_abort=True
)
IN_TRANSACTION = KafkaError(KafkaError._STATE, "in transaction")


class Client:
    """Stands in for a producer of librdkafka with a record that it doesn't send."""

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self.begin_errors = [*self.begins]
        self.flushes = 0

    begins: tuple[KafkaError, ...] = ()

    def init_transactions(self, timeout_s: float) -> None:
        pass

    def begin_transaction(self) -> None:
        """Begin a transaction, or say by an error in what state the one is that was begun."""
        if self.flushes:
            error = self.begin_errors.pop(0) if self.begin_errors else IN_TRANSACTION
            raise KafkaException(error)

    def produce(self) -> None:
        pass

    def flush(self, timeout_s: float) -> int:
        self.flushes += 1
        return 1


@pytest.mark.parametrize(
    ("begins", "flushes"),
    [((TOO_LARGE,), 1), ((IN_TRANSACTION, TOO_LARGE), 2), ((), 30), ((UNKNOWN_TOPIC,) * 30, 30)],
    ids=["failed", "fails later", "works", "has no topic"],
)
def test_a_flush_ends_once_a_record_has_failed_the_transaction(
    begins: tuple[KafkaError, ...], flushes: int
) -> None:
    clients: list[Client] = []

    class Kept(Client):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self.begins = begins
            super().__init__(*arguments, **named)
            clients.append(self)

    kept: Any = Kept
    producer = StreamsProducer("p", {}, transactional=True, timeout_s=30.0, producer_class=kept)
    producer.begin_transaction()
    with pytest.raises(OutcomeUnknown, match="1 not delivered"):
        producer.flush()
    assert clients[0].flushes == flushes
