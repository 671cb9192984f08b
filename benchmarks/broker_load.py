"""Take one measurement of `benchmarks.broker` with librdkafka, in a process of its own.

    python -m benchmarks.broker_load '{"what": "produce", "servers": "127.0.0.1:9092", ...}'

It reads its task as JSON from the command line and prints its figures as JSON. librdkafka's
settings are its defaults but for the queue's length, and for the second that a consumer does not
ask for more when its queue was full: that would be most of what is measured. Nothing is printed
that was not verified: a record that did not arrive is a RuntimeError.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.figures import percentile

VALUE = b"v" * 100
TIMEOUT_S = 120.0
QUEUE_MESSAGES_MAX = 1_000_000
WARM_UP_TRANSACTIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Describes one measurement: `count` records or transactions over `partitions` of `topic`."""

    what: str
    servers: str
    topic: str
    partitions: int
    count: int


def produce(load: Load) -> dict[str, float]:
    """Produce `count` records of 100 bytes; return the rate until all are acknowledged."""
    producer = Producer(
        {"bootstrap.servers": load.servers, "queue.buffering.max.messages": QUEUE_MESSAGES_MAX}
    )
    producer.list_topics(load.topic, TIMEOUT_S)  # It connects before the clock runs.
    send, poll, partitions = producer.produce, producer.poll, load.partitions
    begin = time.perf_counter()
    for number in range(load.count):
        try:
            send(load.topic, VALUE, partition=number % partitions)
        except BufferError:
            poll(0.05)
            send(load.topic, VALUE, partition=number % partitions)
        if not number % 10_000:
            poll(0)
    left = producer.flush(TIMEOUT_S)
    seconds = time.perf_counter() - begin
    found = count_stored(load)
    if left or found != load.count:
        raise RuntimeError(f"{load.topic}: {found} of {load.count} records arrived")
    return {"records_per_s": load.count / seconds}


def fetch(load: Load) -> dict[str, float]:
    """Fetch all records of the topic; return the rate from assignment to last record."""
    consumer = _create_consumer(load)
    consumer.list_topics(load.topic, TIMEOUT_S)
    found = size = 0
    begin = time.perf_counter()
    consumer.assign([TopicPartition(load.topic, each, 0) for each in range(load.partitions)])
    while found < load.count:
        messages = consumer.consume(10_000, TIMEOUT_S)
        if not messages:
            raise RuntimeError(f"{load.topic}: {found} of {load.count} records came")
        found += len(messages)
        for message in messages:
            size += len(message)
    seconds = time.perf_counter() - begin
    consumer.close()
    if found != load.count or size != load.count * len(VALUE):
        raise RuntimeError(f"{load.topic}: {found} records of {size} bytes, not {load.count}")
    return {"records_per_s": load.count / seconds}


def transactions(load: Load) -> dict[str, float]:
    """Run `count` transactions of a record for each partition; return their rate and latencies.

    Latencies of a commit are those of commit_transaction() alone, with the records already
    acknowledged; those of a transaction go from begin to the end of the commit.
    """
    producer = Producer(
        {
            "bootstrap.servers": load.servers,
            "transactional.id": load.topic,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    for _ in range(WARM_UP_TRANSACTIONS):
        _run_transaction(producer, load)
    taken = [_run_transaction(producer, load) for _ in range(load.count)]
    records = (WARM_UP_TRANSACTIONS + load.count) * load.partitions
    found = count_committed(load, records)
    if found != records:
        raise RuntimeError(f"{load.topic}: {found} of {records} records were committed")
    commits = sorted(commit for commit, _ in taken)
    wholes = sorted(whole for _, whole in taken)
    return {
        "transactions_per_s": load.count / sum(wholes),
        "commit_p50_ms": 1_000 * percentile(commits, 0.50),
        "commit_p99_ms": 1_000 * percentile(commits, 0.99),
        "transaction_p50_ms": 1_000 * percentile(wholes, 0.50),
        "transaction_p99_ms": 1_000 * percentile(wholes, 0.99),
    }


def _run_transaction(producer: Producer, load: Load) -> tuple[float, float]:
    """Run one transaction; return the seconds of its commit and those of the whole transaction."""
    begin = time.perf_counter()
    producer.begin_transaction()
    for partition in range(load.partitions):
        producer.produce(load.topic, VALUE, partition=partition)
    producer.flush(TIMEOUT_S)
    flushed = time.perf_counter()
    producer.commit_transaction(TIMEOUT_S)
    end = time.perf_counter()
    return end - flushed, end - begin


def count_stored(load: Load) -> int:
    """Return how many offsets the topic has, which are its records if there are no markers."""
    consumer = _create_consumer(load)
    ends = [
        consumer.get_watermark_offsets(TopicPartition(load.topic, each), TIMEOUT_S)
        for each in range(load.partitions)
    ]
    consumer.close()
    return sum(high - low for low, high in ends)


def count_committed(load: Load, expected: int) -> int:
    """Count the topic's committed records, up to the expected number."""
    consumer = _create_consumer(load)
    consumer.assign([TopicPartition(load.topic, each, 0) for each in range(load.partitions)])
    found = 0
    while found < expected:
        messages = consumer.consume(10_000, 5.0)
        if not messages:
            break
        found += len(messages)
    consumer.close()
    return found


def _create_consumer(load: Load) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": load.servers,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 5,
            "isolation.level": "read_committed",
        }
    )


MEASURES: dict[str, Callable[[Load], dict[str, float]]] = {
    "produce": produce,
    "fetch": fetch,
    "transactions": transactions,
}


def command(load: Load) -> list[str]:
    """Return the command line of a process that takes the measurement `load`."""
    return [sys.executable, "-m", "benchmarks.broker_load", json.dumps(asdict(load))]


def main() -> None:
    """Take the measurement that the command line describes, and print its figures as JSON."""
    load = Load(**json.loads(sys.argv[1]))
    print(json.dumps(MEASURES[load.what](load)))


if __name__ == "__main__":
    main()
