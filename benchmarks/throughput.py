"""Records a second of map and count, exactly once and at least once, beside a hand-written loop.

    python -m benchmarks.throughput [--broker host:port] [--records 200000] [--rounds 3]

Ours and the loop alternate in one process on one broker; the ratio is of their medians. Every
output is read back and checked before a figure is printed.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.handwritten import count_by_key, map_values, run_loop
from examples.demo.processes import Broker
from streams import App, serdes

PARTITIONS = 4
KEYS = 10_000
VALUE = "v" * 100
COMMIT_INTERVAL_MS = 100
WORK = {"map": map_values, "count": count_by_key}

console = Console(width=100)


@dataclass(frozen=True)
class Figure:
    """One line of the table: medians over the rounds, in records a second."""

    operator: str
    guarantee: str
    ours: int
    by_hand: int

    @property
    def ratio(self) -> float:
        return self.ours / self.by_hand


class Bench:
    """One broker with the input loaded."""

    def __init__(self, servers: str, records: int, directory: Path) -> None:
        self._servers = servers
        self._records = records
        self._directory = directory
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._runs = 0
        self._id = uuid4().hex[:8]
        self._input = self._topic("input")
        queue = {"linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": servers, **queue})
        for number in range(records):
            producer.produce(self._input, VALUE, f"key-{number % KEYS}")
            if number % 10_000 == 0:
                producer.poll(0)
        producer.flush(60)

    def figure(self, operator: str, guarantee: str, rounds: int) -> Figure:
        ours, by_hand = [], []
        for _ in range(rounds):
            by_hand.append(self._by_hand(operator, guarantee))
            ours.append(self._ours(operator, guarantee))
        return Figure(
            operator,
            guarantee,
            round(self._records / statistics.median(ours)),
            round(self._records / statistics.median(by_hand)),
        )

    def _by_hand(self, operator: str, guarantee: str) -> float:
        output = self._topic(f"by-hand-{operator}")
        seconds = run_loop(
            self._servers,
            self._input,
            partitions=PARTITIONS,
            records=self._records,
            exactly_once=guarantee == "exactly_once_v2",
            commit_interval_s=COMMIT_INTERVAL_MS / 1000,
            work=WORK[operator](output),
        )
        self._check(operator, output)
        return seconds

    def _ours(self, operator: str, guarantee: str) -> float:
        output = self._topic(f"ours-{operator}")
        app = App(
            f"bench-{self._id}-{self._runs}",
            bootstrap_servers=self._servers,
            processing_guarantee=guarantee,
            commit_interval_ms=COMMIT_INTERVAL_MS,
            state_dir=self._directory / "state",
        )
        if operator == "map":
            records = app.stream(self._input, key=serdes.bytes, value=serdes.string)
            records.map_values(str.upper).to(output)
        else:
            keyed = app.stream(self._input, key=serdes.string, value=serdes.bytes)
            keyed.group_by_key().count(store="counts").to_stream().to(output)
        with app.start() as running:
            seconds = self._until_done(running.metrics)
        self._check(operator, output)
        return seconds

    def _until_done(self, metrics: object) -> float:
        """Seconds from the first record to the commit after the last one."""
        assert callable(metrics)
        began = 0.0
        commits_at_end: int | None = None
        deadline = time.perf_counter() + 300
        while time.perf_counter() < deadline:
            now = metrics()
            if not began and now["records"]:
                began = time.perf_counter()
            if commits_at_end is None and now["records"] >= self._records:
                commits_at_end = now["commits"]
            if commits_at_end is not None and now["commits"] > commits_at_end:
                return time.perf_counter() - began
            time.sleep(0.002)
        raise RuntimeError(f"not done after 300 s: {metrics()}")

    def _topic(self, name: str) -> str:
        self._runs += 1
        topic = f"{self._id}-{self._runs}-{name}"
        # Nothing may be deleted by age in the middle of a run.
        new = NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})
        self._admin.create_topics([new])[topic].result(30)
        return topic

    def _check(self, operator: str, topic: str) -> None:
        """The output is complete and right, or RuntimeError."""
        found = 0
        counts: dict[bytes, int] = {}
        for key, value in read_committed(self._servers, topic):
            found += 1
            counts[key] = int.from_bytes(value, "big") if operator == "count" else 0
        total = sum(counts.values()) if operator == "count" else found
        if total != self._records:
            raise RuntimeError(f"{topic}: {total} and not {self._records}")


def read_committed(servers: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Every committed record of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    at_end = 0
    while at_end < PARTITIONS:
        for message in consumer.consume(10_000, 1):
            error = message.error()
            if error is None:
                yield message.key(), message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end += 1
    consumer.close()


@contextmanager
def broker_at(address: str, directory: Path) -> Iterator[str]:
    """The address given, or an embedded broker in a process of its own."""
    if address != "embedded":
        yield address
        return
    broker = Broker(directory)
    try:
        yield broker.address
    finally:
        broker.stop()


def bench(
    broker: Annotated[str, typer.Option(help="embedded, or host:port.")] = "embedded",
    records: Annotated[int, typer.Option(help="Records of the input.")] = 200_000,
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
    output: Annotated[Path | None, typer.Option(help="Write the figures as JSON.")] = None,
) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = stack.enter_context(broker_at(broker, directory))
        runs = Bench(servers, records, directory)
        figures = [
            runs.figure(operator, guarantee, rounds)
            for operator in WORK
            for guarantee in ("exactly_once_v2", "at_least_once")
        ]
    table = Table(title=f"{records:,} records of 100 bytes, commit every {COMMIT_INTERVAL_MS} ms")
    for column in ("operator", "guarantee", "ours, records/s", "by hand, records/s", "ratio"):
        table.add_column(column)
    for figure in figures:
        rates = f"{figure.ours:,}", f"{figure.by_hand:,}", f"{figure.ratio:.2f}"
        table.add_row(figure.operator, figure.guarantee, *rates)
    console.print(table)
    if output is not None:
        output.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")


if __name__ == "__main__":
    typer.run(bench)
