"""Measure the records a second of map and count, against a hand-written loop.

    python -m benchmarks.throughput [--quick] [--broker host:port] [--rounds 3]

Guarantees, commit intervals and sizes vary. Ours and the loop alternate in one process on one
broker; the ratio is of their medians. Every output is read back and checked before a figure is
printed. At the end the same runs through TLS, on Apache Kafka (`benchmarks.tls`). `--quick` is what
CI runs: one size of records, few intervals, one round. The whole takes half an hour.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import tls
from benchmarks.recorded import RATE, record
from benchmarks.runs import Input, Runs, Way, broker_at
from streams.settings.choices import ProcessingGuarantee

GUARANTEES: tuple[ProcessingGuarantee, ...] = ("exactly_once_v2", "at_least_once")
ROUNDS, QUICK_ROUNDS = 3, 1
INTERVALS_MS = (10, 100, 1_000, 10_000)
FEW_KEYS, MANY_KEYS = 10_000, 1_000_000
RECORDS = 1_000_000
"""Enough for a run to last some commits of a second."""

console = Console(width=110)


@dataclass(frozen=True)
class Figure:
    """Holds a line of the table: the median records a second of Millrace and of the loop."""

    operator: str
    keys: int
    value_bytes: int
    commit_interval_ms: int
    guarantee: str
    ours: int
    by_hand: int

    @property
    def ratio(self) -> float:
        """Return how many times as fast as the hand-written loop Millrace is."""
        return self.ours / self.by_hand


@dataclass(frozen=True)
class Part:
    """Describes an input, and the operators and commit intervals to measure on it."""

    given: Input
    operators: Sequence[str]
    intervals_ms: Sequence[int]


def plan_parts(quick: bool) -> list[Part]:
    """List the inputs, each with the operators and commit intervals to measure on it."""
    sizes, intervals = ((100,), (100,)) if quick else ((100, 1_000), INTERVALS_MS)
    found: list[Part] = []
    for value_bytes in sizes:
        few = Input(RECORDS, FEW_KEYS, value_bytes)
        many = Input(RECORDS, MANY_KEYS, value_bytes)
        found.append(Part(few, ("map", "count"), intervals))
        found.append(Part(many, ("count",), (1_000,) if quick else intervals))
    return found


def measure_part(runs: Runs, part: Part, rounds: int) -> list[Figure]:
    """Run Millrace and the loop by turns in each round, and return the medians."""
    ways = [
        Way(operator, guarantee, interval_ms)
        for operator in part.operators
        for interval_ms in part.intervals_ms
        for guarantee in GUARANTEES
    ]
    ours: dict[Way, list[float]] = {way: [] for way in ways}
    by_hand: dict[Way, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            by_hand[way].append(runs.run_by_hand(way))
            ours[way].append(runs.run_millrace(way))
    given = part.given
    for way in ways:
        case = (
            f"{way.operator}, {given.keys:,} keys, {given.value_bytes} bytes, "
            f"{way.commit_interval_ms:,} ms, {way.guarantee}"
        )
        record("throughput", case, "ours", RATE, [given.records / s for s in ours[way]])
        rates = [given.records / s for s in by_hand[way]]
        record("throughput", case, "by hand", RATE, rates, baseline=True)
    return [
        Figure(
            way.operator,
            given.keys,
            given.value_bytes,
            way.commit_interval_ms,
            way.guarantee,
            round(given.records / statistics.median(ours[way])),
            round(given.records / statistics.median(by_hand[way])),
        )
        for way in ways
    ]


def print_table(figures: Sequence[Figure]) -> None:
    """Print a line for each operator, input and interval, with both guarantees side by side."""
    table = Table(title="records a second, ours and by hand")
    for column in ("operator", "keys", "bytes", "commit, ms"):
        table.add_column(column, justify="right")
    for guarantee in ("exactly once", "at least once"):
        table.add_column(guarantee, justify="right")
        table.add_column("by hand", justify="right")
        table.add_column("ratio", justify="right")
    table.add_column("once / at least", justify="right")
    for once, least in zip(figures[::2], figures[1::2], strict=True):
        table.add_row(
            once.operator,
            f"{once.keys:,}",
            str(once.value_bytes),
            f"{once.commit_interval_ms:,}",
            *(f"{once.ours:,}", f"{once.by_hand:,}", f"{once.ratio:.2f}"),
            *(f"{least.ours:,}", f"{least.by_hand:,}", f"{least.ratio:.2f}"),
            f"{once.ours / least.ours:.2f}",
        )
    console.print(table)


def bench(
    broker: Annotated[str, typer.Option(help="embedded, or host:port.")] = "embedded",
    quick: Annotated[bool, typer.Option("--quick", help="What CI runs.")] = False,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds; the median counts. If not given: 3, with --quick 1.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the figures as JSON.")] = None,
) -> None:
    """Measure the throughput of all parts, and print it."""
    figures: list[Figure] = []
    if rounds is None:
        rounds = QUICK_ROUNDS if quick else ROUNDS
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = stack.enter_context(broker_at(broker, directory))
        for part in plan_parts(quick):
            runs = Runs(servers, part.given, directory)
            figures += measure_part(runs, part, rounds)
            runs.clear()
    print_table(figures)
    if output is not None:
        output.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
    tls.bench(quick, rounds)


if __name__ == "__main__":
    typer.run(bench)
