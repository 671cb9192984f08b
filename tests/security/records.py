"""Write and read one record with a plain client, as the proof that it got in."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.processes import HANG_LIMIT_S


def produce_one(settings: Mapping[str, str], topic: str, value: bytes) -> KafkaError | None:
    """Produce one record and return the error of its delivery; None if it was written."""
    errors: list[KafkaError | None] = []
    producer = Producer(dict(settings))
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(HANG_LIMIT_S) == 0, "no answer to a record"
    (error,) = errors
    return error


def consume_one(settings: Mapping[str, str], topic: str) -> bytes:
    """Consume the first record of a topic and return its value."""
    consumer = Consumer({**settings, "group.id": "unused", "enable.auto.commit": "false"})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        (message,) = consumer.consume(1, HANG_LIMIT_S)
        assert message.error() is None, message.error()
        value: bytes = message.value()
        return value
    finally:
        consumer.close()
