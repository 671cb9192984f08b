"""Test Apache Kafka's own Java client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from tests.brokers import Broker
from tests.clients.copying import copy_under_kills, prepare, read_committed
from tests.clients.programs import Program, run
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S

SCENARIOS = 30


def test_every_scenario_passes(broker: Broker, java: list[str], subtests: pytest.Subtests) -> None:
    lines = run([*java, "Scenarios", broker.bootstrap_servers]).splitlines()
    assert len(lines) == SCENARIOS
    for line in lines:
        name, _, outcome = line.partition("\t")
        with subtests.test(name):
            assert outcome == "passed", outcome.replace("\t", "\n")


def test_a_copy_is_exact_though_an_embedded_broker_is_killed(
    broker: Broker, java: list[str], unique: Callable[[str], str]
) -> None:
    copy_under_kills(broker, [*java, "Copy"], prepare(broker, unique))


def test_an_idempotent_producer_writes_each_record_once_though_the_broker_is_killed(
    broker: Broker, java: list[str], unique: Callable[[str], str]
) -> None:
    topic, count = unique("topic"), 20_000
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic)
    program = Program("send", [*java, "Send", broker.bootstrap_servers, topic, str(count)])
    try:
        for thousands in (3, 8) if broker.kind == "embedded" else (3,):
            program.wait_for("acknowledged", thousands)
            broker.kill()
            broker.restart()
        program.wait_for("done")
    finally:
        program.close()
    assert read_committed(broker, topic, 1) == [[str(each).encode() for each in range(count)]]


def test_a_transactional_id_moves_between_the_java_client_and_librdkafka(
    broker: Broker, java: list[str], unique: Callable[[str], str]
) -> None:
    topic, transactional_id = unique("topic"), unique("id")
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic)

    def command(value: str, end: str) -> list[str]:
        return [*java, "Once", broker.bootstrap_servers, topic, transactional_id, value, end]

    def librdkafka(value: bytes) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 60_000,
            }
        )
        producer.init_transactions(HANG_LIMIT_S)
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(HANG_LIMIT_S)
        return producer

    run(command("java 1", "commit"))
    librdkafka(b"librdkafka 1").commit_transaction(HANG_LIMIT_S)
    left_open = Program("once", command("left open", "open"))
    left_open.wait_for("open")
    fencing = librdkafka(b"librdkafka 2")
    fencing.commit_transaction(HANG_LIMIT_S)
    left_open.close()
    fencing.begin_transaction()
    fencing.produce(topic, b"fenced")
    fencing.flush(HANG_LIMIT_S)
    run(command("java 2", "commit"))
    with pytest.raises(KafkaException) as caught:
        fencing.commit_transaction(HANG_LIMIT_S)
    assert caught.value.args[0].code() == KafkaError._FENCED
    assert read_committed(broker, topic, 1) == [
        [b"java 1", b"librdkafka 1", b"librdkafka 2", b"java 2"]
    ]
