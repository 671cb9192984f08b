"""Test `kill -9` while logs are compacted: acknowledged records stay, deleted ones stay away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka import Producer

from coordinator.errors import Code
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.conformance.calls import create_topic, delete_topic
from tests.conformance.wire import Api, Client
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

KEYS, RECORDS, KILLS = 500, 60_000, 4


@pytest.fixture
def own_broker() -> Iterator[EmbeddedProcess]:
    broker = EmbeddedProcess({**SETTINGS, "log.cleaner.backoff.ms": "1"})
    broker.start()
    yield broker
    broker.close()


def last_values(broker: EmbeddedProcess, topic: str) -> tuple[dict[bytes, bytes], int]:
    """Return the last value of each key for a consumer from the beginning, and the record count."""
    found: dict[bytes, bytes] = {}
    count = 0
    for message in records(broker.bootstrap_servers, topic, 1):
        found[message.key()] = message.value()
        count += 1
    return found, count


def test_a_broker_killed_while_it_cleans_loses_nothing(own_broker: EmbeddedProcess) -> None:
    topic = "compacted"
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": str(1 << 20),
    }
    with Client(own_broker.bootstrap_servers) as client:
        create_topic(client, topic, configs=configs)
    expected: dict[bytes, bytes] = {}
    number = 0
    for kill in range(KILLS):
        producer = Producer(
            {"bootstrap.servers": own_broker.bootstrap_servers, "linger.ms": 5, "acks": "all"}
        )
        for _ in range(RECORDS // KILLS):
            key, value = b"%d" % (number % KEYS), b"%d " % number + b"x" * 100
            producer.produce(topic, key=key, value=value)
            expected[key] = value
            number += 1
            if number % 1_000 == 0:
                producer.poll(0)
        assert producer.flush(HANG_LIMIT_S) == 0
        directory = own_broker.data_dir / f"{topic}-0"
        if kill % 2:  # while a segment is being written, or just as a run is being replaced
            wait_until(
                lambda: any(
                    path.name.endswith((".cleaned", ".deleted")) or path.name == "replacing"
                    for path in directory.iterdir()  # noqa: B023 called before the next round
                ),
                what="nothing is cleaned",
            )
        own_broker.kill()
        own_broker.start()
        found, _ = last_values(own_broker, topic)
        assert found == expected
    wait_until(
        lambda: last_values(own_broker, topic)[1] < RECORDS // 3,
        what=lambda: f"{last_values(own_broker, topic)[1]} records are left",
    )
    assert last_values(own_broker, topic)[0] == expected


def produce(
    broker: EmbeddedProcess, topic: str, records: Iterable[tuple[bytes, bytes | None]]
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    for number, (key, value) in enumerate(records):
        producer.produce(topic, key=key, value=value)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(HANG_LIMIT_S) == 0


def clean_from_now_on(client: Client, topic: str) -> None:
    change = {"name": "min.cleanable.dirty.ratio", "config_operation": 0, "value": "0"}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
    answer = client.send(
        Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    assert answer.responses[0].error_code == Code.NONE


def test_a_key_that_is_deleted_in_a_topic_made_again_after_a_kill_stays_deleted(
    own_broker: EmbeddedProcess,
) -> None:
    """Kill the broker before its file for other tools is written without the old topic."""
    topic = "again"
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": str(1 << 20),
        "delete.retention.ms": "0",
    }
    not_yet = {**configs, "min.cleanable.dirty.ratio": "1"}
    filler = [(b"%d" % (number % KEYS), b"x" * 100) for number in range(30_000)]
    file = own_broker.data_dir / "cleaner-offset-checkpoint"
    with Client(own_broker.bootstrap_servers) as client:
        create_topic(client, topic, configs=configs)
        produce(own_broker, topic, filler)
        wait_until(
            lambda: file.exists() and f"{topic} 0 " in file.read_text(),
            what="nothing is cleaned",
        )
        stale = file.read_text()
        delete_topic(client, topic)
    own_broker.kill()
    file.write_text(stale)
    own_broker.start()
    with Client(own_broker.bootstrap_servers) as client:
        create_topic(
            client, topic, configs=not_yet
        )  # it is to grow beyond the offset of the old one
        produce(own_broker, topic, [(b"deleted", b"old"), *filler[:100], (b"deleted", None)])
        produce(own_broker, topic, filler)
        clean_from_now_on(client, topic)

    def tombstone_is_gone() -> bool:
        produce(own_broker, topic, filler)
        return last_values(own_broker, topic)[0].get(b"deleted", b"none") is not None

    wait_until(tombstone_is_gone, what="the tombstone stays")
    assert b"deleted" not in last_values(own_broker, topic)[0]
