"""Measure the records a second of an application through TLS, beside plaintext on the same Kafka.

    python -m benchmarks.tls [--quick] [--rounds 3]

One Apache Kafka has a listener of each kind. The runs alternate, and each output is read back and
checked before a figure is printed. `make bench` ends with it.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.recorded import RATE, record
from benchmarks.runs import Input, Runs, Way
from tests.kafka.secured.access import describe_access
from tests.kafka.secured.server import SecuredKafka
from tests.kafka.server import missing

PLAINTEXT = "PLAINTEXT"
LISTENERS = (PLAINTEXT, "SSL", "SASL_SSL/SCRAM-SHA-512")
OPERATORS = ("map", "count")
KEYS, VALUE_BYTES, COMMIT_INTERVAL_MS = 10_000, 100, 100
RECORDS, RECORDS_QUICK = 1_000_000, 200_000

console = Console(width=110)


def measure_listeners(quick: bool, rounds: int) -> dict[tuple[str, str], float]:
    """Return the median records a second by operator and listener."""
    given = Input(RECORDS_QUICK if quick else RECORDS, KEYS, VALUE_BYTES)
    rates: dict[tuple[str, str], list[float]] = {}
    kafka = SecuredKafka()
    try:
        kafka.start()
        with tempfile.TemporaryDirectory(prefix="millrace-bench-") as directory:
            runs = Runs(kafka.listener_servers(PLAINTEXT), given, Path(directory))
            for _ in range(rounds):
                for operator in OPERATORS:
                    way = Way(operator, "exactly_once_v2", COMMIT_INTERVAL_MS)
                    for listener in LISTENERS:
                        connection = dict(describe_access(kafka, listener).settings)
                        servers = connection.pop("bootstrap.servers")
                        seconds = runs.run_millrace(way, servers=servers, connection=connection)
                        rates.setdefault((operator, listener), []).append(given.records / seconds)
    finally:
        kafka.close()
    for (operator, listener), found in rates.items():
        case = f"{operator}, {KEYS:,} keys, {VALUE_BYTES} bytes, {COMMIT_INTERVAL_MS} ms"
        record("tls", case, listener, RATE, found, baseline=listener == PLAINTEXT)
    return {case: statistics.median(found) for case, found in rates.items()}


def print_table(medians: dict[tuple[str, str], float]) -> None:
    """Print a line for each operator and listener, with the ratio to plaintext."""
    table = Table(title="records a second through TLS, exactly once, on Apache Kafka")
    for column in ("operator", "listener", "records/s", "of plaintext"):
        table.add_column(column, justify="right")
    for (operator, listener), rate in medians.items():
        ratio = rate / medians[operator, PLAINTEXT]
        table.add_row(operator, listener, f"{rate:,.0f}", f"{ratio:.2f}")
    console.print(table)


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="What CI runs.")] = False,
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.")] = 3,
) -> None:
    """Measure each listener of one Kafka, and print the table."""
    if reason := missing():
        console.print(f"TLS was not measured: {reason}")
        return
    print_table(measure_listeners(quick, rounds))


if __name__ == "__main__":
    typer.run(bench)
