"""Measure what recording levels of metrics cost a whole application, in processor time.

Workers in processes of their own count and map the same input of an embedded broker: without
metrics, and at `info` and `debug`. The levels take turns in each round, and a ratio is of runs of
one round, side by side. Each output is read back and checked. Scrapes are not part of it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from benchmarks.recorded import record
from benchmarks.recording_levels import AIMS, LEVELS, Level
from benchmarks.runs import Input, Runs, broker_at

OPERATORS = ("map", "count")
_KEYS = 10_000
_VALUE_BYTES = 100
_RUN_S = 600.0

Took = Mapping[str, Mapping[Level, list[float]]]
"""By operator and level the processor seconds of each round."""


def measure_applications(records: int, rounds: int) -> Took:
    """Run each operator at each level in turns, and return the processor seconds of all runs."""
    took: dict[str, dict[Level, list[float]]] = {
        operator: {level: [] for level in LEVELS} for operator in OPERATORS
    }
    with ExitStack() as exits:
        directory = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = exits.enter_context(broker_at("embedded", directory))
        for number in range(rounds):
            runs = Runs(servers, Input(records, _KEYS, _VALUE_BYTES), directory)
            shift = number % len(LEVELS)
            for operator in OPERATORS:
                for level in (*LEVELS[shift:], *LEVELS[:shift]):
                    output = runs.create_topic(f"{operator}-{level}")
                    seconds = _run_worker(
                        *(servers, runs.input, output, operator, level),
                        *(str(records), str(directory / "state")),
                    )
                    runs.check_output(operator, output)
                    took[operator][level].append(seconds)
            runs.clear()
    for operator, by_level in took.items():
        for level, seconds_of_rounds in by_level.items():
            us = [1e6 * seconds / records for seconds in seconds_of_rounds]
            record("recording levels", operator, level, "us", us, baseline=level == "off")
    return took


def _run_worker(*arguments: str) -> float:
    """Run a worker in a process of its own, and return its processor seconds."""
    command = [sys.executable, "-m", "benchmarks.metered_worker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} has failed: {done.stderr[-2000:]}")
    return float(done.stdout.splitlines()[-1])


def find_ratio(took: Mapping[Level, list[float]], level: Level) -> tuple[float, float, float]:
    """Return the median, the smallest and the largest ratio to a run without metrics."""
    ratios = [with_it / off for with_it, off in zip(took[level], took["off"], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def find_record_us(took: Took, records: int) -> dict[str, float]:
    """Return by operator the microseconds for a record without metrics, the median of all runs."""
    return {
        operator: 1e6 * statistics.median(by_level["off"]) / records
        for operator, by_level in took.items()
    }


def print_applications(took: Took, records: int) -> None:
    """Print the processor time of each operator, the ratios of the levels, and the aims."""
    print(f"\n{'whole application':20} {'us a record':>12} {'info':>22} {'debug':>22}")
    for operator, by_level in took.items():
        cells = []
        for level in AIMS:
            median, least, most = find_ratio(by_level, level)
            cells.append(f"{median:.3f} ({least:.2f} to {most:.2f})")
        us = find_record_us(took, records)[operator]
        print(f"{operator:20} {us:12.2f} " + " ".join(f"{cell:>22}" for cell in cells))
    for operator, by_level in took.items():
        for level, aim in AIMS.items():
            ratio = find_ratio(by_level, level)[0]
            verdict = "within" if ratio <= aim else "ABOVE"
            print(f"{operator}, {level}: {ratio:.3f} of the processor time, {verdict} {aim:.2f}")
