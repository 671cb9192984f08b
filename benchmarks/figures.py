"""Run client processes for the benchmarks of the broker, and collect their figures in a table."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from benchmarks import recorded

KINDS = ("embedded", "kafka")
RATE = recorded.RATE
LATENCY, SECONDS, MEMORY, KILOBYTES = "ms", "s", "MB", "kB"
CPU, CPU_EACH = "s a million", "us"
LOAD_TIMEOUT_S = 600.0


@dataclass(slots=True)
class Figures:
    """Holds measured values by line of the table and by broker, in the order of measuring."""

    values: dict[tuple[str, str], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, line: str, unit: str, kind: str, value: float) -> None:
        """Add a value of one broker to a line of the table."""
        self.values[line, unit][kind].append(value)

    def medians(self) -> Iterator[tuple[str, str, dict[str, float]]]:
        """Yield each line of the table with its unit and the median of each broker."""
        for (line, unit), found in self.values.items():
            yield line, unit, {kind: statistics.median(each) for kind, each in found.items()}

    def record(self, bench: str) -> None:
        """Record each value for `benchmarks.report`, with Kafka as the baseline."""
        for (line, unit), found in self.values.items():
            for kind, values in found.items():
                recorded.record(bench, line, kind, unit, values, baseline=kind == "kafka")

    def write(self, path: Path) -> None:
        """Write the medians as JSON."""
        lines = [{"line": a, "unit": b, **medians} for a, b, medians in self.medians()]
        path.write_text(json.dumps(lines, indent=2) + "\n")


def run_client(command: Sequence[str]) -> dict[str, float]:
    """Run a client process and return the figures it prints. Raises RuntimeError if it fails."""
    done = subprocess.run(
        list(command), capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stderr[-2_000:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def cpu_s(pid: int) -> float:
    """Return the processor time in seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_cpu_s(pid: int) -> float:
    """Return the processor time of a process and of all processes that it has started."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for found in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # The process may just have ended.
            fields = (found / "stat").read_text().rpartition(")")[2].split()
            ticks[int(found.name)] = sum(map(int, fields[11:15]))
            children[int(fields[1])].append(int(found.name))
    total, left = 0, [pid]
    while left:
        each = left.pop()
        total += ticks.get(each, 0)
        left += children[each]
    return total / os.sysconf("SC_CLK_TCK")


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile: the value that the given share of the ordered values does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(figures: Figures, title: str) -> Table:
    """Create a table of the medians, with the factor by which the embedded broker is better.

    More a second is better, less of all other units.
    """
    figures_table = Table(title=title)
    for column in ("", "unit", *KINDS, "better by"):
        figures_table.add_column(column, justify="left" if column in ("", "unit") else "right")
    for line, unit, medians in figures.medians():
        cells = [_format_value(medians[kind], unit) if kind in medians else "" for kind in KINDS]
        figures_table.add_row(line, unit, *cells, _format_ratio(medians, unit))
    return figures_table


def _format_ratio(medians: dict[str, float], unit: str) -> str:
    # Processor time is counted in hundredths of a second: a short run may have taken none.
    if len(medians) < len(KINDS) or not all(medians.values()):
        return ""
    ours, theirs = (medians[kind] for kind in KINDS)
    return f"{ours / theirs if unit == RATE else theirs / ours:.2f} x"


def _format_value(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit in (RATE, MEMORY) else f"{value:,.2f}"
