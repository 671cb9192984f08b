"""Measure what the embedded broker's request figures cost its processor, for produce and fetch.

    python -m benchmarks.request_metrics [--requests 20000] [--rounds 7]

Two brokers run at the same time: one as it is, one whose histograms and error counts do nothing.
They take turns with the same load: Produce requests of one record, Produce requests as librdkafka
fills them, and Fetch requests for one record. Times are of the broker's processor, and the ratio
is of rounds side by side. Reading the clock twice for each request is not part of the difference.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.figures import cpu_s
from benchmarks.recorded import record

_AS_IT_IS = "from coordinator.__main__ import main\nmain()\n"
_UNCOUNTED = (
    "from coordinator import histogram\n"
    "from coordinator.api import request_counters\n"
    "histogram.Histogram.record_ns = lambda self, duration_ns: None\n"
    "request_counters.ApiCounters.count_errors = lambda self, codes: None\n"
)
BROKERS = {"counted": _AS_IT_IS, "not counted": _UNCOUNTED + _AS_IT_IS}
VALUE = b"v" * 100
FILLED = 20
"""The load of filled requests has so many times the records."""
_BATCH_BYTES = 200
"""A little more than a batch of one record, so that each fetch returns one."""
_TIMEOUT_S = 60.0


def main() -> None:
    """Measure each load on both brokers in turns, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    times: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as exits:
        brokers = {
            name: exits.enter_context(_run_broker(code, number))
            for number, (name, code) in enumerate(BROKERS.items())
        }
        for round_number in range(options.rounds + 1):  # the first one is not counted
            names = sorted(brokers, reverse=bool(round_number % 2))
            for load, run in LOADS.items():
                for name in names:
                    pid, address = brokers[name]
                    topic = f"{load.replace(' ', '-')}-{round_number}"
                    count = options.requests * (FILLED if load == "filled requests" else 1)
                    began = cpu_s(pid)
                    run(address, topic, count)
                    spent_us = 1e6 * (cpu_s(pid) - began) / count
                    if round_number:
                        times.setdefault(load, {}).setdefault(name, []).append(spent_us)
    print(f"{'load':20} {'not counted, us':>16} {'counted, us':>12} {'ratio':>7}")
    for load, found in times.items():
        for name, values in found.items():
            record("request metrics", load, name, "us", values)
        plain, counted = found["not counted"], found["counted"]
        ratio = statistics.median(b / a for a, b in zip(plain, counted, strict=True))
        medians = statistics.median(plain), statistics.median(counted)
        print(f"{load:20} {medians[0]:16.2f} {medians[1]:12.2f} {ratio:7.3f}")


@contextmanager
def _run_broker(code: str, number: int) -> Iterator[tuple[int, str]]:
    """Yield the process id and the address of a broker for the with block."""
    with tempfile.TemporaryDirectory(prefix=f"millrace-{number}-") as directory:
        options = ["--data", str(Path(directory) / "data"), "--port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.match(r"listening on (\S+)", line):
                    yield process.pid, found[1]
                    break
        finally:
            process.terminate()
            process.wait()


def _produce(address: str, topic: str, count: int, batch_records: int) -> None:
    """Write `count` records in batches of at most so many, and wait for all."""
    settings = {
        "bootstrap.servers": address,
        "batch.num.messages": batch_records,
        "queue.buffering.max.messages": 1_000_000,
        "log_level": 2,
    }
    admin = AdminClient(settings)
    created = admin.create_topics([NewTopic(topic, 1, 1)])
    created[topic].result(_TIMEOUT_S)
    producer = Producer(settings)
    for _ in range(count):
        producer.produce(topic, VALUE)
    if producer.flush(_TIMEOUT_S):
        raise RuntimeError(f"{topic}: not all records arrived")


def _fetch(address: str, topic: str, count: int) -> None:
    """Read what single requests have written in the same round, one batch with each request."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "g",
            "max.partition.fetch.bytes": _BATCH_BYTES,
            "log_level": 2,
        }
    )
    source = topic.replace("fetch", "single-requests")
    consumer.assign([TopicPartition(source, 0, 0)])
    left = count
    while left > 0:
        found = len(consumer.consume(10_000, _TIMEOUT_S))
        if not found:
            raise RuntimeError(f"{source}: {left} records are missing")
        left -= found
    consumer.close()


LOADS: dict[str, Callable[[str, str, int], None]] = {
    "single requests": lambda address, topic, count: _produce(address, topic, count, 1),
    "fetch": _fetch,
    "filled requests": lambda address, topic, count: _produce(address, topic, count, 10_000),
}


if __name__ == "__main__":
    main()
