"""Measure how long a record takes from when it is due to when its result can be read, committed.

    python -m benchmarks.peers.latency [--broker kafka] [--rates 1000,10000,50000]
                                       [--intervals 20,100] [--seconds 10] [--steps]
                                       [--output FILE]

The topology is `map`, exactly once. A process of its own sends records at a fixed rate, whatever
comes back (`benchmarks.peers.paced_producer`); a reader of committed records takes the time when it
has a result. What counts is the time since the record was due, so a stall counts for all records
that it delays. The first seconds are not counted. A run whose results do not all come is void.
With --steps it also prints where Millrace spends the time (`benchmarks.peers.timed_worker`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from benchmarks.broker_rivals import create_rival
from benchmarks.figures import percentile
from benchmarks.peers.runs import PeerRuns
from benchmarks.peers.samples import VoidRun
from benchmarks.peers.workloads import MILLRACE, PARTITIONS, WAYS, choose_ways
from benchmarks.recorded import record

_WARM_UP_S, _START_S, _DRAIN_S = 3.0, 120.0, 60.0
_MS = "ms"

console = Console(width=120)


class LatencyFigures(NamedTuple):
    """Holds the percentiles of one run in ms, and how late its records were sent."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float


class LatencyCase(NamedTuple):
    """Describes a load: records a second, and the commit interval of the application."""

    rate: int
    commit_interval_ms: int

    def __str__(self) -> str:
        return f"map at {self.rate:,}/s, commit every {self.commit_interval_ms} ms"


def compute_latency(latencies_ms: Sequence[float], late_p99_ms: float) -> LatencyFigures:
    """Compute the figures of a run from the latency of each record that counts."""
    ordered = sorted(latencies_ms)
    return LatencyFigures(
        percentile(ordered, 0.5), percentile(ordered, 0.99), ordered[-1], late_p99_ms
    )


class LatencyRuns:
    """Runs the map in each way on one broker, and measures each record's latency."""

    def __init__(
        self, runs: PeerRuns, servers: str, seconds: float, steps: Path | None = None
    ) -> None:
        self._runs = runs
        self._steps = steps
        self._servers = servers
        self._seconds = seconds

    def run(self, case: LatencyCase, way: str) -> LatencyFigures:
        """Run one way under a load. Raises VoidRun if results are missing."""
        interval_ms, steps = case.commit_interval_ms, self._steps
        with self._runs.start_application("map", way, interval_ms, steps) as (source, output):
            reader = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": output,
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 100,
                    "fetch.queue.backoff.ms": 1,
                }
            )
            try:
                reader.assign([TopicPartition(output, each, 0) for each in range(PARTITIONS)])
                probes = self._wait_until_running(reader, source)
                return self._measure(reader, source, case, probes)
            finally:
                reader.close()

    def _wait_until_running(self, reader: Consumer, source: str) -> int:
        """Send single records until their results come; return how many results are still due."""
        producer = Producer({"bootstrap.servers": self._servers})
        sent = came = 0
        deadline = time.monotonic() + _START_S
        while not came:
            if time.monotonic() > deadline:
                raise VoidRun(f"no result came in {_START_S} s")
            producer.produce(source, b"probe", b"probe", sent % PARTITIONS)
            producer.flush(30)
            sent += 1
            came += _count_results(reader.consume(100, 0.5))
        return sent - came

    def _measure(
        self, reader: Consumer, source: str, case: LatencyCase, probes: int
    ) -> LatencyFigures:
        seconds = _WARM_UP_S + self._seconds
        total = int(case.rate * seconds) + probes
        module = "benchmarks.peers.paced_producer"
        arguments = (self._servers, source, PARTITIONS, case.rate, seconds)
        with subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)], stdout=subprocess.PIPE
        ) as sender:
            came, latencies = 0, []
            counts_from_ms = time.time() * 1_000 + _WARM_UP_S * 1_000
            deadline = time.monotonic() + seconds + _DRAIN_S
            while came < total:
                if time.monotonic() > deadline:
                    raise VoidRun(f"{came} of {total} results came")
                messages = reader.consume(1, 0.1) + reader.consume(10_000, 0)
                now_ms = time.time() * 1_000
                came += _count_results(messages)
                for message in messages:
                    due_ms = message.timestamp()[1]
                    if due_ms >= counts_from_ms:
                        latencies.append(now_ms - due_ms)
            assert sender.stdout is not None
            sent = json.loads(sender.stdout.read())
        return compute_latency(latencies, sent["late_p99_ms"])


