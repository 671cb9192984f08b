"""Run a loop on confluent-kafka, as a person would write it, as the baseline for Millrace.

It does the same work with nothing in between: consume a batch, transform, produce, commit at an
interval. Exactly once it sends its offsets with the transaction. It recovers from nothing: what
state it keeps is written and never read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from rocksdict import Options, Rdict, WriteBatch

Handle = Callable[[Any], None]
"""Does one record's work."""


def run_loop(
    servers: str,
    topic: str,
    *,
    partitions: int,
    records: int,
    exactly_once: bool,
    commit_interval_s: float,
    work: Callable[[Producer], tuple[Handle, Callable[[], None]]],
) -> float:
    """Process `records` records; return the seconds from the first record to the last commit.

    `work` gets the producer and returns a function for each record, and one to call before a
    commit.
    """
    group = f"by-hand-{topic}-{time.monotonic_ns()}"
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
        }
    )
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "linger.ms": 100,
        "batch.num.messages": 100_000,
        "queue.buffering.max.messages": 1_000_000,
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
    }
    if exactly_once:
        settings["transactional.id"] = group
    producer = Producer(settings)
    if exactly_once:
        producer.init_transactions(30)
    assignment = [TopicPartition(topic, p, 0) for p in range(partitions)]
    consumer.assign(assignment)
    handle, before_commit = work(producer)
    done = 0
    first = consumer.consume(1, 30)
    began = time.perf_counter()
    commit_at = began + commit_interval_s
    if exactly_once:
        producer.begin_transaction()
    messages = first
    while True:
        for message in messages:
            handle(message)
        done += len(messages)
        producer.poll(0)
        if done >= records or time.perf_counter() >= commit_at:
            before_commit()
            producer.flush(30)
            positions = [p for p in consumer.position(assignment) if p.offset >= 0]
            if exactly_once:
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(positions, metadata, 30)
                producer.commit_transaction(30)
            else:
                consumer.commit(offsets=positions, asynchronous=False)
            if done >= records:
                break
            if exactly_once:
                producer.begin_transaction()
            commit_at = time.perf_counter() + commit_interval_s
        messages = consumer.consume(1000, 0.05)
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def map_values(output: str) -> Callable[[Producer], tuple[Handle, Callable[[], None]]]:
    """Create the handlers that a loop needs to map values to upper case."""

    def create_handlers(producer: Producer) -> tuple[Handle, Callable[[], None]]:
        produce = producer.produce

        def handle_message(message: Any) -> None:
            value = message.value().decode().upper().encode()
            produce(output, value, message.key(), timestamp=message.timestamp()[1])

        return handle_message, lambda: None

    return create_handlers


def count_by_key(output: str) -> Callable[[Producer], tuple[Handle, Callable[[], None]]]:
    """Create the handlers that a loop needs to count by key and write counts at each commit."""

    def create_handlers(producer: Producer) -> tuple[Handle, Callable[[], None]]:
        counts: dict[str, int] = {}
        changed: dict[str, int] = {}

        def handle_message(message: Any) -> None:
            key = message.key().decode()
            counts[key] = counts.get(key, 0) + 1
            changed[key] = message.timestamp()[1]

        def before_commit() -> None:
            for key, timestamp_ms in changed.items():
                value = counts[key].to_bytes(8, "big")
                producer.produce(output, value, key.encode(), timestamp=timestamp_ms)
            changed.clear()

        return handle_message, before_commit

    return create_handlers


def count_every_update(
    output: str, changelog: str, directory: Path
) -> Callable[[Producer], tuple[Handle, Callable[[], None]]]:
    """Create the handlers that a loop needs to count by key and write a count for each record.

    The counts are in a dict. At each commit those that have changed are written once more, to the
    topic `changelog` and to RocksDB in `directory`, so that a restart would find them. Nothing is
    read back.
    """

    def create_handlers(producer: Producer) -> tuple[Handle, Callable[[], None]]:
        database = Rdict(str(directory), Options(raw_mode=True))
        counts: dict[bytes, int] = {}
        changed: dict[bytes, int] = {}
        produce = producer.produce

        def handle_message(message: Any) -> None:
            key = message.key()
            counts[key] = count = counts.get(key, 0) + 1
            changed[key] = timestamp_ms = message.timestamp()[1]
            produce(output, count.to_bytes(8, "big"), key, timestamp=timestamp_ms)

        def before_commit() -> None:
            batch = WriteBatch(raw_mode=True)
            for key, timestamp_ms in changed.items():
                value = counts[key].to_bytes(8, "big")
                produce(changelog, value, key, timestamp=timestamp_ms)
                batch.put(key, value)
            changed.clear()
            database.write(batch)

        return handle_message, before_commit

    return create_handlers
