"""Measure restores of stores against a hand-written loop, and recoveries of killed workers.

    python -m benchmarks.restore [--broker host:port] [--records 1000000] [--rounds 3]
                                 [--sizes 10,100,1000]

The hand-written loop consumes the same changelog and writes it into a plain RocksDB. The recovery
is that of a worker that is killed with `kill -9` while it writes to a store of so many megabytes:
the time from the start of the new process until it runs. What is in the stores is compared with
what was written before any figure is printed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table
from rocksdict import Options, Rdict, WriteBatch

from benchmarks.recorded import RATE, record
from benchmarks.runs import broker_at
from state.rocksdb import RocksDisk
from streams import App, Processor, Record, Store, serdes
from tests.changelog_offsets import account_for_changelogs

PARTITIONS = 4
VALUE_BYTES = 100
RECOVERY_VALUE_BYTES = 1_000
STORE = "values"
_TIMESTAMP_BYTES = 8
_WAIT_S = 300.0

console = Console(width=100)


class Keep(Processor[bytes, bytes, bytes, bytes]):
    """Keeps the last value of each key in a store."""

    stores = (Store.persistent(STORE, key=serdes.bytes, value=serdes.bytes),)

    def init(self, context: Any) -> None:
        self._values = context.store(STORE)

    def process(self, record: Record[bytes, bytes]) -> None:
        self._values.put(record.key, record.value)


def create_app(application: str, servers: str, state: Path) -> App:
    """Create the application that keeps the last value of each key of its input topic."""
    created = App(application, bootstrap_servers=servers, state_dir=state, session_timeout_ms=6_000)
    source = created.stream(f"{application}-in", key=serdes.bytes, value=serdes.bytes)
    source.process(Keep)
    return created


class Bench:
    """Fills changelogs on one broker, and measures how soon they are restored."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._servers = servers
        self._directory = directory
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._id = uuid4().hex[:8]

    def fill_changelog(self, name: str, records: int, value_bytes: int) -> str:
        """Write a changelog of `records` keys, and return the id of its application."""
        application = f"{self._id}-{name}"
        self._create_topic(f"{application}-in")
        changelog = self._create_topic(f"{application}-{STORE}-changelog", compact=True)
        queue = {"linger.ms": 20, "queue.buffering.max.kbytes": 200_000}
        producer = Producer({"bootstrap.servers": self._servers, "batch.size": 1_000_000, **queue})
        now_ms = time.time_ns() // 1_000_000
        for number in range(records):
            while True:
                try:
                    producer.produce(
                        changelog,
                        value_of(number, value_bytes),
                        b"key-%d" % number,
                        number % PARTITIONS,
                        timestamp=now_ms,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 10_000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise RuntimeError("the changelog was not written")
        source = f"{application}-in"
        account_for_changelogs(self._servers, application, source, {STORE: changelog})
        return application

    def run_millrace(self, application: str, records: int) -> float:
        """Restore with Millrace; return the seconds from the first batch until the tasks run."""
        state = self._directory / "state"
        with create_app(application, self._servers, state).start() as running:
            while not running.metrics()["restored_records"]:
                time.sleep(0.001)
            began = time.perf_counter()
            begun_with = running.metrics()["restored_records"]
            running.wait_for("RUNNING", _WAIT_S)
            seconds = time.perf_counter() - began
        self._check_stores(state / application, records, VALUE_BYTES)
        shutil.rmtree(state)
        # The first batch was restored before the clock was started.
        return seconds * records / (records - begun_with)

    def run_by_hand(self, application: str, records: int) -> float:
        """Restore with a loop on a consumer into one database; return the seconds that it took."""
        path = self._directory / "by-hand"
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "by-hand",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        changelog = f"{application}-{STORE}-changelog"
        database = Rdict(str(path), Options(raw_mode=True))
        consumer.assign([TopicPartition(changelog, number, 0) for number in range(PARTITIONS)])
        done = 0
        began = 0.0
        while done < records:
            messages = consumer.consume(10_000, 0.05)
            began = began or (time.perf_counter() if messages else 0.0)
            batch = WriteBatch(raw_mode=True)
            for message in messages:
                stamp = message.timestamp()[1].to_bytes(_TIMESTAMP_BYTES, "big")
                batch.put(message.key(), stamp + message.value())
            database.write(batch)
            done += len(messages)
        seconds = time.perf_counter() - began
        consumer.close()
        found: dict[Any, Any] = dict(database.items())
        database.close()
        _check_values(found, records, VALUE_BYTES)
        shutil.rmtree(path)
        return seconds

    def measure_recoveries(self, megabytes: int, kills: int) -> list[float]:
        """Kill a worker several times; return the seconds from each restart until it is RUNNING."""
        records = megabytes * 1_000_000 // RECOVERY_VALUE_BYTES
        application = self.fill_changelog(f"recovery-{megabytes}", records, RECOVERY_VALUE_BYTES)
        state = self._directory / "state"
        with create_app(application, self._servers, state).start() as running:
            running.wait_for("RUNNING", _WAIT_S)
        seconds = []
        worker = Worker(application, self._servers, state)
        try:
            worker.start()
            for _ in range(kills):
                self._write_some(application, records)
                worker.kill()
                seconds.append(worker.start())
            worker.stop()
        finally:
            worker.kill()
        self._check_stores(state / application, records, RECOVERY_VALUE_BYTES)
        shutil.rmtree(state)
        return seconds

    def _write_some(self, application: str, records: int) -> None:
        """Write input for a worker that will be killed, without changing the values of its keys."""
        producer = Producer({"bootstrap.servers": self._servers})
        for number in range(0, records, max(records // 5_000, 1)):
            value = value_of(number, RECOVERY_VALUE_BYTES)
            producer.produce(f"{application}-in", value, b"key-%d" % number, number % PARTITIONS)
        producer.flush(60)

    def _check_stores(self, state: Path, records: int, value_bytes: int) -> None:
        found: dict[bytes, bytes] = {}
        for partition in range(PARTITIONS):
            disk = RocksDisk(state / f"0_{partition}" / STORE)
            found.update(disk.range(None, None))
            disk.close()
        _check_values(found, records, value_bytes)

    def _create_topic(self, topic: str, *, compact: bool = False) -> str:
        kept = {"cleanup.policy": "compact"} if compact else {"retention.ms": "-1"}
        new = NewTopic(topic, PARTITIONS, config=kept)
        self._admin.create_topics([new])[topic].result(30)
        return topic


class Worker:
    """Runs the application in a process that prints when it is RUNNING."""

    def __init__(self, application: str, servers: str, state: Path) -> None:
        self._command = [sys.executable, "-m", "benchmarks.restore", "--worker", application]
        self._command += ["--broker", servers, "--state", str(state)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start the process, and return the seconds until it is RUNNING."""
        began = time.perf_counter()
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], _WAIT_S)
        if not ready or output.readline() != b"RUNNING\n":
            raise RuntimeError("the worker did not run")
        return time.perf_counter() - began

    def kill(self) -> None:
        """Kill the process, if it runs, and wait until it has ended."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Stop the process with SIGTERM. Raises RuntimeError unless it ends with status 0."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        if self._process.wait(60):
            raise RuntimeError("the worker did not end in order")


def run_worker(application: str, servers: str, state: Path) -> None:
    """Run the application in this process until SIGTERM."""
    stopped = False

    def request_stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, request_stop)
    with create_app(application, servers, state).start() as running:
        running.wait_for("RUNNING", _WAIT_S)
        os.write(1, b"RUNNING\n")
        while not stopped:
            time.sleep(0.05)


def value_of(number: int, value_bytes: int) -> bytes:
    """Create the value of the key with a given number."""
    return (b"%d:" % number).ljust(value_bytes, b"v")


def _check_values(found: dict[bytes, bytes], records: int, value_bytes: int) -> None:
    """Raise RuntimeError unless the restored values, without their timestamps, are as written."""
    if len(found) != records:
        raise RuntimeError(f"{len(found)} keys and not {records}")
    for number in range(records):
        if found[b"key-%d" % number][_TIMESTAMP_BYTES:] != value_of(number, value_bytes):
            raise RuntimeError(f"key-{number} has {found[b'key-%d' % number]!r:.80}")


def measure_rates(bench: Bench, records: int, rounds: int) -> Iterator[tuple[str, float]]:
    """Measure restores of both kinds by turns, and yield the median rate of each kind."""
    application = bench.fill_changelog("rate", records, VALUE_BYTES)
    ours, by_hand = [], []
    for _ in range(rounds):
        by_hand.append(records / bench.run_by_hand(application, records))
        ours.append(records / bench.run_millrace(application, records))
    case = f"{records:,} records of {VALUE_BYTES} bytes"
    record("restore", case, "ours", RATE, ours)
    record("restore", case, "by hand", RATE, by_hand, baseline=True)
    yield "ours", statistics.median(ours)
    yield "by hand", statistics.median(by_hand)


def main(
    broker: Annotated[str, typer.Option(help="embedded, or host:port.")] = "embedded",
    records: Annotated[int, typer.Option(help="Records of the changelog; 0: none.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
    sizes: Annotated[str, typer.Option(help="Megabytes of the killed workers' stores.")] = (
        "10,100,1000"
    ),
    kills: Annotated[int, typer.Option(help="How often each is killed.")] = 3,
    worker: Annotated[str, typer.Option(hidden=True)] = "",
    state: Annotated[Path, typer.Option(hidden=True)] = Path(),
) -> None:
    """Measure restores and recoveries, and print the figures."""
    if worker:
        run_worker(worker, broker, state)
        return
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        bench = Bench(stack.enter_context(broker_at(broker, directory)), directory)
        if records:
            table = Table(title=f"Restore of {records:,} records of {VALUE_BYTES} bytes")
            table.add_column("by")
            table.add_column("records/s", justify="right")
            for who, rate in measure_rates(bench, records, rounds):
                table.add_row(who, f"{rate:,.0f}")
            console.print(table)
        table = Table(title="From the start of a process to RUNNING, after kill -9")
        table.add_column("store, MB", justify="right")
        table.add_column("s, median", justify="right")
        table.add_column("s, longest", justify="right")
        for megabytes in [int(size) for size in sizes.split(",") if size]:
            seconds = bench.measure_recoveries(megabytes, kills)
            record("restore", f"a killed worker, {megabytes} MB", "ours", "s", seconds)
            table.add_row(
                str(megabytes), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"
            )
        if table.row_count:
            console.print(table)


if __name__ == "__main__":
    typer.run(main)
