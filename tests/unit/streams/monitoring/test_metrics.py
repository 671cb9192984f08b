"""Test what /metrics says of processing, restores and stores, and that its help says something."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from streams import App, Store, serdes
from streams.common.topic_partitions import Partition
from streams.monitoring.health import Health, RestoringStore, ThreadHealth
from streams.monitoring.metrics import COUNTER_HELP, WorkerCollector, render_prometheus_text
from streams.monitoring.store_sizes import StoreSize, measure_stores
from streams.runtime.counters import ThreadCounters
from streams.runtime.threads.measurements import ThreadMeasurements
from tests.unit.streams.runtime.world import World

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def report() -> Health:
    thread = ThreadHealth(
        name="thread 0",
        state="RUNNING",
        doing="",
        what="",
        seconds=0.0,
        record="",
        stuck=False,
        stack=(),
        tasks={"0_0": "RUNNING"},
        restoring=[RestoringStore("0_1", "counts", 1_200, 600.0, 2.0)],
        standby=[],
        last_commit_ms=1_000,
        trouble="",
        trouble_s=0.0,
        silent_s=0.0,
    )
    return Health("RUNNING", True, True, (), [thread])


@pytest.fixture
def lines() -> list[str]:
    """Return the lines of a worker that has something of everything."""
    measured = ThreadMeasurements(latencies_at_commit=False)
    measured.records_by_topic["orders"] = 7
    measured.seconds_by_task["2_1"] = 0.5
    measured.latency.observe(0.3)
    measured.lags[Partition("orders", 1)] = 4
    collector = WorkerCollector(
        report,
        lambda: {"thread 0": dict.fromkeys(COUNTER_HELP, 1)},
        lambda: 3_000,
        get_measurements=lambda: {"thread 0": measured},
        measure_stores=lambda: [StoreSize("0_0", "counts", 5, 4_096)],
        source_steps={"orders": "read-orders"},
    )
    return render_prometheus_text(collector).decode().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        'millrace_step_records_total{step="read-orders",thread="thread 0",topic="orders"} 7.0',
        'millrace_task_process_seconds_total{subtopology="2",task="2_1",thread="thread 0"} 0.5',
        'millrace_end_to_end_latency_seconds_bucket{le="0.25",thread="thread 0"} 0.0',
        'millrace_end_to_end_latency_seconds_bucket{le="0.5",thread="thread 0"} 1.0',
        'millrace_end_to_end_latency_seconds_count{thread="thread 0"} 1.0',
        'millrace_end_to_end_latency_seconds_sum{thread="thread 0"} 0.3',
        'millrace_consumer_lag{partition="1",thread="thread 0",topic="orders"} 4.0',
        'millrace_store_entries{store="counts",task="0_0"} 5.0',
        'millrace_store_disk_bytes{store="counts",task="0_0"} 4096.0',
        'millrace_restore_records_left{store="counts",task="0_1",thread="thread 0"} 1200.0',
        'millrace_restore_records_per_second{store="counts",task="0_1",thread="thread 0"} 600.0',
        'millrace_restore_seconds_left{store="counts",task="0_1",thread="thread 0"} 2.0',
    ],
)
def test_a_line_of_each_metric(line: str, lines: list[str]) -> None:
    assert line in lines


def test_each_counter_of_a_thread_has_a_help_text() -> None:
    counters = {each.name for each in fields(ThreadCounters)} | {"replaced_threads"}
    assert set(COUNTER_HELP) == counters


def test_a_help_text_says_more_than_the_name_does(lines: list[str]) -> None:
    helps = [line.removeprefix("# HELP ").split(" ", 1) for line in lines if "# HELP " in line]
    assert len(helps) > 30
    for name, text in helps:
        assert len(text.split()) >= 5, f"{name}: {text}"


def test_the_page_lists_each_metric_and_no_other(lines: list[str]) -> None:
    section = PAGE.read_text().partition("## Of a worker")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(millrace_\w+)` \|", section, re.MULTILINE))
    found = {line.split(" ")[2] for line in lines if line.startswith("# HELP ")}
    assert told == found


def test_stores_are_measured_on_disk_and_in_memory(tmp_path: Path) -> None:
    sizes: list[StoreSize] = []
    stores = {"disk": Store.persistent("c"), "memory": Store.in_memory("c")}
    for name, store in stores.items():
        app = App("a")
        app.stream("in", **TEXT).group_by_key().count(store=store)
        world = World(app.topology(), tmp_path / name)
        world.load("x", key="k")
        world.load("x", key="l")

        def look(world: World = world) -> bool:
            if not world.consumed():
                return False
            sizes.extend(measure_stores(world.loop.tasks.values(), world.directory.store_path))
            return True

        world.run_until(look)
        # When the loop has ended the stores are closed: there is nothing to measure.
        assert list(measure_stores(world.loop.tasks.values(), world.directory.store_path)) == []
    on_disk, in_memory = sizes
    assert (on_disk.task, on_disk.store) == ("0_0", "c")
    assert on_disk.entries == in_memory.entries == 2
    assert on_disk.disk_bytes > 0
    assert in_memory.disk_bytes == 0
