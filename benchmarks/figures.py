"""What the benchmarks of the broker share: client processes, figures by broker, and their table."""

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
LATENCY, SECONDS, MEMORY = "ms", "s", "MB"
CPU, CPU_EACH = "s a million", "us"
LOAD_TIMEOUT_S = 600.0


@dataclass(slots=True)
class Figures:
    """What was measured, by line of the table and broker; lines in the order of their coming."""

    values: dict[tuple[str, str], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, line: str, unit: str, kind: str, value: float) -> None:
        self.values[line, unit][kind].append(value)

    def medians(self) -> Iterator[tuple[str, str, dict[str, float]]]:
        for (line, unit), found in self.values.items():
            yield line, unit, {kind: statistics.median(each) for kind, each in found.items()}

    def record(self, bench: str) -> None:
        """Each value, for `benchmarks.report`: Kafka is what we are measured against."""
        for (line, unit), found in self.values.items():
            for kind, values in found.items():
                recorded.record(bench, line, kind, unit, values, baseline=kind == "kafka")

    def write(self, path: Path) -> None:
        """The medians as JSON."""
        lines = [{"line": a, "unit": b, **medians} for a, b, medians in self.medians()]
        path.write_text(json.dumps(lines, indent=2) + "\n")


def measured(command: Sequence[str]) -> dict[str, float]:
    """The figures of one client process. RuntimeError with what it said if it failed."""
    done = subprocess.run(
        list(command), capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stderr[-2_000:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def cpu_s(pid: int) -> float:
    """Processor time of a process so far: what else the machine does hardly counts in it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_cpu_s(pid: int) -> float:
    """The same of a process and of all that it has started, those that have ended included."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for found in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            fields = (found / "stat").read_text().rpartition(")")[2].split()
            ticks[int(found.name)] = sum(map(int, fields[11:15]))
            children[int(fields[1])].append(int(found.name))
    total, left = 0, [pid]
    while left:
        each = left.pop()
        total += ticks.get(each, 0)
        left += children[each]
    return total / os.sysconf("SC_CLK_TCK")


def at(ordered: Sequence[float], share: float) -> float:
    """The value that this share of the values, in ascending order, does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(figures: Figures, title: str) -> Table:
    """Values, and how many times better the embedded broker is: more a second, less of the rest."""
    made = Table(title=title)
    for column in ("", "unit", *KINDS, "better by"):
        made.add_column(column, justify="left" if column in ("", "unit") else "right")
    for line, unit, medians in figures.medians():
        cells = [_written(medians[kind], unit) if kind in medians else "" for kind in KINDS]
        made.add_row(line, unit, *cells, _ratio(medians, unit))
    return made


def _ratio(medians: dict[str, float], unit: str) -> str:
    # Processor time is counted in hundredths of a second: a short run may have taken none.
    if len(medians) < len(KINDS) or not all(medians.values()):
        return ""
    ours, theirs = (medians[kind] for kind in KINDS)
    return f"{ours / theirs if unit == RATE else theirs / ours:.2f} x"


def _written(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit in (RATE, MEMORY) else f"{value:,.2f}"
