"""Measure how soon results go on after the only broker was killed and started again.

    python -m benchmarks.broker_restart [--brokers embedded,kafka] [--protocols classic,streams]

Two workers count by key, exactly once, while records come all the time. The broker is killed with
`kill -9`, is away for a moment, and is started again on its data. A pause is the time from the
broker's first answer until a partition of the output has more committed records than it had then.
Kafka is killed when it owes no markers (`tests.kafka.markers`), and lets its one node in again when
the session of the node that was killed is over, before its first answer or a little after it.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.broker_rivals import end_offsets
from benchmarks.recorded import record
from tests.brokers import SETTINGS, Broker, make
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.kafka.markers import kill_between_markers
from tests.processes import wait_until

SESSION_MS = 45_000
_STEADY_S, _LIMIT_S = 8.0, 120.0

console = Console(width=110)


@contextmanager
def write_records_meanwhile(topics: Topics) -> Iterator[None]:
    """Write records until the end of the with block, some thousand a second."""
    is_over = threading.Event()

    def load() -> None:
        settings = {"bootstrap.servers": topics.servers, "log_level": 0, "linger.ms": 5}
        producer = Producer({**settings, "reconnect.backoff.max.ms": 200})
        number = 0
        while not is_over.is_set():
            for _ in range(20):
                producer.produce(topics.source, f"value {number}", f"key-{number % 50}")
                number += 1
            producer.poll(0)
            is_over.wait(0.01)
        producer.purge()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def count_committed(broker: Broker, topics: Topics) -> list[int]:
    """Return the last stable offset of each partition of the output, or -1 if it is not told."""
    return end_offsets(broker, topics.target, PARTITIONS, committed_only=True)


def wait_for_more(broker: Broker, topics: Topics) -> list[float]:
    """Return for each partition of the output in how many seconds it has grown."""
    began_s = time.monotonic()
    before: dict[int, int] = {}
    grown_s: dict[int, float] = {}

    def has_grown() -> bool:
        for number, end in enumerate(count_committed(broker, topics)):
            if end >= 0 and end > before.setdefault(number, end):
                grown_s.setdefault(number, time.monotonic() - began_s)
        return len(grown_s) == PARTITIONS

    wait_until(has_grown, what=lambda: f"only {grown_s} have grown", timeout_s=_LIMIT_S)
    return [grown_s[number] for number in range(PARTITIONS)]


def measure_pauses(
    kind: str, protocol: str, wait_ms: int, away_s: float, rounds: int
) -> list[float]:
    """Return the pause of each partition at each of `rounds` restarts of a broker.

    `wait_ms` is the workers' `reconnect.backoff.max.ms`.
    """
    clients = json.dumps({"reconnect.backoff.max.ms": wait_ms})
    os.environ |= {
        "MILLRACE_GROUP_PROTOCOL": protocol,
        "MILLRACE_CONSUMER": clients,
        "MILLRACE_PRODUCER": clients,
    }
    settings = {name: value for name, value in SETTINGS.items() if ".min." not in name}
    with (
        closing(make(kind, settings)) as broker,
        tempfile.TemporaryDirectory(prefix="broker-restart-") as state,
    ):
        broker.start()
        topics = Topics(broker.bootstrap_servers, f"restarted-{protocol}")
        workers = [
            Worker(
                topics,
                Path(state) / str(number),
                kind="count",
                guarantee="exactly_once_v2",
                session_timeout_ms=SESSION_MS,
            )
            for number in range(2)
        ]
        pauses: list[float] = []
        try:
            for worker in workers:
                worker.start()
            with write_records_meanwhile(topics):
                wait_for_more(broker, topics)
                for _ in range(rounds):
                    time.sleep(_STEADY_S)
                    kill_between_markers(broker)
                    time.sleep(away_s)
                    broker.restart()
                    pauses += wait_for_more(broker, topics)
        finally:
            for worker in workers:
                worker.close()
        return pauses


def print_table(found: dict[tuple[str, str, int], list[float]]) -> None:
    """Print the pauses of each broker, protocol and longest wait."""
    table = Table(
        title="Pause of a partition in s, from the first answer of the broker that is back"
    )
    for column in ("broker", "protocol", "reconnect.backoff.max.ms", "pauses", "median", "longest"):
        table.add_column(column, justify="left" if column in ("broker", "protocol") else "right")
    for (kind, protocol, wait_ms), pauses in found.items():
        figures = (f"{median(pauses):.2f}", f"{max(pauses):.2f}")
        table.add_row(kind, protocol, str(wait_ms), str(len(pauses)), *figures)
    console.print(table)


def main(
    brokers: Annotated[str, typer.Option(help="Which brokers, with commas.")] = "embedded,kafka",
    protocols: Annotated[str, typer.Option(help="Which, with commas.")] = "classic,streams",
    waits: Annotated[
        str, typer.Option(help="Values of reconnect.backoff.max.ms: ours, and librdkafka's.")
    ] = "1000,10000",
    away_s: Annotated[float, typer.Option(help="For how many seconds the broker is away.")] = 1.5,
    rounds: Annotated[int, typer.Option(help="Restarts of each.")] = 4,
) -> None:
    """Measure each broker with each protocol and wait, and print them beside each other."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for kind in brokers.split(","):
        for protocol in protocols.split(","):
            for wait_ms in map(int, waits.split(",")):
                pauses = measure_pauses(kind, protocol, wait_ms, away_s, rounds)
                found[kind, protocol, wait_ms] = pauses
                case = f"{kind}, {protocol}"
                record("broker restart", case, f"{wait_ms} ms", "s", pauses)
    print_table(found)


if __name__ == "__main__":
    typer.run(main)
