"""Compare figures of one application on the same records with those of Kafka Streams 4.4."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams.monitoring.scraped_figures import parse_scrape
from tests.brokers import EmbeddedProcess
from tests.differential.peer import JARS, require_java
from tests.kafka.server import JVM_FLAGS
from tests.monitoring.prometheus import fetch
from tests.peers.metrics.listed import SOURCE
from tests.processes import ServerProcess, free_ports, wait_until

RECORDS, WITHOUT_KEY, PARTITIONS = 600, 30, 2
TIMEOUT_S = 120.0
TOPICS = "kafka_streams_stream_topic_metrics"
TASKS = "kafka_streams_stream_task_metrics"
NODES = "kafka_streams_stream_processor_node_metrics"
STORES = "kafka_streams_stream_state_metrics"
EQUAL = (
    f"{TASKS}_process_total",
    f"{TASKS}_dropped_records_total",
    f"{NODES}_process_total",
    f"{TOPICS}_records_consumed_total",
    f"{TOPICS}_bytes_consumed_total",
    f"{TOPICS}_records_produced_total",
    f"{TOPICS}_bytes_produced_total",
    f"{NODES}_suppression_emit_total",
    "kafka_streams_stream_thread_metrics_process_total",
    "kafka_streams_stream_thread_metrics_task_created_total",
)
"""Counts, which the records alone determine."""
COMMITS = "kafka_streams_stream_thread_metrics_commit"
ALIKE = {
    f"{STORES}_put_latency_avg": 1_000,
    f"{STORES}_get_latency_avg": 1_000,
    f"{NODES}_record_e2e_latency_avg": 30,
    f"{COMMITS}_latency_avg": 30,
}
"""Times, and by which factor ours may be below or above those of Kafka Streams.

Calls of a store are the first ones of a cold JVM there, and of a store in memory until its commit
here: what is seen is that both are in nanoseconds.
"""
Figures = dict[str, list[float]]


class CountingWorker(ServerProcess):
    """Represents our worker of the application, with its metrics on a port."""

    def __init__(self, servers: str, directory: Path) -> None:
        super().__init__("worker")
        (self.port,) = free_ports(1)
        self.spawn(
            [
                *(sys.executable, "-m", "streams", "run", "tests.peers.metrics.counted:app"),
                *("--bootstrap-servers", servers, "--state-dir", str(directory)),
                *("--health-port", str(self.port), "--set", "metrics_recording_level=debug"),
                # So that the bytes of each record are measured, and not only those of a sample.
                *("--set", "max_poll_records=1"),
            ]
        )

    def read_figures(self) -> Figures:
        try:
            text = fetch(self.port, "/metrics")[1]
        except OSError:
            return {}
        return {
            name: [sample.value for sample in samples]
            for name, samples in parse_scrape(text).items()
        }


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Figures, Figures]:
    """Return our figures, and those of Kafka Streams, after the same records on one broker."""
    require_java()
    with ExitStack() as exits:
        broker = EmbeddedProcess()
        exits.callback(broker.close)
        broker.start()
        servers = broker.bootstrap_servers
        produce_records(servers)
        worker = CountingWorker(servers, tmp_path_factory.mktemp("state"))
        exits.callback(worker.close)
        exits.callback(worker.kill)
        found: Figures = {}

        def has_processed_all() -> bool:
            found.update(worker.read_figures())
            written = sum(found.get(f"{TOPICS}_records_produced_total", ()))
            commits = sum(found.get(f"{COMMITS}_total", ()))
            return written >= RECORDS - WITHOUT_KEY and commits > 0

        wait_until(has_processed_all, what=lambda: f"records, but {sorted(found)}")
        return found, run_kafka_streams(servers)


def produce_records(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [
        NewTopic(name, PARTITIONS, 1) for name in ("counted-in", "counted-out", "java-counted-out")
    ]
    for done in admin.create_topics(topics).values():
        done.result()
    producer = Producer({"bootstrap.servers": servers})
    began_ms = time.time_ns() // 1_000_000 - RECORDS
    for number in range(RECORDS):
        key = None if number % (RECORDS // WITHOUT_KEY) == 0 else f"key-{number % 7}"
        headers = [("header", b"value")] if number % 3 == 0 else None
        value = f"value {number:04}"
        # A millisecond apart, so that a suppression has one order in which to emit.
        producer.produce(
            *("counted-in", value, key, number % PARTITIONS),
            timestamp=began_ms + number,
            headers=headers,
        )
    producer.flush()


def run_kafka_streams(servers: str) -> Figures:
    program = SOURCE.with_name("CountRecords.java")
    topics = ("counted-in", "java-counted-out", str(RECORDS))
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", JARS.class_path(), str(program), servers, *topics],
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    found: Figures = {}
    for line in done.stdout.splitlines():
        group, name, value, *_ = line.split(" ")
        scraped = f"kafka_streams_{group}_{name}".replace("-", "_")
        found.setdefault(scraped, []).append(float(value))
    return found


@pytest.mark.parametrize("name", EQUAL)
def test_a_count_is_that_of_kafka_streams(name: str, figures: tuple[Figures, Figures]) -> None:
    ours, theirs = figures
    expected = sum(theirs[name])
    if name.endswith("bytes_produced_total"):  # the name of the topic is part of a record's size
        longer = len("java-counted-out") - len("counted-out")
        expected -= longer * (RECORDS - WITHOUT_KEY)
    if name.endswith("bytes_consumed_total"):  # Kafka takes a key that is missing for -1 byte
        expected += WITHOUT_KEY
    assert expected > 0
    assert sum(ours[name]) == expected


def test_a_full_suppression_holds_as_many_keys(figures: tuple[Figures, Figures]) -> None:
    """Kafka Streams looks at a full buffer when a key has come, and before another one leaves."""
    ours, theirs = (max(each[f"{STORES}_suppression_buffer_count_max"]) for each in figures)
    assert (ours, theirs) == (3, 4)


def test_a_record_is_put_and_got_once_as_in_kafka_streams(
    figures: tuple[Figures, Figures],
) -> None:
    """Rates of one application are of the same time, so their quotient is that of counts."""
    for each in figures:
        records = sum(each[f"{TASKS}_process_rate"])
        for operation in ("put", "get"):
            calls = sum(each[f"{STORES}_{operation}_rate"])
            assert calls / records == pytest.approx(1 - WITHOUT_KEY / RECORDS, rel=0.1), operation


@pytest.mark.parametrize(("name", "factor"), ALIKE.items())
def test_a_time_is_of_the_order_of_kafka_streams(
    name: str, factor: float, figures: tuple[Figures, Figures]
) -> None:
    ours, theirs = (max(each[name]) for each in figures)
    assert theirs / factor < ours < theirs * factor
