"""Test that joins without names of Kafka Streams go on in Millrace, with Java's generated names.

Orders that wait for their payment, and subscriptions of items to prices, are in stores that have
names of Java: what waits is joined once, and a new price reaches the items that asked before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.brokers import Broker
from tests.clients.programs import Program
from tests.porting.takeover.steps import PARTITIONS, OffsetImport, compile_java, create_topics
from tests.porting.takeover.unnamed import JAVA_NAMES, app
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

INPUTS = ("orders-in", "payments-in", "items-in", "prices-in")
HOUR_MS = 3_600_000
KEYS = [f"k{number}" for number in range(12)]

pytestmark = pytest.mark.sampled(1, by="broker")


@pytest.fixture
def topics(broker: Broker) -> Iterator[None]:
    with create_topics(broker, "unnamed", (*INPUTS, "paid-out", "priced-out")):
        yield


def send(servers: str, topic: str, values: dict[str, str], time_ms: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for key, value in values.items():
        producer.produce(topic, value, key, timestamp=time_ms)
    assert producer.flush(HANG_LIMIT_S) == 0


def wait_for(servers: str, wanted: dict[str, Counter[str]]) -> None:
    """Wait until the outputs have what is wanted, and check that they have nothing else."""
    found: dict[str, Counter[str]] = {}

    def is_there() -> bool:
        for topic in wanted:
            found[topic] = Counter(
                f"{m.key().decode()}: {m.value().decode()}"
                for m in records(servers, topic, PARTITIONS)
            )
        return all(found[topic] >= wanted[topic] for topic in wanted)

    wait_until(is_there, what=lambda: str({t: wanted[t] - found[t] for t in wanted}))
    assert found == wanted


@pytest.mark.usefixtures("topics")
def test_joins_without_names_go_on_where_kafka_streams_was_stopped(
    broker: Broker, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    begin_ms = int(time.time()) * 1_000 - 20 * HOUR_MS
    early, late = KEYS[:6], KEYS[6:]
    java = Program(
        "unnamed",
        [*compile_java("Unnamed", tmp_path), servers, str(tmp_path / "java"), "exactly_once_v2"],
    )
    try:
        java.wait_for("RUNNING")
        send(servers, "items-in", {key: f"item{key}" for key in KEYS}, begin_ms)
        priced = Counter({f"{key}: item{key}+null": 1 for key in KEYS})
        wait_for(servers, {"priced-out": priced})
        send(servers, "prices-in", {f"item{key}": "1" for key in early}, begin_ms)
        priced += Counter({f"{key}: item{key}+1": 1 for key in early})
        send(servers, "orders-in", dict.fromkeys(KEYS, "order"), begin_ms)
        send(servers, "payments-in", dict.fromkeys(early, "now"), begin_ms + 1_000)
        paid = Counter({f"{key}: order+now": 1 for key in early})
        wait_for(servers, {"priced-out": priced, "paid-out": paid})
    finally:
        java.close()  # by SIGTERM: it commits and leaves
    imported = OffsetImport("unnamed", broker, tmp_path / "state")
    imported.take_offsets_over()
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path / "state")
    with app.start(handle_signals=False) as millrace:
        millrace.wait_for("RUNNING", timeout=HANG_LIMIT_S)
        send(servers, "prices-in", {f"item{key}": "2" for key in KEYS}, begin_ms + 2_000)
        priced += Counter({f"{key}: item{key}+2": 1 for key in KEYS})
        send(servers, "payments-in", dict.fromkeys(late[:3], "later"), begin_ms + 2_000)
        paid += Counter({f"{key}: order+later": 1 for key in late[:3]})
        wait_for(servers, {"priced-out": priced, "paid-out": paid})
        # Stream time of every partition moves on: what Java has left without a match is written.
        end_ms = begin_ms + 4 * HOUR_MS
        send(servers, "orders-in", {f"end{number}": "end" for number in range(12)}, end_ms)
        paid += Counter({f"{key}: order+null": 1 for key in late[3:]})
        wait_for(servers, {"priced-out": priced, "paid-out": paid})


@pytest.mark.usefixtures("topics")
def test_names_that_java_has_generated_are_told_where_they_are_missing(
    broker: Broker, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    java = Program(
        "unnamed",
        [*compile_java("Unnamed", tmp_path), servers, str(tmp_path / "java"), "exactly_once_v2"],
    )
    try:
        java.wait_for("RUNNING")
        send(servers, "items-in", {"a": "item"}, int(time.time()) * 1_000)
        wait_for(servers, {"priced-out": Counter({"a: item+null": 1})})
    finally:
        java.close()
    imported = OffsetImport("unnamed", broker, tmp_path / "state", variable="without_names")
    refused = imported.run_when_group_is_empty()
    assert refused.exit_code == 2
    told = " ".join(refused.output.split())
    assert f"internal_names={JAVA_NAMES}" in told
