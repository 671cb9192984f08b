"""Estimate what recording levels of metrics cost a whole application, by its parts.

The direct measurement compares runs of whole applications, which differ by more than the levels do.
Here what a level adds to the steps, a record, is divided by what the whole application takes for a
record. What comes by the second and not by the record is measured in a worker that has nothing to
do, and added: scrapes, and the statistics that librdkafka's clients tell.

Left out is that a scrape holds the interpreter, while the stream thread could work on another
processor: that takes time and no processor time.
"""

from __future__ import annotations

import http.client
import logging
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.recorded import record
from benchmarks.recording_levels import AIMS, Level
from benchmarks.runs import Input, Runs, broker_at, describe_operator
from streams import App
from streams.processes.running import RunningApp
from streams.runtime.clients.client_statistics import INTERVAL_MS

SCRAPE_INTERVAL_S = 15.0
"""The interval of ops/prometheus.yml."""
_STATISTICS_INTERVAL_MS = 100
_IDLE_S = 4.0
_SCRAPES = 50
_RECORDS = 10_000
_DONE_S = 60.0


@dataclass(frozen=True, slots=True)
class WorkerCosts:
    """Holds processor milliseconds of a worker: of one scrape, and of one round of statistics."""

    scrape_ms: float
    statistics_ms: float

    @property
    def ms_per_second(self) -> float:
        """Return the milliseconds a second of scrapes and statistics at their usual intervals."""
        return self.scrape_ms / SCRAPE_INTERVAL_S + self.statistics_ms * 1_000 / INTERVAL_MS


def measure_worker_costs() -> dict[Level, WorkerCosts]:
    """Measure what scrapes and clients' statistics cost a worker that counts, at each level."""
    # The input's producer chooses partitions as librdkafka does, of which a worker warns.
    logging.getLogger("streams").setLevel(logging.ERROR)
    costs: dict[Level, WorkerCosts] = {}
    with ExitStack() as exits:
        directory = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="millrace-bench-")))
        servers = exits.enter_context(broker_at("embedded", directory))
        runs = Runs(servers, Input(_RECORDS, _RECORDS, 100), directory)
        for level in AIMS:
            rare_ms, scrape_ms = _measure_idle_worker(runs, directory, level, INTERVAL_MS)
            often_ms, _ = _measure_idle_worker(runs, directory, level, _STATISTICS_INTERVAL_MS)
            rounds = 1_000 / _STATISTICS_INTERVAL_MS - 1_000 / INTERVAL_MS
            costs[level] = WorkerCosts(scrape_ms, max(often_ms - rare_ms, 0.0) / rounds)
            record("recording levels", "a scrape", level, "ms", [scrape_ms])
            record("recording levels", "statistics", level, "ms", [costs[level].statistics_ms])
        runs.clear()
    return costs


def _measure_idle_worker(
    runs: Runs, directory: Path, level: Level, statistics_interval_ms: int
) -> tuple[float, float]:
    """Return the milliseconds of a second, and of a scrape, of a worker that waits for input."""
    output = runs.create_topic(f"idle-{level}")
    often: Any = {"statistics.interval.ms": statistics_interval_ms}
    app = App(
        f"idle-{output}",
        bootstrap_servers=runs.servers,
        state_dir=directory / output,
        metrics_recording_level=cast(Any, level),
        metrics_port=0,
        consumer=often,
        producer=often,
    )
    describe_operator(app, "count", runs.input, output)
    with app.start() as running:
        deadline_s = time.monotonic() + _DONE_S
        while running.metrics()["records"] < _RECORDS:
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"not done after {_DONE_S:.0f} s: {running.metrics()}")
            time.sleep(0.02)
        return _measure_idle_second(), _measure_scrape(running)


def _measure_idle_second() -> float:
    """Return the processor milliseconds that this process takes in a second."""
    began_s, used_s = time.monotonic(), time.process_time()
    time.sleep(_IDLE_S)
    return 1_000 * (time.process_time() - used_s) / (time.monotonic() - began_s)


def _measure_scrape(running: RunningApp) -> float:
    """Return the processor milliseconds of one scrape, with those of who reads it."""
    port = running.ports["metrics_port"]
    took_ms = []
    for _ in range(_SCRAPES):
        used_s = time.process_time()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_DONE_S)
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        connection.close()
        took_ms.append(1_000 * (time.process_time() - used_s))
    return statistics.median(took_ms)


def estimate_ratio(added_ns: float, record_us: float, costs: WorkerCosts) -> float:
    """Return the processor time of a busy worker as a ratio to that of one without metrics."""
    return 1 + added_ns / 1_000 / record_us + costs.ms_per_second / 1_000


def print_estimates(
    record_us: Mapping[str, float],
    added_ns: Mapping[str, Mapping[Level, float]],
    costs: Mapping[Level, WorkerCosts],
) -> None:
    """Print the parts of the estimate, by operator and level, and the aims."""
    print()
    for level, each in costs.items():
        print(
            f"a worker at {level}: {each.scrape_ms:.1f} ms a scrape, {each.statistics_ms:.2f} ms a "
            f"round of its clients' statistics: {each.ms_per_second:.2f} ms a second, with one in "
            f"{SCRAPE_INTERVAL_S:.0f} s and one in {INTERVAL_MS // 1_000} s"
        )
    for operator, us in record_us.items():
        for level, aim in AIMS.items():
            added = added_ns[operator][level]
            ratio = estimate_ratio(added, us, costs[level])
            verdict = "within" if ratio <= aim else "ABOVE"
            print(
                f"{operator}, {level}, by its parts: {added:.0f} ns of {us:.2f} us a record, and "
                f"{costs[level].ms_per_second / 10:.2f} % of a second: {ratio:.3f}, "
                f"{verdict} {aim:.2f}"
            )
