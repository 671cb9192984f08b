"""Measure what a scrape of the embedded broker costs: how long clients wait, and processor time.

    python -m benchmarks.scrapes [--scrapes 40] [--topics 50]

One connection sends ApiVersions requests back to back, which the broker answers from its event loop
at once. The longest time to an answer is how long the loop has been held: while a scrape is under
way, and for as long without one. The processor time is of scrapes one after another, with nothing
else asked of the broker. What prometheus_client takes to write the same figures, as plain text and
as OpenMetrics, is measured in this process.

On a machine that does something else, `chrt -r 10` before the command lets both processes go first.
"""

from __future__ import annotations

import argparse
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast
from urllib.request import Request, urlopen

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from benchmarks.figures import cpu_s
from benchmarks.recorded import record
from tests.processes import free_ports

_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # version 0, no client id
_TIMEOUT_S = 60.0
Measured: TypeAlias = tuple[str, list[float]]


class MeasuredProcess(NamedTuple):
    """Holds the process id of a broker and where it listens."""

    pid: int
    servers: str
    metrics_url: str


def main() -> None:
    """Measure a broker with some topics, a group and a transaction, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scrapes", type=int, default=40)
    parser.add_argument("--topics", type=int, default=50)
    options = parser.parse_args()
    with _run_broker() as broker:
        _use_broker(broker.servers, options.topics)
        text = _read_scrape(broker.metrics_url).decode()
        lines = *measure_scrapes(broker, options.scrapes), *measure_formats(text, options.scrapes)
    print(f"{len(text.splitlines())} lines in a scrape; milliseconds:")
    for line, values in lines:
        record("scrapes", line, "embedded", "ms", values)
        print(f"{line:40} median {statistics.median(values):6.2f}, most {max(values):6.2f}")


def measure_scrapes(broker: MeasuredProcess, count: int) -> Iterator[Measured]:
    """Yield what is measured of a broker, in milliseconds."""
    undisturbed, disturbed, lengths = [], [], []
    host, _, port = broker.servers.rpartition(":")
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _find_longest_answer_ms(client, lambda: True)
        for number in range(count + 1):  # the first one is not counted
            began_s = time.monotonic()
            longest_ms = _scrape_and_find_longest_answer_ms(client, broker.metrics_url)
            length_s = time.monotonic() - began_s
            until_s = time.monotonic() + length_s
            without_ms = _find_longest_answer_ms(client, partial(_is_past, until_s))
            if number:
                disturbed.append(longest_ms)
                undisturbed.append(without_ms)
                lengths.append(1_000 * length_s)
    yield "longest answer without a scrape", undisturbed
    yield "longest answer during a scrape", disturbed
    yield "scrape, while requests come", lengths
    yield "processor time of a scrape", [_measure_cpu_ms(broker, 20) for _ in range(5)]


def _scrape_and_find_longest_answer_ms(client: socket.socket, url: str) -> float:
    """Send requests until a scrape that begins with the first one has come whole."""
    address = url.removeprefix("http://").partition("/")[0]
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as scraper:
        scraper.sendall(b"GET /metrics HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")

        def is_whole() -> bool:
            while select.select([scraper], [], [], 0)[0]:
                if not scraper.recv(1 << 20):
                    return True
            return False

        return _find_longest_answer_ms(client, is_whole)


def _find_longest_answer_ms(client: socket.socket, is_over: Callable[[], bool]) -> float:
    """Send one request after another until it is over; return the longest time to an answer."""
    longest_s = 0.0
    while True:
        sent_s = time.perf_counter()
        client.sendall(_API_VERSIONS)
        (size,) = struct.unpack(">i", _receive_bytes(client, 4))
        _receive_bytes(client, size)
        longest_s = max(longest_s, time.perf_counter() - sent_s)
        if is_over():
            return 1_000 * longest_s


def _is_past(monotonic_s: float) -> bool:
    return time.monotonic() > monotonic_s


def _receive_bytes(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = client.recv(size - len(found))
        if not piece:
            raise RuntimeError("the broker has closed the connection")
        found += piece
    return found


def _measure_cpu_ms(broker: MeasuredProcess, count: int) -> float:
    """Return the processor time of a scrape, as the mean of some."""
    began_s = cpu_s(broker.pid)
    for _ in range(count):
        request = Request(broker.metrics_url, headers={"Accept-Encoding": "gzip"})
        with urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read()
    return 1_000 * (cpu_s(broker.pid) - began_s) / count


def measure_formats(text: str, count: int) -> Iterator[Measured]:
    """Yield what prometheus_client takes to write these figures in each of its formats."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_GivenFamilies(text))
    formats: dict[str, Callable[[CollectorRegistry], bytes]] = {
        "plain text": generate_latest,
        "OpenMetrics": generate_openmetrics,
    }
    for name, generate in formats.items():
        values = []
        for _ in range(count):
            began_s = time.thread_time()
            generate(registry)
            values.append(1_000 * (time.thread_time() - began_s))
        yield f"processor time to write {name}", values


class _GivenFamilies(Collector):
    """Collects the families that are in a text."""

    def __init__(self, text: str) -> None:
        self._families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        yield from self._families


def _read_scrape(url: str) -> bytes:
    with urlopen(url, timeout=_TIMEOUT_S) as answer:
        return cast("bytes", answer.read())


def _use_broker(servers: str, topic_count: int) -> None:
    """Let a broker have the figures of topics with records, of a group and of transactions."""
    names = [f"topic-{number}" for number in range(topic_count)]
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(name, 4, 1) for name in names]).values():
        created.result(_TIMEOUT_S)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "app"})
    producer.init_transactions(_TIMEOUT_S)
    producer.begin_transaction()
    for name in names:
        for partition in range(4):
            producer.produce(name, b"v" * 100, partition=partition)
    producer.commit_transaction(_TIMEOUT_S)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(names)
    if consumer.poll(_TIMEOUT_S) is None:
        raise RuntimeError("no record has come")
    consumer.close()


@contextmanager
def _run_broker() -> Iterator[MeasuredProcess]:
    """Yield a broker in a process of its own for the with block."""
    with tempfile.TemporaryDirectory(prefix="millrace-") as directory:
        (port,) = free_ports(1)
        options = ["--data", str(Path(directory) / "data"), "--port", "0"]
        options += ["--metrics-port", str(port)]
        process = subprocess.Popen(
            [sys.executable, "-m", "coordinator", *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.match(r"listening on (\S+)", line):
                    url = f"http://127.0.0.1:{port}/metrics"
                    yield MeasuredProcess(process.pid, found[1], url)
                    break
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
