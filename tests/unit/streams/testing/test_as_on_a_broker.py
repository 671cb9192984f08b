"""Test that an application does the same in the driver as on a broker."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Producer

from coordinator import EmbeddedBroker
from streams import App, TopologyTestDriver, serdes
from tests.processes import wait_until
from tests.reading import records
from tests.unit.streams.testing.apps import build_word_count_app

LINES = [(f"k{n % 7}", f"the word w{n % 5} and the word w{n % 3}") for n in range(40)]
TOPICS = {"lines": 4, "counts-by-word": 3}
WORDS = sum(len(line.split()) for _, line in LINES)
BEGIN_MS = time.time_ns() // 1_000_000
"""The first records' time: older ones would be deleted by the retention of their topics."""
Cells = dict[tuple[int, bytes | None], bytes | None]
"""The last value of each partition and key."""


def test_topics_partitions_and_last_values_are_the_same(tmp_path: Path) -> None:
    with EmbeddedBroker(topics=TOPICS) as broker:
        app = build_word_count_app(bootstrap_servers=broker.bootstrap_servers, state_dir=tmp_path)
        real = on_a_broker(app, broker.bootstrap_servers)
    assert in_a_driver(build_word_count_app()) == real


def on_a_broker(app: App, servers: str) -> dict[str, tuple[int, Cells]]:
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for number, (key, line) in enumerate(LINES):
        producer.produce("lines", line, key, timestamp=BEGIN_MS + number)
    assert producer.flush(10) == 0
    with app.start(handle_signals=False) as running:
        running.wait_for("RUNNING")
        wait_until(
            lambda: sum(value for _, value in running.store("counts").all()) == WORDS,
            what="the words are not counted",
        )
    counts = {**TOPICS, **dict.fromkeys(internal(app), TOPICS["lines"])}
    return {
        topic: (
            count,
            cells((m.partition(), m.key(), m.value()) for m in records(servers, topic, count)),
        )
        for topic, count in counts.items()
    }


def in_a_driver(app: App) -> dict[str, tuple[int, Cells]]:
    with TopologyTestDriver(app, partitions=TOPICS, seed=1) as driver:
        driver.topic("lines").pipe_many(
            (key, line, BEGIN_MS + number) for number, (key, line) in enumerate(LINES)
        )
        assert sum(value for _, value in driver.store("counts").all()) == WORDS
        assert set(driver.topics) == {*TOPICS, *internal(app)}
        found = {}
        for name in driver.topics:
            topic = driver.topic(name, key=serdes.bytes, value=serdes.bytes)
            read = ((r.partition, r.key, r.value) for r in topic.read_all())
            found[name] = (topic.partitions, cells(read))
        return found


def internal(app: App) -> list[str]:
    topology = app.topology()
    return [*topology.repartition_topics, topology.restore_topic_of("counts")]


def cells(read: Iterable[tuple[int, bytes | None, bytes | None]]) -> Cells:
    return {(partition, key): value for partition, key, value in read}