def _count_results(messages: Sequence[object]) -> int:
    return sum(message.error() is None for message in messages)  # type: ignore[attr-defined]


def create_step_table(steps: dict[str, list[float]], title: str) -> Table:
    """Create a table of the median and the 99th percentile of each step."""
    table = Table("step", "p50 ms", "p99 ms", title=title)
    for step, (p50_ms, p99_ms) in steps.items():
        table.add_row(step, f"{p50_ms:,.1f}", f"{p99_ms:,.1f}")
    return table


def create_latency_table(
    results: dict[LatencyCase, dict[str, LatencyFigures]], title: str
) -> Table:
    """Create a table of the percentiles of each way under each load."""
    table = Table(title=title)
    for column in ("load", "way"):
        table.add_column(column, no_wrap=True)
    for column in ("p50 ms", "p99 ms", "max ms", "sent late, p99 ms"):
        table.add_column(column, justify="right")
    for case, ways in results.items():
        for way, figures in ways.items():
            table.add_row(str(case), way, *(f"{each:,.0f}" for each in figures))
        table.add_section()
    return table


def main(
    broker: Annotated[str, typer.Option(help="embedded or kafka.")] = "embedded",
    rates: Annotated[str, typer.Option(help="Records a second, with commas.")] = "1000,10000,50000",
    intervals: Annotated[str, typer.Option(help="Commit intervals, ms.")] = "20,100",
    ways: Annotated[str, typer.Option(help="Ways to run, with commas.")] = ",".join(WAYS),
    seconds: Annotated[float, typer.Option(help="How long to measure each.")] = 10.0,
    print_steps: Annotated[
        bool, typer.Option("--steps", help="Print the times of Millrace's steps, too.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Write the figures as JSON.")] = None,
) -> None:
    """Measure all loads in all ways, and print the percentiles in a table."""
    cases = [LatencyCase(int(r), int(i)) for r in rates.split(",") for i in intervals.split(",")]
    try:
        chosen = choose_ways(ways)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    results: dict[LatencyCase, dict[str, LatencyFigures]] = {}
    voids = 0
    with ExitStack() as stack:
        process = create_rival(broker, {})
        stack.callback(process.close)
        process.start()
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-"))
        steps = Path(directory) / "steps.json" if print_steps else None
        servers = process.bootstrap_servers
        runs = LatencyRuns(PeerRuns(process, Path(directory)), servers, seconds, steps)
        for case in cases:
            for way in chosen:
                try:
                    figures = runs.run(case, way)
                except VoidRun as error:
                    console.print(f"void: {case}, {way}: {error}", markup=False)
                    voids += 1
                    continue
                results.setdefault(case, {})[way] = figures
                if steps is not None and way == MILLRACE:
                    console.print(create_step_table(json.loads(steps.read_text()), str(case)))
                console.print(f"{case}, {way}: {figures}", markup=False)
                for name in ("p50_ms", "p99_ms"):
                    value = getattr(figures, name)
                    record("latency", f"{case}, {name[:3]}", way, _MS, [value])
    if output is not None:
        lines = [
            {**case._asdict(), "way": way, **figures._asdict()}
            for case, found in results.items()
            for way, figures in found.items()
        ]
        output.write_text(json.dumps(lines, indent=2) + "\n")
    console.print(create_latency_table(results, f"latency, broker {broker}, {seconds:g} s each"))
    if voids:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
