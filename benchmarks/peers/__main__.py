"""Measure Millrace beside Kafka Streams, and beside a hand-written loop where one makes sense.

    python -m benchmarks.peers [--broker embedded|kafka|host:port] [--only join,count]
                               [--ways loop,millrace] [--rounds 3] [--records 500000] [--quick]
                               [--guarantee at_least_once] [--commit-interval-ms 1000]
                               [--cache-max-bytes 0] [--workers 2]
                               [--output FILE]

Each run is a process of its own, and the ways take turns. Values have 100 bytes, topics 4
partitions; one stream thread, and exactly once v2 with a commit every 100 ms unless said otherwise.
Every update is written: Kafka Streams has no record cache, Millrace's stores have `caching=False`.
Their cache of committed values, which saves look-ups and holds no update back, is as by default;
`--cache-max-bytes 0` turns it off. The input is there before a process starts. From
outside it is sampled every 20 ms how much of the output is committed (its last stable offsets) and
how much processor time the process has used; what counts is the time from the commit that completes
the first quarter of the output to the last commit (with an internal topic, from the first commit of
input on: why is in `benchmarks.peers.samples`). So no start is within a figure. A JVM goes on
compiling for seconds: with few records, as with --quick, Kafka Streams' figures are those of a cold
JVM.
`kafka-streams-transactional` is Kafka Streams with `enable.transactional.statestores` (KIP-892),
which is off by default; it runs where there is a store.
Processor time is that of the application's processes alone, peak memory that of its whole life.
`--workers` processes run Millrace and share the partitions; their processor time is added up.
Kafka Streams runs in a JVM with its defaults. The loop that counts has its counts in a dict; at
each commit it writes those that have changed to a topic and to RocksDB, and never reads them back.

Each output is read back, committed records only: a run with a wrong number of records or a wrong
final value of a key is void, has no figures, and makes the exit status 1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.broker_rivals import create_rival
from benchmarks.peers.runs import PeerRuns
from benchmarks.peers.samples import VoidRun
from benchmarks.peers.table import Results, create_table
from benchmarks.peers.workloads import (
    CACHE_MAX_BYTES,
    COMMIT_INTERVAL_MS,
    EXACTLY_ONCE,
    GUARANTEES,
    WAYS,
    Workload,
    choose_ways,
    choose_workloads,
    create_workloads,
    plan_runs,
)
from tests.brokers import AddressedBroker

_RECORDS, _QUICK_RECORDS = 500_000, 100_000

console = Console(width=120)


def measure(
    runs: PeerRuns, workloads: list[Workload], rounds: int, chosen: Sequence[str]
) -> Results:
    """Run all workloads in those of their ways that are chosen, by turns."""
    results = Results()
    for workload in workloads:
        for way in plan_runs(workload, rounds, chosen):
            try:
                figures = runs.run(workload, way)
            except VoidRun as error:
                results.add_void(workload.name, way, str(error))
                console.print(f"void: {results.void[-1]}", markup=False)
                continue
            results.add(workload.name, way, figures)
            rate, cpu, peak = figures
            console.print(
                f"{workload.name}, {way}: {rate:,.0f} records/s, {cpu:.2f} CPU s a million, "
                f"{peak:,.0f} MB"
            )
    return results


def main(
    broker: Annotated[str, typer.Option(help="embedded, kafka, or host:port.")] = "embedded",
    only: Annotated[str, typer.Option(help="Parts of workloads' names, with commas.")] = "",
    ways: Annotated[str, typer.Option(help="Ways to run, with commas.")] = ",".join(WAYS),
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
    records: Annotated[int, typer.Option(help="Records of the left input.")] = _RECORDS,
    commit_interval_ms: Annotated[
        int, typer.Option("--commit-interval-ms", help="The interval of commits.")
    ] = COMMIT_INTERVAL_MS,
    guarantee: Annotated[
        str, typer.Option(help="exactly_once_v2 or at_least_once.")
    ] = EXACTLY_ONCE,
    cache_max_bytes: Annotated[
        int, typer.Option("--cache-max-bytes", help="Millrace's cache of committed values.")
    ] = CACHE_MAX_BYTES,
    workers: Annotated[int, typer.Option(help="Millrace's processes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="One round of few records.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the figures as JSON.")] = None,
) -> None:
    """Measure the workloads, and print all figures in a table."""
    if quick:
        rounds, records = 1, _QUICK_RECORDS
    try:
        workloads = choose_workloads(create_workloads(records), only)
        chosen = choose_ways(ways)
        if guarantee not in GUARANTEES:
            raise ValueError(f"no guarantee is named {guarantee!r}: {', '.join(GUARANTEES)}")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with ExitStack() as stack:
        is_address = broker not in ("embedded", "kafka")
        process = AddressedBroker(broker) if is_address else create_rival(broker, {})
        stack.callback(process.close)
        process.start()
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-"))
        runs = PeerRuns(
            process,
            Path(directory),
            commit_interval_ms=commit_interval_ms,
            guarantee=guarantee,
            cache_max_bytes=cache_max_bytes,
            workers=workers,
        )
        results = measure(runs, workloads, rounds, chosen)
    results.record()
    title = (
        f"{records:,} records, broker {broker}, {guarantee}, a commit every "
        f"{commit_interval_ms} ms, medians of {rounds} rounds"
    )
    if output is not None:
        results.write(output, title)
    console.print(create_table(results, title))
    if results.void:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
