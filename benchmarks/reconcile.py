"""Measure `millrace reconcile` of an application, as a user calls it, and how much it checks.

    python -m benchmarks.reconcile [--records 20000] [--rounds 3] [--cores 2]
    python -m benchmarks.reconcile --application order_pipeline --records 200000

`benchmarks.six_stores` has six kinds of state, `benchmarks.order_pipeline` joins of all kinds. It
processes the records on an embedded broker and stops. Then the command is
run in a process of its own, with a Spark on `--cores`. Counted are its seconds from start to exit,
and the processor time of all its processes: Python, the JVM and Spark's workers, the broker not.
The seconds of its parts are those of the lines of progress that it prints:

    start    the interpreter, the JVM and Spark's session, up to the cut
    cut      the consistent cut is taken
    plan     the expected rows are planned, and what has to be counted beforehand is
    compare  stores and topics are read, computed and compared
    end      the report, and the end of Spark
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks import recorded
from benchmarks.figures import SECONDS, all_cpu_s
from benchmarks.runs import broker_at
from streams import App
from streams.errors import ConfigError
from streams.spark import read_cut

APPLICATIONS = ("six_stores", "order_pipeline")
PARTITIONS = 2
WINDOW_MS = 600_000
"""The size of the applications' windows."""
ANSWER_S = 60.0
DRAINED_S = 300.0
RECONCILED_S = 900.0
SAMPLE_S = 0.25
PARTS = ("start", "cut", "plan", "compare", "end")
_TOOK = re.compile(r" in (\d+\.\d) s(?:: |$)")


def feed_records(application: ModuleType, servers: str, records: int) -> dict[str, int]:
    """Create the topics, and write the inputs; return how many records each of them has got."""
    admin = AdminClient({"bootstrap.servers": servers})
    names = dict.fromkeys([*application.INPUTS, *application.TABLES, *application.OUTPUTS])
    compacted = {"config": {"cleanup.policy": "compact"}}
    created = admin.create_topics(
        [
            NewTopic(each, PARTITIONS, **(compacted if each in application.TABLES else {}))
            for each in names
        ]
    )
    for answer in created.values():
        answer.result(ANSWER_S)
    producer = Producer(
        # By the partitioner of tables that are joined by a foreign key.
        {"bootstrap.servers": servers, "linger.ms": 50, "partitioner": "murmur2_random"}
    )
    now_ms = time.time_ns() // 1_000_000
    # Each run has the same windows.
    began_ms = (now_ms - records * application.STEP_MS) // WINDOW_MS * WINDOW_MS
    counts: dict[str, int] = application.feed_records(producer, records, began_ms)
    if left := producer.flush(ANSWER_S):
        raise RuntimeError(f"{left} of {records} records could not be written in {ANSWER_S:.0f} s")
    return counts


def process_records(app: App, servers: str, state: Path, counts: Mapping[str, int]) -> None:
    """Run the application until it has read everything, its own topics too, and stop it."""
    app.configure(None, bootstrap_servers=servers, state_dir=state)
    deadline_s = time.monotonic() + DRAINED_S
    with app.start():
        while not _is_drained(app, counts):
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"not all was processed after {DRAINED_S:.0f} s")
            time.sleep(0.5)


