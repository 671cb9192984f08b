"""Collect the figures of all runs, and print them as a table, the ways below each other."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from benchmarks.figures import CPU, MEMORY, RATE
from benchmarks.peers.samples import PeerFigures
from benchmarks.peers.workloads import KAFKA_STREAMS, MILLRACE, WAYS
from benchmarks.recorded import describe_run, record
from tests.kafka.versions import YARDSTICK

_UNITS = (RATE, CPU, MEMORY)


@dataclass(slots=True)
class Results:
    """Holds the figures of each workload by way, in the order of measuring, and what was void."""

    figures: dict[str, dict[str, list[PeerFigures]]] = field(default_factory=dict)
    void: list[str] = field(default_factory=list)

    def add(self, workload: str, way: str, figures: PeerFigures) -> None:
        """Add the figures of a run."""
        self.figures.setdefault(workload, {}).setdefault(way, []).append(figures)

    def add_void(self, workload: str, way: str, reason: str) -> None:
        """Add a run that has no figures, so that its workload shows that it is void."""
        self.figures.setdefault(workload, {}).setdefault(way, [])
        self.void.append(f"{workload}, {way}: {reason}")

    def medians(self, workload: str) -> dict[str, PeerFigures]:
        """Return the medians of the ways of a workload that have figures."""
        return {
            way: PeerFigures(*map(statistics.median, zip(*runs, strict=True)))
            for way, runs in self.figures[workload].items()
            if runs
        }

    def record(self) -> None:
        """Record each value for `benchmarks.report`, with Kafka Streams as the baseline."""
        for workload, ways in self.figures.items():
            for way, runs in ways.items():
                for unit, values in zip(_UNITS, zip(*runs, strict=True), strict=bool(runs)):
                    record("peers", workload, way, unit, values, baseline=way == KAFKA_STREAMS)

    def write(self, path: Path, title: str) -> None:
        """Write the medians as JSON, with how many runs they are of, and where they were measured.

        `title` says what was measured; `benchmarks.peers.readme` makes README's table of it.
        """
        lines = [
            {
                "workload": workload,
                "way": way,
                **figures._asdict(),
                "runs": len(self.figures[workload][way]),
            }
            for workload in self.figures
            for way, figures in self.medians(workload).items()
        ]
        run = describe_run("peers")
        measured_on = {
            "title": title,
            "kafka": YARDSTICK,
            "commit": run["commit"],
            "day": run["at"][:10],
        }
        measured_on |= {"cpu": run["cpu"], "cores": run["cores"]}
        path.write_text(json.dumps({**measured_on, "figures": lines}, indent=2) + "\n")


def create_table(results: Results, title: str) -> Table:
    """Create a table of the medians, with the ratios of Millrace's figures to the others'."""
    table = Table(title=title)
    for column in ("workload", "way"):
        table.add_column(column, no_wrap=True)
    for column in ("thousand/s", "CPU s/million", "peak MB", "rate, ours/its", "CPU, ours/its"):
        table.add_column(column, justify="right")
    for workload, ways in results.figures.items():
        medians = results.medians(workload)
        for way in (each for each in WAYS if each in ways):
            table.add_row(workload, way, *_format_figures(medians, way))
        table.add_section()
    return table


def _format_figures(medians: Mapping[str, PeerFigures], way: str) -> tuple[str, ...]:
    if way not in medians:
        return ("void",)
    rate, cpu, peak = medians[way]
    cells = (f"{rate / 1_000:,.1f}", f"{cpu:,.2f}", f"{peak:,.0f}")
    if way == MILLRACE or MILLRACE not in medians:
        return cells
    ours = medians[MILLRACE]
    # Processor time is counted in hundredths of a second: a short run may have taken none.
    cpu_ratio = f"{ours.cpu_s_per_million / cpu:.2f}" if cpu else ""
    return (*cells, f"{ours.records_per_s / rate:.2f}", cpu_ratio)
