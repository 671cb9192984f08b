"""Run one operator on one broker with Millrace and with a hand-written loop; check the outputs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.handwritten import count_by_key, map_values, run_loop
from examples.demo.processes import Broker
from streams import App, serdes
from streams.processes.running import RunningApp
from streams.settings.choices import ProcessingGuarantee
from tests.reading import records

PARTITIONS = 4
WORK = {"map": map_values, "count": count_by_key}
_DONE_S = 600.0


@dataclass(frozen=True, slots=True)
class Input:
    """Describes the records of an input topic: their number, number of keys and size."""

    records: int
    keys: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class Way:
    """Describes how an input is processed: operator, guarantee and commit interval."""

    operator: str
    guarantee: ProcessingGuarantee
    commit_interval_ms: int


class Runs:
    """Loads an input into a broker once, and processes it with Millrace and by hand."""

    def __init__(self, servers: str, given: Input, directory: Path) -> None:
        self.servers = servers
        self._given = given
        self._directory = directory
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
        self._runs = 0
        self._id = uuid4().hex[:8]
        self._topics: list[str] = []
        self.input = self.create_topic("input")
        queue = {"log_level": 2, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": servers, **queue})
        value = "v" * given.value_bytes
        for number in range(given.records):
            producer.produce(self.input, value, f"key-{number % given.keys}")
            if number % 10_000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise RuntimeError("the input could not be written in 120 s")

    def run_by_hand(self, way: Way) -> float:
        """Process the input with the hand-written loop, and return the seconds that it took."""
        output = self.create_topic(f"by-hand-{way.operator}")
        seconds = run_loop(
            self.servers,
            self.input,
            partitions=PARTITIONS,
            records=self._given.records,
            exactly_once=way.guarantee == "exactly_once_v2",
            commit_interval_s=way.commit_interval_ms / 1000,
            work=WORK[way.operator](output),
        )
        self.check_output(way.operator, output)
        return seconds

    def run_millrace(self, way: Way, *, servers: str | None = None, **settings: Any) -> float:
        """Process the input with Millrace; return the seconds from first record to last commit.

        `servers`: another listener of the broker.
        """
        output = self.create_topic(f"ours-{way.operator}")
        app = App(
            f"bench-{self._id}-{self._runs}",
            bootstrap_servers=servers or self.servers,
            processing_guarantee=way.guarantee,
            commit_interval_ms=way.commit_interval_ms,
            transaction_timeout_ms=max(10_000, 3 * way.commit_interval_ms),
            state_dir=self._directory / "state",
            **settings,
        )
        describe_operator(app, way.operator, self.input, output)
        with app.start() as running:
            seconds = close_when_done(running, self._given.records)
        self.check_output(way.operator, output)
        return seconds

    def clear(self) -> None:
        """Delete the topics of all runs, so that they take no disk from the next input."""
        for answer in self._admin.delete_topics(self._topics).values():
            answer.result(60)

    def create_topic(self, name: str) -> str:
        """Create a topic of a run, whose name ends with the given one, and return its name."""
        self._runs += 1
        topic = f"{self._id}-{self._runs}-{name}"
        # No record may be deleted by age in the middle of a run.
        new = NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})
        self._admin.create_topics([new])[topic].result(30)
        self._topics.append(topic)
        return topic

    def check_output(self, operator: str, topic: str) -> None:
        """Raise RuntimeError unless the output topic has the right results."""
        found = 0
        counts: dict[bytes, int] = {}
        for message in records(self.servers, topic, PARTITIONS):
            found += 1
            count = int.from_bytes(message.value(), "big") if operator == "count" else 0
            counts[message.key()] = count
        total = sum(counts.values()) if operator == "count" else found
        if total != self._given.records:
            raise RuntimeError(f"{topic}: {total} and not {self._given.records}")


def describe_operator(app: App, operator: str, source: str, output: str) -> None:
    """Describe the application of an operator, `map` or `count`, from one topic to another."""
    if operator == "map":
        records = app.stream(source, key=serdes.bytes, value=serdes.string)
        records.map_values(str.upper).to(output)
    else:
        keyed = app.stream(source, key=serdes.string, value=serdes.bytes)
        keyed.group_by_key().count(store="counts").to_stream().to(output)


def close_when_done(
    running: RunningApp,
    record_count: int,
    *,
    look_every_s: float = 0.002,
    read_clock_s: Callable[[], float] = time.perf_counter,
) -> float:
    """Close the application once it has read all records; return the time to its last commit.

    Closing makes it commit when the last record is done, whatever the interval, as the loop does.
    """
    began_s: float | None = None
    closing: threading.Thread | None = None
    commits = 0
    deadline = time.perf_counter() + _DONE_S
    while time.perf_counter() < deadline:
        now = running.metrics()
        if began_s is None and now["records"]:
            began_s = read_clock_s()
        if closing is None and now["records"] >= record_count:
            commits = now["commits"]
            closing = threading.Thread(target=running.close)
            closing.start()
        if closing is not None and (now["commits"] > commits or not closing.is_alive()):
            assert began_s is not None
            seconds = read_clock_s() - began_s
            closing.join()
            return seconds
        time.sleep(look_every_s)
    raise RuntimeError(f"not done after {_DONE_S:.0f} s: {running.metrics()}")


@contextmanager
def broker_at(address: str, directory: Path) -> Iterator[str]:
    """Yield the given address, or that of an embedded broker started for the with block."""
    if address != "embedded":
        yield address
        return
    broker = Broker(directory)
    try:
        yield broker.address
    finally:
        broker.stop()
