"""Measure what librdkafka's statistics cost a client, and what it costs to read them.

    python -m benchmarks.client_statistics [--records 300000] [--partitions 50] [--rounds 5]

Producers write records of 100 bytes to an embedded broker, and consumers read them back, without
statistics, every ten seconds as workers do, and every 100 ms. Times are of the processor of this
process, librdkafka's threads included; the ways take turns, and the report has medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.recorded import record
from benchmarks.runs import broker_at
from streams.monitoring.client_figures import list_client_figures
from streams.runtime.clients.client_statistics import INTERVAL_MS, ClientStatisticsRecorder

VALUE = b"x" * 100
WAYS = {"without": 0, "every 10 s": INTERVAL_MS, "every 100 ms": 100}
Run = Callable[[dict[str, Any], int, int], None]
"""Writes or reads so many records, in so many partitions, with the settings of a client."""
UNIT = "microseconds of processor time a record"


def main() -> None:
    """Measure each way in turns, and print the medians of a producer and of a consumer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as directory, broker_at("embedded", Path(directory)) as at:
        admin = AdminClient({"bootstrap.servers": at, "log_level": 2})
        for created in admin.create_topics([NewTopic("t", options.partitions, 1)]).values():
            created.result()
        for _ in range(options.rounds):
            for way, interval_ms in WAYS.items():
                recorder = ClientStatisticsRecorder()
                settings = {"bootstrap.servers": at, "statistics.interval.ms": interval_ms}
                written = _measure(_write, recorder, settings, options)
                read = _measure(_read, recorder, settings, options)
                times.setdefault((way, "produce"), []).append(written)
                times.setdefault((way, "consume"), []).append(read)
                if interval_ms == WAYS["every 100 ms"]:
                    times.setdefault((way, "read the figures"), []).append(_measure_read(recorder))
    print(f"{'what':20} {'statistics':14} {UNIT}")
    for (way, what), values in sorted(times.items(), key=lambda each: each[0][1]):
        record("client statistics", what, way, "us", values)
        print(f"{what:20} {way:14} {statistics.median(values):.3f}")


def _measure(
    run: Run, recorder: ClientStatisticsRecorder, settings: dict[str, Any], options: Any
) -> float:
    """Return the microseconds a record of one run, in processor time of this process."""
    settings = {**recorder.create_client_settings(run.__name__), **settings}
    began = time.process_time()
    run(settings, options.records, options.partitions)
    spent_us: float = 1e6 * (time.process_time() - began) / options.records
    return spent_us


def _write(settings: dict[str, Any], records: int, partitions: int) -> None:
    producer = Producer(settings | {"linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        producer.produce("t", VALUE, None, number % partitions)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def _read(settings: dict[str, Any], records: int, partitions: int) -> None:
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", number, 0) for number in range(partitions)])
    left = records
    while left > 0:
        left -= len(consumer.consume(1_000, 1.0))
    consumer.close()


def _measure_read(recorder: ClientStatisticsRecorder) -> float:
    """Return the microseconds that a scrape takes for each client."""
    began = time.process_time()
    clients = list(recorder.read_statistics())
    for client in clients:
        list_client_figures(client)
    return 1e6 * (time.process_time() - began) / len(clients)


if __name__ == "__main__":
    main()
