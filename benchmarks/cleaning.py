"""Measure the latency of produce and fetch while a log is compacted, and while it is not.

    python -m benchmarks.cleaning --megabytes 250 --codec none

Fills a compacted topic, asks over one connection again and again for a small produce and a fetch of
it on another topic, first at rest, then while the first topic is cleaned, and prints the latencies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.recorded import record
from coordinator.log.segment_replacement import JOURNAL
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.conformance import batches
from tests.conformance.calls import create_topic, fetch, produce
from tests.conformance.wire import Api, Client
from tests.processes import wait_until

TOPIC, PROBE = "compacted", "probe"
REST_S = 10.0
SEGMENT_BYTES = 64 << 20


def fill_topic(bootstrap_servers: str, megabytes: int, codec: str, keys: int) -> None:
    """Write values of 100 bytes to the topic, under `keys` different keys."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(megabytes * 1_000_000 // 115):
        value = b"%016d" % number * 6
        while True:
            try:
                producer.produce(TOPIC, key=b"%08d" % (number * 7919 % keys), value=value)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush(60)


def measure_pairs(client: Client, goes_on: Callable[[], bool]) -> list[float]:
    """Produce and fetch a record by turns while `goes_on()`; return each pair's milliseconds."""
    data = batches.encode(b"x" * 100)
    found = []
    while goes_on():
        begin = time.perf_counter()
        offset = produce(client, PROBE, data).base_offset
        fetch(client, PROBE, offset)
        found.append((time.perf_counter() - begin) * 1_000)
    return found


def record_latencies(name: str, found: Sequence[float], seconds: float) -> str:
    """Record the latencies, and format a line with their percentiles."""
    ordered = sorted(found)
    p50, p99, p999 = (ordered[int(len(ordered) * each)] for each in (0.5, 0.99, 0.999))
    for share, value in (("p50", p50), ("p99", p99)):
        case = f"produce and fetch, {share}"
        record("cleaning", case, name, "ms", [value], baseline=name == "at rest")
    return (
        f"{name:10} {len(found) / seconds:8.0f} pairs/s   p50 {p50:6.2f} ms   p99 {p99:6.2f} ms   "
        f"p99.9 {p999:6.2f} ms   max {ordered[-1]:6.2f} ms"
    )


def set_ratio(client: Client, value: str) -> None:
    """Set the topic's `min.cleanable.dirty.ratio`."""
    configs = [{"name": "min.cleanable.dirty.ratio", "config_operation": 0, "value": value}]
    client.send(
        Api.INCREMENTAL_ALTER_CONFIGS,
        1,
        resources=[{"resource_type": 2, "resource_name": TOPIC, "configs": configs}],
        validate_only=False,
    )


def log_bytes(directory: Path) -> int:
    """Return the size in bytes of all segments of the topic's log."""
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def main() -> None:
    """Measure the latencies with and without compaction, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--keys", type=int, default=200_000)
    options = parser.parse_args()
    broker = EmbeddedProcess({**SETTINGS, "log.cleaner.backoff.ms": "100"})
    try:
        broker.start()
        with Client(broker.bootstrap_servers) as client:
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
            sizes = {"segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "1000"}
            create_topic(client, TOPIC, configs={**configs, **sizes})
            create_topic(client, PROBE)
            fill_topic(broker.bootstrap_servers, options.megabytes, options.codec, options.keys)
            directory = broker.data_dir / f"{TOPIC}-0"
            print(f"{log_bytes(directory) / 1e6:.0f} MB to clean, {options.codec}")
            until = time.monotonic() + REST_S
            print(
                record_latencies(
                    "at rest", measure_pairs(client, lambda: time.monotonic() < until), REST_S
                )
            )
            set_ratio(client, "0")
            checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
            begin = time.monotonic()
            found = measure_pairs(client, lambda: not checkpoint.exists())
            seconds = time.monotonic() - begin
            print(record_latencies("cleaning", found, seconds))
            wait_until(
                lambda: not (directory / JOURNAL).exists(),
                timeout_s=10,
                what="what was replaced is still there",
            )
            left = log_bytes(directory) / 1e6
            print(f"{left:.0f} MB are left, cleaned in {seconds:.1f} s")
    finally:
        broker.close()


if __name__ == "__main__":
    main()
