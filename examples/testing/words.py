"""Write lines and read word counts with confluent-kafka, on any broker."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, Producer


def produce(servers: str, lines: Iterable[str], topic: str = "lines") -> None:
    """Write lines to a topic and wait until all are delivered."""
    producer = Producer({"bootstrap.servers": servers})
    for line in lines:
        producer.produce(topic, line)
    assert producer.flush(30) == 0


def read_counts(
    servers: str, words: int, topic: str = "counts-by-word", timeout_s: float = 30
) -> dict[str, int]:
    """Read the counts topic until the counts sum up to `words`, and return them by word.

    It waits until the counts sum up to `words`, or until the time-out.
    """
    counts: dict[str, int] = {}
    settings = {
        "bootstrap.servers": servers,
        "group.id": "reads-the-counts",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    deadline = time.monotonic() + timeout_s
    try:
        while sum(counts.values()) < words and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue  # The group is still joining.
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            counts[key.decode()] = int.from_bytes(value, "big")
    finally:
        consumer.close()
    return counts
