"""kill -9 while logs are being compacted: what was acknowledged is there, and cleaning goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.brokers import SETTINGS, EmbeddedProcess
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import wait_until
from tests.reading import records

KEYS, RECORDS, KILLS = 500, 60_000, 4
TIMEOUT_S = 30.0


@pytest.fixture
def own_broker() -> Iterator[EmbeddedProcess]:
    broker = EmbeddedProcess({**SETTINGS, "log.cleaner.backoff.ms": "1"})
    broker.start()
    yield broker
    broker.close()


def last_values(broker: EmbeddedProcess, topic: str) -> tuple[dict[bytes, bytes], int]:
    """Of each key, as a consumer finds them that starts at the beginning; and how many records."""
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
        assert producer.flush(TIMEOUT_S) == 0
        directory = own_broker.data_dir / f"{topic}-0"
        if kill % 2:  # while a segment is being written, or just as a run is being replaced
            wait_until(
                lambda: any(
                    path.name.endswith((".cleaned", ".deleted")) or path.name == "replacing"
                    for path in directory.iterdir()  # noqa: B023 called before the next round
                ),
                timeout_s=TIMEOUT_S,
                what="nothing is cleaned",
            )
        own_broker.kill()
        own_broker.start()
        found, _ = last_values(own_broker, topic)
        assert found == expected
    wait_until(
        lambda: last_values(own_broker, topic)[1] < RECORDS // 3,
        timeout_s=TIMEOUT_S,
        what=lambda: f"{last_values(own_broker, topic)[1]} records are left",
    )
    assert last_values(own_broker, topic)[0] == expected
