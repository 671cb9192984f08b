"""Compare the embedded broker with real Kafka: produce, fetch, transactions, start, memory.

    python -m benchmarks.broker [--quick] [--only embedded|kafka] [--log-mb 1000] [--rounds 3]

Both brokers run at the same time and are measured in turns, each measurement by a client process of
its own, so that client and broker share the machine as a user's would. A round that is not counted
comes first, for the JVM's compilers. Figures are medians over the rounds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.broker_load import VALUE, Load, command
from benchmarks.broker_rivals import (
    JVM_FLAGS,
    Rival,
    create_topic,
    delete_topic,
    end_offsets,
    measure_restart,
    resident_mb,
    run_brokers,
)
from benchmarks.figures import (
    CPU,
    KINDS,
    LATENCY,
    MEMORY,
    RATE,
    SECONDS,
    Figures,
    cpu_s,
    run_client,
    table,
)
from tests.kafka.server import missing

IDLE_S = 2.0
LOG_PARTITIONS = 4
RECORD_BYTES = 110  # of a record of 100 bytes in the log, about

console = Console(width=110)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Says how many records, transactions, megabytes and rounds are measured."""

    records: int
    transactions: int
    wide_transactions: int
    log_mb: int
    rounds: int


FULL = Size(records=1_000_000, transactions=1_000, wide_transactions=100, log_mb=1_000, rounds=3)
QUICK = Size(records=300_000, transactions=200, wide_transactions=20, log_mb=50, rounds=1)


def measure_throughput(brokers: Sequence[Rival], size: Size, figures: Figures) -> None:
    """Measure produce and fetch over 1 and 4 partitions, without counting the first round."""
    for number in range(size.rounds + 1):
        for partitions in (1, 4):
            for broker in brokers:
                topic = f"records-{partitions}-{number}"
                create_topic(broker, topic, partitions)
                for what in ("produce", "fetch"):
                    load = Load(
                        what=what,
                        servers=broker.bootstrap_servers,
                        topic=topic,
                        partitions=partitions,
                        count=size.records,
                    )
                    before_s = cpu_s(broker.pid)
                    rate = run_client(command(load))["records_per_s"]
                    used = (cpu_s(broker.pid) - before_s) * 1_000_000 / size.records
                    if number:
                        line = f"{what}, {_format_partitions(partitions)}"
                        figures.add(line, RATE, broker.kind, rate)
                        figures.add(f"{line}: broker's CPU", CPU, broker.kind, used)
                delete_topic(broker, topic)


def measure_transactions(brokers: Sequence[Rival], size: Size, figures: Figures) -> None:
    """Measure transactions, one after the other, over 1 and 100 partitions."""
    for partitions, count in ((1, size.transactions), (100, size.wide_transactions)):
        for number in range(size.rounds + 1):
            for broker in brokers:
                topic = f"transactions-{partitions}-{number}"
                create_topic(broker, topic, partitions)
                load = Load(
                    what="transactions",
                    servers=broker.bootstrap_servers,
                    topic=topic,
                    partitions=partitions,
                    count=count,
                )
                found = run_client(command(load))
                if number:
                    _add_transactions(figures, broker.kind, partitions, found)
                delete_topic(broker, topic)


def _add_transactions(
    figures: Figures, kind: str, partitions: int, found: dict[str, float]
) -> None:
    over = _format_partitions(partitions)
    figures.add(f"transactions, {over}", RATE, kind, found["transactions_per_s"])
    for what in ("commit", "transaction"):
        for share in ("p50", "p99"):
            line = f"{'whole ' * (what == 'transaction')}{what} {share}, {over}"
            figures.add(line, LATENCY, kind, found[f"{what}_{share}_ms"])


def measure_idle_memory(brokers: Sequence[Rival], figures: Figures) -> None:
    """Measure the memory of brokers that have just started."""
    time.sleep(IDLE_S)  # Both brokers finish what a start leaves to be done.
    for broker in brokers:
        figures.add("resident memory, idle", MEMORY, broker.kind, resident_mb(broker))


def measure_peak_memory(brokers: Sequence[Rival], figures: Figures) -> None:
    """Measure the highest memory of brokers that have been under load."""
    for broker in brokers:
        peak = resident_mb(broker, peak=True)
        figures.add("resident memory, highest under load", MEMORY, broker.kind, peak)


def measure_starts(brokers: Sequence[Rival], size: Size, figures: Figures) -> None:
    """Measure how long brokers with a full log take to start, after a stop and after kill -9."""
    expected = {}
    for broker in brokers:
        create_topic(broker, "log", LOG_PARTITIONS)
        load = Load(
            what="produce",
            servers=broker.bootstrap_servers,
            topic="log",
            partitions=LOG_PARTITIONS,
            count=size.log_mb * 1_000_000 // RECORD_BYTES,
        )
        run_client(command(load))
        expected[broker.kind] = end_offsets(broker, "log", LOG_PARTITIONS)
        broker.stop()
    for _ in range(size.rounds):
        for broker in brokers:  # Only the broker that is measured runs.
            seconds = measure_restart(broker, "log", expected[broker.kind])
            figures.add(f"start, {size.log_mb} MB, clean stop", SECONDS, broker.kind, seconds)
            broker.kill()
            seconds = measure_restart(broker, "log", expected[broker.kind])
            figures.add(f"start, {size.log_mb} MB, kill -9", SECONDS, broker.kind, seconds)
            broker.stop()


def _format_partitions(count: int) -> str:
    return f"{count} partition" + "s" * (count > 1)


def bench(
    quick: Annotated[bool, typer.Option(help="Little of everything, once: for CI.")] = False,
    only: Annotated[str, typer.Option(help="embedded or kafka; default both.")] = "",
    rounds: Annotated[int, typer.Option(help="Rounds; default 3, quick 1.")] = 0,
    log_mb: Annotated[int, typer.Option(help="Log to start on; default 1000, quick 50.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Write the medians as JSON.")] = None,
) -> None:
    """Run the comparison of the brokers and print its figures."""
    if only not in ("", *KINDS):
        raise typer.BadParameter(f"--only {only}: give embedded or kafka")
    base = QUICK if quick else FULL
    size = Size(
        records=base.records,
        transactions=base.transactions,
        wide_transactions=base.wide_transactions,
        log_mb=log_mb or base.log_mb,
        rounds=rounds or base.rounds,
    )
    kinds = (only,) if only else KINDS
    reason = missing() if "kafka" in kinds else None
    if reason:
        raise typer.BadParameter(f"{reason}; or give --only embedded")
    figures = Figures()
    with run_brokers(kinds) as brokers:
        measure_idle_memory(brokers, figures)
        measure_throughput(brokers, size, figures)
        measure_transactions(brokers, size, figures)
        measure_peak_memory(brokers, figures)
    with run_brokers(kinds) as brokers:
        measure_starts(brokers, size, figures)
    title = f"{size.records:,} records of {len(VALUE)} bytes, median of {size.rounds} rounds"
    console.print(table(figures, title))
    console.print(f"Kafka's JVM: {' '.join(JVM_FLAGS)}")
    figures.record("broker")
    if output is not None:
        figures.write(output)


if __name__ == "__main__":
    typer.run(bench)
