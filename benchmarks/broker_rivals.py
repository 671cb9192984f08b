"""Start the embedded broker and Kafka for benchmarks, each as a person would run it.

The embedded broker has its defaults. Real Kafka has the heap and the collector that its own start
script gives it, both of the JVM's compilers, and its default numbers of threads; only the settings
that wait for other nodes are short, as in the tests, since a single node has nobody to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import Broker, EmbeddedProcess
from tests.conformance.wire import Api, Client
from tests.kafka.server import RealKafka
from tests.processes import wait_until

# As bin/kafka-server-start.sh and bin/kafka-run-class.sh of Kafka 4.3 have them.
JVM_FLAGS = (
    "-server",
    "-Xmx1G",
    "-Xms1G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
# Settings that the tests make small, at Kafka's defaults again.
KAFKA_SETTINGS = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "offsets.topic.segment.bytes": "104857600",
    "transaction.state.log.segment.bytes": "104857600",
    "log.cleaner.dedupe.buffer.size": "134217728",
}
TIMEOUT_S = 120.0
LATEST = -1

Rival = EmbeddedProcess | RealKafka


def create_rival(kind: str, settings: Mapping[str, str]) -> Rival:
    """Create, without starting it, a broker with a data directory: `embedded` or `kafka`."""
    if kind == "embedded":
        return EmbeddedProcess(settings)
    return RealKafka({**KAFKA_SETTINGS, **settings}, jvm_flags=JVM_FLAGS)


@contextmanager
def run_brokers(
    kinds: Sequence[str], settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[list[Rival]]:
    """Start brokers of these kinds for the with block, and close them after it."""
    with ExitStack() as exits:
        brokers = [create_rival(kind, settings) for kind in kinds]
        for broker in brokers:
            exits.callback(broker.close)
            broker.start()
        yield brokers


def create_topic(broker: Broker, name: str, partitions: int) -> None:
    """Create a topic that keeps its records for the whole run."""
    admin = _create_admin(broker)
    new = NewTopic(name, partitions, config={"retention.ms": "-1"})
    admin.create_topics([new])[name].result(TIMEOUT_S)
    wait_until(
        lambda: end_offsets(broker, name, partitions) == [0] * partitions,
        timeout_s=TIMEOUT_S,
        what=f"{name} is not there",
    )


def delete_topic(broker: Rival, name: str) -> None:
    """Delete a topic and wait until the broker has answered."""
    admin = _create_admin(broker)  # The client must live until the answer is there.
    admin.delete_topics([name])[name].result(TIMEOUT_S)


def _create_admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 3})


def end_offsets(
    broker: Broker, topic: str, partitions: int, *, committed_only: bool = False
) -> list[int]:
    """Return the end offset of each partition, or -1 for those of which the broker tells none.

    With `committed_only` it is the last stable offset.
    """
    requested = [{"partition_index": each, "timestamp": LATEST} for each in range(partitions)]
    with Client(broker.bootstrap_servers) as client:
        answer = client.send(
            Api.LIST_OFFSETS,
            2,
            replica_id=-1,
            isolation_level=int(committed_only),
            topics=[{"name": topic, "partitions": requested}],
        )
    return [each.offset for each in answer.topics[0].partitions]


def measure_restart(broker: Rival, topic: str, expected: list[int]) -> float:
    """Restart a broker; return the seconds until it tells the expected end of every partition."""
    begin = time.perf_counter()
    broker.restart()
    wait_until(
        lambda: end_offsets(broker, topic, len(expected)) == expected,
        timeout_s=TIMEOUT_S,
        what=lambda: f"{end_offsets(broker, topic, len(expected))} and not {expected}",
    )
    return time.perf_counter() - begin


def resident_mb(broker: Rival, *, peak: bool = False) -> float:
    """Return a broker's resident memory in MB of 10^6 bytes, now or at its peak."""
    name = "VmHWM" if peak else "VmRSS"
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1_024 / 1_000_000
    raise RuntimeError(f"no {name} of {broker.kind}")
