"""Test that a producer does not commit what it wrote into a topic that was made again since."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from streams.errors import OutcomeUnknown
from streams.runtime.clients import StreamsProducer

FIRST_ID, NEXT_ID = "SLEbkyQIQxOrEW4MKjrszQ", "Cqw47Ca8TByHsbb16TbMJg"


class Client:
    """Stands in for a producer of librdkafka that logs lines when it is flushed."""

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self._logger = logger
        self.debug_contexts = settings["debug"].split(",")
        self.lines: list[str] = []
        self.undelivered_counts: list[int] = []
        """What the next flushes return, before all is delivered."""

    def produce(self) -> None:
        pass

    def flush(self, timeout_s: float) -> int:
        for line in self.lines:
            self._logger.log(logging.DEBUG, "%s [%s] %s", "METADATA", "producer-1", line)
        self.lines = []
        return self.undelivered_counts.pop(0) if self.undelivered_counts else 0


def create_producer(timeout_s: float = 1.0, **settings: str) -> tuple[StreamsProducer, Client]:
    clients: list[Client] = []

    class Kept(Client):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            clients.append(self)

    kept: Any = Kept
    producer = StreamsProducer(
        "p", settings, transactional=False, timeout_s=timeout_s, producer_class=kept
    )
    return producer, clients[0]


def test_a_flush_tells_of_an_output_that_was_made_again_once() -> None:
    producer, client = create_producer()
    client.lines = [f"[thrd:main]: Topic out changed id from {'A' * 22} to {FIRST_ID}"]
    producer.flush()
    client.lines = [f"[thrd:main]: Topic out changed id from {FIRST_ID} to {NEXT_ID}"]
    refusal = "output 'out' is another topic of the same name .* not committed is written again"
    with pytest.raises(OutcomeUnknown, match=refusal):
        producer.flush()
    producer.flush()


def test_an_output_that_was_made_again_before_the_first_flush_is_told() -> None:
    producer, client = create_producer()
    client.lines = [
        f"[thrd:main]: Topic out changed id from {'A' * 22} to {FIRST_ID}",
        f"[thrd:main]: Topic out changed id from {FIRST_ID} to {NEXT_ID}",
    ]
    with pytest.raises(OutcomeUnknown, match="output 'out' is another topic"):
        producer.flush()


def test_an_output_that_was_missing_for_a_moment_is_the_one_that_it_was() -> None:
    producer, client = create_producer()
    for _ in range(2):
        client.lines = [f"[thrd:main]: Topic out changed id from {'A' * 22} to {FIRST_ID}"]
        producer.flush()


def test_a_client_logs_ids_of_topics_besides_what_the_user_has_it_log() -> None:
    _, client = create_producer(debug="msg,eos")
    assert client.debug_contexts == ["msg", "eos", "metadata"]


GONE = "[thrd:main]: one:9092/1:   Topic out with 0 partitions: Broker: Unknown topic or partition"
BACK = "[thrd:main]: one:9092/1:   Topic out with 3 partitions"


def test_a_flush_names_an_output_that_brokers_do_not_have_before_its_time_is_out() -> None:
    producer, client = create_producer(timeout_s=30.0)
    client.lines = [GONE]
    client.undelivered_counts = [5] * 30
    refusal = "output 'out' is not on the brokers: .* created again .*create-topics out"
    with pytest.raises(OutcomeUnknown, match=refusal):
        producer.flush()
    assert len(client.undelivered_counts) == 27, "a broker may not know a topic for a moment"
    client.undelivered_counts = [1] * 6
    client.lines = [BACK]
    producer.flush()


def test_a_flush_that_takes_long_waits_as_long_as_it_may() -> None:
    producer, client = create_producer(timeout_s=5.0)
    client.undelivered_counts = [2] * 10
    with pytest.raises(OutcomeUnknown, match="2 not delivered: no answer"):
        producer.flush()
    assert len(client.undelivered_counts) == 5
