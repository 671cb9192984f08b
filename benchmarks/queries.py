"""Measure how long a look-up takes, and what 1 000 queries a second take from the stream.

    python -m benchmarks.queries [--quick] [--rounds 5] [--write]

Two workers on the embedded broker count records of a million keys. Look-ups go to the worker that
has the key (`here`) and to the other one, which asks the first (`routed`), one after another: while
no records come, and while some come all the time. What they cost the workers is their processor
time.

Then the workers have more records than they can count. In each round they are left alone for some
seconds, beside a client that sends 1 000 queries a second to a process that does nothing but answer
(`control_server`), and are asked these queries themselves, in turns. Client, workers and broker
share the machine, so that what the client takes is in the second and the third: the ratio of these
is what workers lose by answering. The processor time of the stream threads by record, and of all
other threads of the workers by query, say where it goes.

`--switch-interval-ms` gives workers another time after which a thread gets Python's interpreter.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple

import orjson
import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.queried import INPUT, PARTITIONS, STORE
from benchmarks.queried_workers import ControlServer, QueriedWorker
from benchmarks.query_client import Address, QueryConnection, QueryLoad, find_quantile
from benchmarks.recorded import RATE, record
from benchmarks.runs import broker_at
from streams.common.partitioning import partition_for_key
from tests.page_tables import write_measured
from tests.processes import HANG_LIMIT_S, free_ports, wait_until

KEYS = [f"key-{number:06}" for number in range(1_000_000)]
RATE_WANTED = 1_000
RECORDS_WHILE_ASKED = 5_000
"""The records a second that come while look-ups are timed the second time."""
_VALUE = b"v" * 20
_RECORDS_MAX = 400_000
"""More records than two workers count in a second."""
_WARMUP_S = 5.0
_THREADS = 16

_PAGE = Path(__file__).parents[1] / "docs" / "queries.md"

console = Console(width=110)


class StreamFigures(NamedTuple):
    """Holds what was committed and answered a second, and the processor seconds that took.

    `stream_s` is that of the stream threads, `others_s` of all other threads of the workers.
    """

    records: float
    queries: float
    stream_s: float
    others_s: float


class Lookups(NamedTuple):
    """Holds the figures of look-ups of one kind: seconds each, and of processors of workers."""

    latencies_s: list[float]
    processor_s: float


class QueryBench:
    """Holds the workers, and writes the records that they count."""

    def __init__(self, stack: ExitStack, servers: str, root: Path, switch_interval_ms: str) -> None:
        self._random = Random(1)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(INPUT, PARTITIONS, 1)])[INPUT].result(HANG_LIMIT_S)
        queue = {"linger.ms": 20, "queue.buffering.max.messages": 2_000_000}
        self._producer = Producer(
            {"bootstrap.servers": servers, "partitioner": "murmur2_random", **queue}
        )
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-queries"})
        stack.callback(self._consumer.close)
        self._workers = [
            QueriedWorker(number, servers, port, root, switch_interval_ms)
            for number, port in enumerate(free_ports(2))
        ]
        for worker in self._workers:
            stack.callback(worker.close)
        self._control = ControlServer()
        stack.callback(self._control.close)
        self._owners: dict[int, Address] = {}
        self.write_records(len(KEYS))
        self.start_workers()
        wait_until(lambda: self.count_committed() >= len(KEYS), what="all records are counted")

    def start_workers(self) -> None:
        """Start the workers, and wait until each has half of the tasks."""
        for worker in self._workers:
            worker.start()
        wait_until(self._find_owners, what="each worker has half of the tasks")

    def stop_workers(self) -> None:
        """Let the workers commit and end."""
        for worker in self._workers:
            worker.stop()

    def write_records(self, count: int) -> None:
        """Write so many records, of one key after another."""
        for number in range(count):
            self._producer.produce(INPUT, _VALUE, KEYS[number % len(KEYS)])
            if number % 1_000 == 0:
                self._producer.poll(0)
        if self._producer.flush(HANG_LIMIT_S):
            raise RuntimeError(f"{count} records could not be written")

    def count_committed(self) -> int:
        """Return how many records the application has committed."""
        partitions = [TopicPartition(INPUT, number) for number in range(PARTITIONS)]
        found = self._consumer.committed(partitions, timeout=HANG_LIMIT_S)
        return sum(max(each.offset, 0) for each in found)

    def count_written(self) -> int:
        """Return how many records there are."""
        return sum(
            self._consumer.get_watermark_offsets(TopicPartition(INPUT, number))[1]
            for number in range(PARTITIONS)
        )

    def _find_owners(self) -> bool:
        """Note which worker has each partition; return whether they share them evenly."""
        try:
            connection = QueryConnection(self._workers[0].address)
            [store] = orjson.loads(connection.ask("/stores"))["stores"]
            connection.ask(f"/stores/{STORE}?limit=1")
        except (OSError, RuntimeError):
            return False
        connection.close()
        for host in store["hosts"]:
            if host["role"] == "active":
                name, _, port = host["address"].rpartition(":")
                self._owners[host["partition"]] = (name, int(port))
        shares = Counter(self._owners.values())
        return sorted(shares.values()) == [PARTITIONS // 2] * 2

    def choose_query(self, *, is_routed: bool) -> tuple[Address, str]:
        """Return a random key's path, and the worker that has it or the one that has not."""
        key = self._random.choice(KEYS)
        owner = self._owners[partition_for_key(key.encode(), PARTITIONS)]
        [other] = {worker.address for worker in self._workers} - {owner}
        return other if is_routed else owner, f"/stores/{STORE}/{key}"

    def measure_lookups(self, count: int, *, is_routed: bool) -> Lookups:
        """Ask for so many keys one after another."""
        connections = {each.address: QueryConnection(each.address) for each in self._workers}
        latencies_s = []
        processor_s = self._read_processor_s()
        for _ in range(count):
            address, path = self.choose_query(is_routed=is_routed)
            began_s = time.perf_counter()
            body = connections[address].ask(path)
            latencies_s.append(time.perf_counter() - began_s)
            if orjson.loads(body)["value"] < 1:
                raise RuntimeError(f"{path}: {body.decode()}")
        for connection in connections.values():
            connection.close()
        owners = {**self._owners}
        if not (self._find_owners() and owners == self._owners):
            raise RuntimeError("tasks have moved while look-ups were timed")
        return Lookups(latencies_s, self._read_processor_s() - processor_s)

    def _read_processor_s(self) -> float:
        return sum(worker.read_processor_s() for worker in self._workers)

    @contextmanager
    def writing(self, per_second: int) -> Iterator[None]:
        """Write so many records a second beside the block; none for 0."""
        stop = threading.Event()

        def write() -> None:
            while not stop.wait(0.05):
                for _ in range(per_second // 20):
                    self._producer.produce(INPUT, _VALUE, self._random.choice(KEYS))
                self._producer.poll(0)

        thread = threading.Thread(target=write)
        if per_second:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if per_second:
                thread.join()

    def choose_mixed_query(self, kinds: Random) -> tuple[Address, str]:
        """Return a random key's path, and the worker that has it or, as often, the other one."""
        return self.choose_query(is_routed=kinds.random() < 0.5)

    def choose_control_query(self, kinds: Random) -> tuple[Address, str]:
        """Return what `choose_mixed_query` does, for the process that answers it with any row."""
        return self._control.address, self.choose_mixed_query(kinds)[1]

    def measure_stream(
        self, span_s: float, choose_query: Callable[[Random], tuple[Address, str]] | None
    ) -> StreamFigures:
        """Measure the stream beside queries, or without any."""
        load = None
        if choose_query is not None:
            load = QueryLoad(partial(choose_query, Random(2)), RATE_WANTED, _THREADS)
        try:
            before, began_s = self.count_committed(), time.perf_counter()
            stream_s, others_s = self._read_thread_times_s()
            time.sleep(span_s)
            records = self.count_committed() - before
            took_s = time.perf_counter() - began_s
            stream_end_s, others_end_s = self._read_thread_times_s()
        finally:  # or its threads would never end
            answered = 0.0 if load is None else load.finish()
        return StreamFigures(
            records / took_s,
            answered,
            (stream_end_s - stream_s) / took_s,
            (others_end_s - others_s) / took_s,
        )

    def _read_thread_times_s(self) -> tuple[float, float]:
        """Return the processor time of both stream threads, and of all other threads of workers."""
        times_s = [worker.read_thread_times_s() for worker in self._workers]
        return sum(each[0] for each in times_s), sum(sum(each[1:]) for each in times_s)


def print_latencies(bench: QueryBench, count: int) -> list[str]:
    """Measure look-ups of each kind in turns; print a table of them, and return it in Markdown."""
    table = Table(title="a look-up over HTTP, one after another")
    for column in ("records a second", "key is", "p50, ms", "p99, ms", "workers' processor, ms"):
        table.add_column(column, justify="right")
    lines = ["| " + " | ".join(str(each.header) for each in table.columns) + " |", "|---" * 5 + "|"]
    for per_second in (0, RECORDS_WHILE_ASKED):
        with bench.writing(per_second):
            found = {}
            for is_routed in (False, True):
                bench.measure_lookups(count // 10, is_routed=is_routed)  # so that all is warm
                found[is_routed] = bench.measure_lookups(count, is_routed=is_routed)
        for is_routed, (latencies_s, processor_s) in found.items():
            where = "routed" if is_routed else "here"
            half, most = (1_000 * find_quantile(latencies_s, share) for share in (0.5, 0.99))
            record("queries", f"look-up, {per_second} records/s", f"{where} p50", "ms", [half])
            record("queries", f"look-up, {per_second} records/s", f"{where} p99", "ms", [most])
            # While records come, their processor time can't be told from that of queries.
            cost = "" if per_second else f"{1_000 * processor_s / count:.2f}"
            cells = (f"{per_second:,}", where, f"{half:.1f}", f"{most:.1f}", cost)
            table.add_row(*cells)
            lines.append("| " + " | ".join(cells) + " |")
    console.print(table)
    return lines


def print_throughput(bench: QueryBench, rounds: int, span_s: float) -> list[str]:
    """Measure the stream with and without queries in turns; print a table, and return it."""
    ways = {
        "nothing": None,
        "the client alone": bench.choose_control_query,
        "queries": bench.choose_mixed_query,
    }
    found: dict[str, list[StreamFigures]] = {name: [] for name in ways}
    bench.stop_workers()
    bench.write_records(int((_WARMUP_S + rounds * (span_s + 0.5) * len(ways)) * _RECORDS_MAX))
    bench.start_workers()
    time.sleep(_WARMUP_S)
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            found[name].append(bench.measure_stream(span_s, ways[name]))
            if bench.count_committed() >= bench.count_written():
                raise RuntimeError("the workers have counted all records before the last round")
    alone = [each.records for each in found["nothing"]]
    record("queries", "stream", "alone", RATE, alone, baseline=True)
    asked = [each.records for each in found["queries"]]
    record("queries", "stream", f"{RATE_WANTED} queries/s", RATE, asked)
    return print_stream_table(found, rounds)


def print_stream_table(found: dict[str, list[StreamFigures]], rounds: int) -> list[str]:
    """Print what was left of the stream in a table, and return it in Markdown."""
    columns = ("beside", "queries/s", "records/s", "of alone", "µs a record", "ms a query")
    table = Table(title=f"a stream that never rests, medians of {rounds} rounds")
    for column in columns:
        table.add_column(column, justify="right")
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    alone = found["nothing"]
    others_s = statistics.median(each.others_s for each in alone)
    for name, figures in found.items():
        shares = [one.records / other.records for one, other in zip(figures, alone, strict=True)]
        spread = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
        record_us = statistics.median(1e6 * each.stream_s / each.records for each in figures)
        queries = statistics.median(each.queries for each in figures)
        query_ms = ""
        if name == "queries":
            cost_s = statistics.median(each.others_s for each in figures) - others_s
            query_ms = f"{1_000 * cost_s / queries:.2f}"
        cells = (
            name,
            f"{queries:,.0f}",
            f"{statistics.median(each.records for each in figures):,.0f}",
            "1" if name == "nothing" else spread,
            f"{record_us:.2f}",
            query_ms,
        )
        table.add_row(*cells)
        lines.append("| " + " | ".join(cells) + " |")
    console.print(table)
    lost = statistics.median(
        one.records / other.records
        for one, other in zip(found["queries"], found["the client alone"], strict=True)
    )
    told = (
        f"Beside the client alone, {lost:.2f} of the stream is left to workers that answer. "
        "`µs a record` is the processor time of the stream threads, `ms a query` that of all other "
        "threads of the workers beyond what they take without queries."
    )
    console.print(told)
    return [*lines, "", told]


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    rounds: Annotated[int, typer.Option(help="Rounds with and without queries.")] = 5,
    switch_interval_ms: Annotated[
        str, typer.Option(help="After how long a thread of a worker gets the interpreter.")
    ] = "",
    write: Annotated[
        bool, typer.Option("--write", help="Write both into docs/queries.md.")
    ] = False,
) -> None:
    """Measure and print both."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = stack.enter_context(broker_at("embedded", root))
        queried = QueryBench(stack, servers, root, switch_interval_ms)
        lines = print_latencies(queried, 300 if quick else 2_000)
        told = print_throughput(queried, 2 if quick else rounds, 2.0 if quick else 3.0)
        if write:
            write_measured(_PAGE, "make bench-queries", "\n".join([*lines, "", *told]))


if __name__ == "__main__":
    typer.run(bench)
