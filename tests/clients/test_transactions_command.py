"""Test Kafka's tool `kafka-transactions`: list, describe, describe-producers, find-hanging, abort.

A transaction hangs when a partition has it open and the coordinator knows nothing of it. Here the
coordinator's log is taken away while the broker is down.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from coordinator.errors import Code
from tests import brokers
from tests.brokers import Broker
from tests.conformance import batches
from tests.conformance.calls import READ_COMMITTED, create_topic, end_offset, produce, settled
from tests.conformance.producers import Producer
from tests.conformance.wire import Api, Client
from tests.kafka.server import java

DAY_MS = 86_400_000


@pytest.fixture
def hanging(broker: Broker) -> Iterator[Broker]:
    """Start a broker whose topic `words` has an open transaction at offset 0 that nobody owns."""
    made = brokers.make(broker.kind)
    try:
        made.start()
        with Client(made.bootstrap_servers) as client:
            settled(
                lambda: client.send(Api.FIND_COORDINATOR, 2, key="lost", key_type=1),
                (Code.COORDINATOR_NOT_AVAILABLE,),
            )
            create_topic(client, "words")
            lost = Producer.init(client, "lost")
            lost.add("words")
            old = batches.encode(
                b"a",
                producer_id=lost.producer_id,
                epoch=lost.epoch,
                sequence=0,
                transactional=True,
                timestamps_ms=[int(time.time() * 1000) - DAY_MS],
            )
            assert produce(client, "words", old, transactional_id="lost").error_code == Code.NONE
        made.kill()
        for directory in made.data_dir.glob("__transaction_state-*"):
            shutil.rmtree(directory)
        made.restart()
        yield made
    finally:
        made.close()


def command(broker: Broker, *arguments: str) -> list[list[str]]:
    """Return the rows that the tool prints, each as its words; the first is the header."""
    printed = java(
        "org.apache.kafka.tools.TransactionsCommand",
        "--bootstrap-server",
        broker.bootstrap_servers,
        *arguments,
    )
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_a_hanging_transaction_is_found_and_aborted(hanging: Broker) -> None:
    words = ("--topic", "words", "--partition", "0")
    with Client(hanging.bootstrap_servers) as client:
        open_one = Producer.init(client, "open-one")
        create_topic(client, "letters")
        open_one.add("letters")

        *_, listed = command(hanging, "list")
        assert listed[0] == "open-one"
        assert listed[-1] == "Ongoing"
        *_, described = command(hanging, "describe", "--transactional-id", "open-one")
        assert described[1:4] == ["open-one", str(open_one.producer_id), str(open_one.epoch)]
        assert described[4] == "Ongoing"
        assert described[-1] == "letters-0"

        *_, producer = command(hanging, "describe-producers", *words)
        assert producer[1] == "0", "its epoch"
        assert producer[-1] == "0", "where its transaction begins"
        found = command(hanging, "find-hanging", "--broker-id", "1")
        assert found[-1][:2] == ["words", "0"]
        assert end_offset(client, "words", isolation=READ_COMMITTED) == 0
        command(hanging, "abort", *words, "--start-offset", "0")
        assert end_offset(client, "words", isolation=READ_COMMITTED) == 2
        left = command(hanging, "find-hanging", "--broker-id", "1")
        assert left == found[:1], "the header alone"