def _is_drained(app: App, counts: Mapping[str, int]) -> bool:
    """Return whether all records are read, and those of repartition topics that came of them."""
    try:
        cut = read_cut(app)
    except ConfigError:  # nothing is committed yet
        return False
    read: Counter[str] = Counter()
    for partition, at in cut.offsets.items():
        read[partition.topic] += at
    ends = cut.ends
    return (
        all(read[topic] >= counts[topic] for topic in app.topology().input_topics)
        and ends is not None
        # The last offset is that of a transaction's marker.
        and all(at >= ends[p] - 1 for p, at in cut.offsets.items() if p in ends)
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Holds what one run of the command took: seconds, by part too, and processor seconds."""

    seconds: float
    cpu_s: float
    parts: dict[str, float]
    lines: list[str]
    checked: str
    """The line of the report that says how much was checked."""
    load: float
    """The machine's load of the last minute when the run began."""


def run_reconciliation(application: ModuleType, servers: str, cores: int) -> Run:
    """Run `millrace reconcile` once. Raises RuntimeError unless all is as expected."""
    command = [sys.executable, "-m", "streams", "reconcile", f"{application.__name__}:app"]
    command += ["--bootstrap-servers", servers, "--master", f"local[{cores}]"]
    for name in application.UNCHECKED:
        command += ["--allow-unchecked", name]
    load, began_s = os.getloadavg()[0], time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        cpu_s = _CpuTime(running)
        assert running.stdout is not None
        assert running.stderr is not None
        told = [(time.monotonic() - began_s, line.rstrip()) for line in running.stderr]
        report = running.stdout.read()
        running.wait(RECONCILED_S)
    seconds = time.monotonic() - began_s
    lines = [line for _, line in told]
    if running.returncode:
        raise RuntimeError("\n".join([f"status {running.returncode}", *lines, report]))
    parts = split_into_parts(told, seconds)
    checked = next(line for line in report.splitlines() if line.startswith("Checked "))
    return Run(seconds, cpu_s.wait_for_total_s(), parts, lines, checked, load)


def split_into_parts(told: list[tuple[float, str]], seconds: float) -> dict[str, float]:
    """Split the seconds of a run by when it told of its cut, its plan and its last comparison."""
    cut_at, took_s = next((at, _took_s(line)) for at, line in told if line.startswith("cut of "))
    planned_at = next(at for at, line in told if line.startswith("expected rows planned "))
    compared_at = max(at for at, line in told if " compared in " in line)
    ends = [cut_at - took_s, cut_at, planned_at, compared_at, seconds]
    return dict(zip(PARTS, (b - a for a, b in zip([0.0, *ends], ends, strict=False)), strict=True))


def _took_s(line: str) -> float:
    """Return the seconds that a line of progress names."""
    found = _TOOK.search(line)
    if found is None:
        raise RuntimeError(f"a line of progress without its seconds: {line}")
    return float(found[1])


class _CpuTime:
    """Samples the processor time of a process and all that it started, until it ends.

    The JVM outlives its parent for a moment, so that nobody is told its time.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._seconds = 0.0
        self._thread = threading.Thread(target=self._sample_process, daemon=True)
        self._thread.start()

    def wait_for_total_s(self) -> float:
        """Return the processor time in seconds once the process has ended."""
        self._thread.join()
        return self._seconds

    def _sample_process(self) -> None:
        while self._process.poll() is None:
            self._seconds = max(self._seconds, all_cpu_s(self._process.pid))
            time.sleep(SAMPLE_S)


def main() -> None:
    """Process the records once, reconcile some times, and print and record the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--broker", default="embedded", help="embedded, or HOST:PORT")
    parser.add_argument("--lines", action="store_true", help="print what the command tells, too")
    parser.add_argument("--application", choices=APPLICATIONS, default=APPLICATIONS[0])
    given = parser.parse_args()
    application = import_module(f"benchmarks.{given.application}")
    with (
        tempfile.TemporaryDirectory() as name,
        broker_at(given.broker, Path(name)) as servers,
    ):
        counts = feed_records(application, servers, given.records)
        process_records(application.app, servers, Path(name) / "state", counts)
        runs = []
        for _ in range(given.rounds):
            runs.append(run_reconciliation(application, servers, given.cores))
            if given.lines:
                print("\n".join(runs[-1].lines))
    print_and_record(given.application, runs, given.records, given.cores)


def print_and_record(application: str, runs: list[Run], records: int, cores: int) -> None:
    """Print a line for each run with the machine's load then; record wall and processor time."""
    state = {"six_stores": "six kinds of state", "order_pipeline": "an order pipeline"}
    case = f"reconcile, {records} records, {state[application]}"
    table = Table(title=f"{case}, local[{cores}]")
    for heading in ("s", "s of processors", *PARTS, "load before"):
        table.add_column(heading, justify="right")
    for run in runs:
        parts = (f"{run.parts[part]:.1f}" for part in PARTS)
        table.add_row(f"{run.seconds:.1f}", f"{run.cpu_s:.1f}", *parts, f"{run.load:.1f}")
    Console().print(table)
    print(runs[-1].checked)
    print(f"median: {statistics.median(run.seconds for run in runs):.1f} s")
    recorded.record("reconcile", case, "ours", SECONDS, [run.seconds for run in runs])
    processors = [run.cpu_s for run in runs]
    recorded.record("reconcile", f"{case}, processors", "ours", SECONDS, processors)


if __name__ == "__main__":
    main()
