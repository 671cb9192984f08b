"""Lines into the word count, and the counts back out: plain confluent-kafka, for any broker."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, Producer


def produce(servers: str, lines: Iterable[str], topic: str = "lines") -> None:
    """Every line is in the topic when this returns."""
    producer = Producer({"bootstrap.servers": servers})
    for line in lines:
        producer.produce(topic, line)
    assert producer.flush(30) == 0


def read_counts(
    servers: str, words: int, topic: str = "counts-by-word", timeout_s: float = 30
) -> dict[str, int]:
    """The last committed count of each word, once they sum up to `words`, or after the time."""
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
                continue  # the group is still joining
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            counts[key.decode()] = int.from_bytes(value, "big")
    finally:
        consumer.close()
    return counts
