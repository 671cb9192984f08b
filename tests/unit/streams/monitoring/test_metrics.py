"""Test what /metrics says of processing, restores and stores, and that its help says something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from state.cache import StoreCache
from state.memory import MemoryDisk
from streams import App, Store, serdes
from streams.common.topic_partitions import Partition
from streams.graph.nodes import StoreKind, StoreSpec
from streams.graph.step_measurements import StepMeasurements
from streams.monitoring.database_figures import DatabaseFigureReader, DatabaseFigures
from streams.monitoring.definitions.catalog import all_definitions
from streams.monitoring.definitions.rocksdb import (
    IN_MEMORY_METRIC,
    ROCKSDB_PROPERTIES,
    ROCKSDB_STATISTICS,
    name_state_label,
)
from streams.monitoring.definitions.worker import COUNTER_HELP
from streams.monitoring.health import Health, RestoringStore, ThreadHealth
from streams.monitoring.kafka_streams_figures import StreamsClient
from streams.monitoring.metrics import WorkerCollector, render_prometheus_text
from streams.monitoring.state_disk import StateDiskSpace
from streams.monitoring.store_operation_figures import read_store_operation_figures
from streams.monitoring.store_sizes import (
    StoreSize,
    measure_store_sizes,
)
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.metered_stores import StoreMeter, meter_store
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.runtime.threads.recent_events import RecentEvents
from streams.runtime.threads.source_measurements import SourceMeasurements
from streams.runtime.threads.timings import TaskTimings, ThreadTimings
from tests.unit.streams.monitoring.client_texts import make_statistics, tell
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.world import World

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"
THREAD_ID = 'thread_id="a-1-StreamThread-1"'
TASKS = "kafka_streams_stream_task_metrics"
NODES = "kafka_streams_stream_processor_node_metrics"
STORES = "kafka_streams_stream_state_metrics"
CONSUMED = "kafka_streams_stream_topic_metrics_records_consumed_total"
TOPICS = "kafka_streams_stream_topic_metrics"
CACHES = "kafka_streams_stream_record_cache_metrics"
OF_TASK = f'task_id="2_1",{THREAD_ID}'
COUNT = 'processor_node_id="count"'
CLIENT = 'application_id="a",client_id="a-1",process_id="1"'
BUFFER = 'in_memory_suppression_state_id="a-buffer"'
READER = 'processor_node_id="read-orders"'
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


SPECS = [
    StoreSpec(
        name=f"a-{kind}",
        key=serdes.string,
        value=serdes.string,
        kind=kind,
        window_size_ms=10 if kind is StoreKind.WINDOW else None,
    )
    for kind in StoreKind
]
"""A store of each kind."""


class HeldStores:
    """Stands in for a task's stores: one with a changelog, and a cache."""

    def __init__(self) -> None:
        self.cache = StoreCache()
        self.cache.choose_caching_by_use(4, 1, is_full=False)
        self.cache.choose_caching_by_use(4, 3, is_full=False)
        self.cache.bytes = 900
        self.logged = {"c": SimpleNamespace(restored_records=8)}
        self.iterators: list[Iterator[str]] = []
        self.meters = {spec.name: self._meter(spec) for spec in SPECS}

    def _meter(self, spec: StoreSpec) -> StoreMeter:
        """Let a store of a kind do each operation that it has for half a second."""
        store = open_store(spec, MemoryDisk())
        meter = meter_store(store, spec.kind, Clock(), details=True)
        for timing in meter.timings.values():
            timing.observe(0.5, 0.0)
        if spec.kind is not StoreKind.BUFFER:
            self.iterators.append(meter.iterators.track_iterator_while_open(iter("ab")))
            next(self.iterators[-1])
        meter.add_calls_to_timings()
        meter.observe_buffer()
        return meter

    def all_stores(self) -> dict[str, Any]:
        return {spec.name: SimpleNamespace(uncommitted_bytes=70) for spec in SPECS}

    def list_caches(self) -> dict[str, StoreCache]:
        return {"c": self.cache}


class HeldTask:
    """Stands in for a task that processes."""

    state = TaskState.RUNNING

    def __init__(self, clock: Clock, name: str = "2_1") -> None:
        self.name = name
        sink = StepMeasurements(lambda: 3_000, clock.monotonic_s)
        sink.observe_latency(1_000)
        written = sink.get_or_add_topic_counts("out")
        for written.records in (1, 2):
            written.measure_last_record(b"k" * 10, b"v" * 20, None)
        suppression = StepMeasurements(lambda: 3_000, clock.monotonic_s)
        suppression.enable_suppression_timing()
        suppression.emitted_count = 1
        suppression.request_next_measurement()
        windows = StepMeasurements(lambda: 3_000, clock.monotonic_s)
        windows.create_final_emit_recorder()(clock.monotonic_s() - 0.5, 6)
        self.step_measurements = {"write": sink, "wait": suppression, "count": windows}
        self.buffer = SimpleNamespace(count_records=lambda: 11)
        self.stores = HeldStores()
        self.store_specs = {spec.name: spec for spec in SPECS}


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
    clock = Clock()
    queries = QueryMeasurements()
    queries.observe_request(200, 0.3)
    queries.running = 2
    queries.functions_overdue["top"] = 1
    queries.refused["reads"] = 3
    measured = ThreadMeasurements(latencies_at_commit=False, host=clock)
    measured.records_by_task["2_1"] = 7
    measured.timings.process.observe(0.25, clock.monotonic_s())
    measured.timings.process_records.observe(7, clock.monotonic_s())
    measured.timings.add_poll(clock.monotonic_s() - 0.5, 9)
    measured.timings.commit.observe_since(clock.monotonic_s() - 0.125)
    measured.timings.punctuate.observe_since(clock.monotonic_s() - 0.2)
    for task, topic, records in (
        ("2_0", "orders", 3),
        ("2_1", "orders", 4),
        ("2_1", "old-orders", 5),
    ):
        source = measured.sources[task, topic] = SourceMeasurements(topic, clock.monotonic_s)
        source.records = records
    measured.seconds_by_task["2_1"] = 0.5
    for task, seconds in (("2_0", 0.25), ("2_1", 0.75)):
        timings = measured.timings_by_task[task] = TaskTimings(clock.monotonic_s)
        timings.add_slice(seconds, 60)
        timings.observe_slices(ThreadTimings(clock.monotonic_s))
        timings.add_dropped(3)
    source = measured.sources["2_1", "orders"]
    source.bytes = 500
    source.latency.observe(0.4, clock.monotonic_s())
    measured.timings_by_task["2_1"].note_enforced(3)
    measured.lifetimes.note_created()
    measured.latency.observe(0.3)
    measured.lags[Partition("orders", 1)] = 4
    later = Clock()
    measured.events = RecentEvents(later.monotonic_s)
    later.advance_monotonic_clock(100)
    measured.events.note_new_events(ThreadCounters(rebalances=1, recoveries=1))
    later.advance_monotonic_clock(7)
    collector = WorkerCollector(
        report,
        lambda: {"thread 0": dict.fromkeys(COUNTER_HELP, 1)},
        lambda: 3_000,
        get_measurements=lambda: {"thread 0": measured},
        measure_store_sizes=lambda: [StoreSize("0_0", "counts", 5, 4_096)],
        read_database_figures=lambda: (
            [
                DatabaseFigures(
                    *("thread 0", "0_0", kind, name_state_label(kind, persistent=True)),
                    dict.fromkeys((*ROCKSDB_PROPERTIES, *ROCKSDB_STATISTICS), 3),
                )
                for kind in StoreKind
            ]
            + [
                DatabaseFigures(
                    "thread 0",
                    "0_0",
                    "m",
                    name_state_label(StoreKind.KEY_VALUE, persistent=False),
                    {IN_MEMORY_METRIC: 6},
                )
            ]
            + list(read_store_operation_figures({"thread 0": [cast("Task", HeldTask(clock))]}))
        ),
        source_steps={"orders": "read-orders", "old-orders": "read-orders"},
        client=StreamsClient("a-1", "a", "1"),
        get_tasks=lambda: {
            "thread 0": [cast("Task", HeldTask(clock)), cast("Task", HeldTask(clock, "3_0"))]
        },
        read_client_statistics=lambda: [
            *tell(make_statistics("consumer")),
            *tell(make_statistics("producer")),
        ],
        queries=queries,
        commit_interval_s=0.1,
        read_disk_space=lambda: StateDiskSpace(70, 100),
    )
    return render_prometheus_text(collector).decode().splitlines()


@pytest.mark.parametrize(
    "line",
    [
        'millrace_step_records_total{step="read-orders",thread="thread 0",topic="orders"} 7.0',
        'millrace_task_process_seconds_total{subtopology="2",task="2_1",thread="thread 0"} 0.5',
        'millrace_query_latency_seconds_count{status="200"} 1.0',
        'millrace_query_latency_seconds_sum{status="200"} 0.3',
        "millrace_query_requests_running 2.0",
        'millrace_query_requests_refused_total{limit="reads"} 3.0',
        'millrace_query_requests_refused_total{limit="requests"} 0.0',
        'millrace_query_requests_refused_total{limit="connections"} 0.0',
        'millrace_query_functions_overdue{query="top"} 1.0',
        "millrace_worker_commit_interval_seconds 0.1",
        "millrace_state_disk_free_bytes 70.0",
        "millrace_state_disk_total_bytes 100.0",
        'millrace_thread_rebalance_age_seconds{thread="thread 0"} 7.0',
        'millrace_thread_recovery_age_seconds{thread="thread 0"} 7.0',
        'millrace_end_to_end_latency_seconds_bucket{le="0.25",thread="thread 0"} 0.0',
        'millrace_end_to_end_latency_seconds_bucket{le="0.5",thread="thread 0"} 1.0',
        'millrace_end_to_end_latency_seconds_count{thread="thread 0"} 1.0',
        'millrace_end_to_end_latency_seconds_sum{thread="thread 0"} 0.3',
        'millrace_consumer_lag{partition="1",thread="thread 0",topic="orders"} 4.0',
        'millrace_store_entries{store="counts",task="0_0"} 5.0',
        'millrace_store_disk_bytes{store="counts",task="0_0"} 4096.0',
        f"kafka_streams_stream_thread_metrics_commit_latency_avg{{{THREAD_ID}}} 125.0",
        f"kafka_streams_stream_thread_metrics_poll_latency_max{{{THREAD_ID}}} 500.0",
        f"kafka_streams_stream_thread_metrics_poll_records_avg{{{THREAD_ID}}} 9.0",
        f"kafka_streams_stream_thread_metrics_process_total{{{THREAD_ID}}} 7.0",
        f"kafka_streams_stream_thread_metrics_punctuate_total{{{THREAD_ID}}} 1.0",
        f'kafka_streams_stream_task_metrics_process_total{{task_id="2_1",{THREAD_ID}}} 7.0',
        f'{TASKS}_process_latency_avg{{task_id="2_1",{THREAD_ID}}} 750.0',
        f'{TASKS}_process_rate{{task_id="2_1",{THREAD_ID}}} 2.0',
        f'{TASKS}_active_process_ratio{{task_id="2_0",{THREAD_ID}}} 0.25',
        f'{TASKS}_active_process_ratio{{task_id="2_1",{THREAD_ID}}} 0.75',
        f'{TASKS}_dropped_records_rate{{task_id="2_1",{THREAD_ID}}} 0.1',
        f'{TASKS}_dropped_records_total{{task_id="2_1",{THREAD_ID}}} 3.0',
        f'{TASKS}_restore_remaining_records_total{{task_id="0_1",{THREAD_ID}}} 1200.0',
        f'{CONSUMED}{{{READER},task_id="2_0",{THREAD_ID},topic="orders"}} 3.0',
        f'{CONSUMED}{{{READER},task_id="2_1",{THREAD_ID},topic="orders"}} 4.0',
        f'{NODES}_process_total{{{READER},task_id="2_1",{THREAD_ID}}} 9.0',
        f'{NODES}_process_rate{{{READER},task_id="2_1",{THREAD_ID}}} 2.0',
        f'{NODES}_record_e2e_latency_max{{{READER},task_id="2_1",{THREAD_ID}}} 400.0',
        f'{NODES}_record_e2e_latency_min{{processor_node_id="write",{OF_TASK}}} 2000.0',
        f'{NODES}_suppression_emit_total{{processor_node_id="wait",{OF_TASK}}} 1.0',
        f"{NODES}_window_aggregate_final_emit_latency_avg{{{COUNT},{OF_TASK}}} 500.0",
        f"{NODES}_window_aggregate_final_emit_rate{{{COUNT},{OF_TASK}}} 0.2",
        f"{NODES}_window_aggregate_final_emit_total{{{COUNT},{OF_TASK}}} 6.0",
        f'{TOPICS}_bytes_consumed_total{{{READER},{OF_TASK},topic="orders"}} 500.0',
        f'{TOPICS}_records_produced_total{{processor_node_id="write",{OF_TASK},topic="out"}} 2.0',
        f'{TOPICS}_bytes_produced_total{{processor_node_id="write",{OF_TASK},topic="out"}} 106.0',
        f"{TASKS}_enforced_processing_total{{{OF_TASK}}} 3.0",
        f"{TASKS}_active_buffer_count{{{OF_TASK}}} 11.0",
        f"{TASKS}_cache_size_bytes_total{{{OF_TASK}}} 900.0",
        f"{TASKS}_restore_total{{{OF_TASK}}} 8.0",
        f'{TASKS}_restore_rate{{task_id="0_1",{THREAD_ID}}} 600.0',
        f'{CACHES}_hit_ratio_avg{{record_cache_id="c",{OF_TASK}}} 0.5',
        f'{CACHES}_hit_ratio_max{{record_cache_id="c",{OF_TASK}}} 0.75',
        f"kafka_streams_stream_thread_metrics_task_created_total{{{THREAD_ID}}} 1.0",
        f"kafka_streams_stream_thread_metrics_blocked_time_ns_total{{{THREAD_ID}}} 6.25e+08",
        f'kafka_streams_stream_thread_metrics_thread_state{{process_id="1",{THREAD_ID}}} 4.0',
        f"kafka_streams_stream_state_updater_metrics_idle_ratio{{{THREAD_ID}}} 1.0",
        f"kafka_streams_stream_metrics_client_state{{{CLIENT}}} 2.0",
        f'{STORES}_put_rate{{rocksdb_window_state_id="a-window",{OF_TASK}}} 0.03333333333333333',
        f'{STORES}_get_latency_avg{{rocksdb_state_id="a-key-value",{OF_TASK}}} 5e+08',
        f'{STORES}_uncommitted_bytes{{rocksdb_state_id="a-versioned",{OF_TASK}}} 70.0',
        f"{STORES}_suppression_buffer_count_max{{{BUFFER},{OF_TASK}}} 0.0",
        f'{STORES}_num_open_iterators{{rocksdb_session_state_id="a-session",{OF_TASK}}} 1.0',
        f'{STORES}_num_keys{{in_memory_state_id="m",task_id="0_0",{THREAD_ID}}} 6.0',
        'kafka_streams_stream_metrics{client_id="a-1",state="RUNNING"} 1.0',
        'kafka_streams_stream_metrics{alive_stream_threads="1",client_id="a-1"} 1.0',
        'kafka_streams_stream_metrics{client_id="a-1",failed_stream_threads="1"} 1.0',
        'millrace_restore_records_left{store="counts",task="0_1",thread="thread 0"} 1200.0',
        'millrace_restore_records_per_second{store="counts",task="0_1",thread="thread 0"} 600.0',
        'millrace_restore_seconds_left{store="counts",task="0_1",thread="thread 0"} 2.0',
    ],
)
def test_a_line_of_each_metric(line: str, lines: list[str]) -> None:
    assert line in lines


def test_a_task_without_a_record_has_spent_no_time(lines: list[str]) -> None:
    """An average over tasks would leave it out otherwise, and no task be busier than that."""
    task = 'subtopology="3",task="3_0",thread="thread 0"'
    assert f"millrace_task_process_seconds_total{{{task}}} 0.0" in lines


def test_each_counter_of_a_thread_has_a_help_text() -> None:
    counters = {each.name for each in fields(ThreadCounters)} | {"replaced_threads"}
    assert set(COUNTER_HELP) == counters


def test_a_help_text_says_more_than_the_name_does(lines: list[str]) -> None:
    helps = [line.removeprefix("# HELP ").split(" ", 1) for line in lines if "# HELP " in line]
    assert len(helps) > 30
    for name, text in helps:
        assert len(text.split()) >= 5, f"{name}: {text}"


def test_each_figure_is_defined_and_each_definition_is_shown(lines: list[str]) -> None:
    types = [line.split(" ")[2:] for line in lines if line.startswith("# TYPE ")]
    assert sorted(types) == sorted([each.name, each.kind] for each in all_definitions())


def test_figures_of_a_level_that_is_not_recorded_are_left_out() -> None:
    collector = WorkerCollector(
        report,
        dict,
        lambda: 3_000,
        client=StreamsClient("a-1", "a", "1"),
        read_database_figures=lambda: [
            DatabaseFigures(
                *("thread 0", "0_0", "s", name_state_label(StoreKind.KEY_VALUE, persistent=True)),
                {"estimate-num-keys": 1, "bytes-written-rate": 2},
            )
        ],
        records_level=lambda level: level == "info",
    )
    text = render_prometheus_text(collector).decode()
    assert f"{STORES}_estimate_num_keys" in text
    assert f"{STORES}_bytes_written_rate" not in text


def test_each_definition_has_a_name_of_its_own() -> None:
    names = [each.name for each in all_definitions()]
    assert len(names) == len(set(names))


def test_what_the_public_dashboard_for_rocksdb_queries_has_its_labels(lines: list[str]) -> None:
    """Those of its queries that are properties; statistics are not recorded."""
    for metric in (
        "background_errors",
        "block_cache_capacity",
        "block_cache_usage",
        "compaction_pending",
        "cur_size_active_mem_table",
        "estimate_num_keys",
        "estimate_pending_compaction_bytes",
        "live_sst_files_size",
        "mem_table_flush_pending",
        "num_immutable_mem_table",
        "size_all_mem_tables",
        "total_sst_files_size",
    ):
        for label in ('state_id="key-value"', 'window_state_id="window"'):
            labels = f'rocksdb_{label},task_id="0_0",{THREAD_ID}'
            assert f"kafka_streams_stream_state_metrics_{metric}{{{labels}}} 3.0" in lines


def test_the_page_lists_each_metric_and_no_other(lines: list[str]) -> None:
    section = PAGE.read_text().partition("## Of a worker")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(millrace_\w+)` \|", section, re.MULTILINE))
    found = {line.split(" ")[2] for line in lines if line.startswith("# HELP millrace_")}
    assert told == found


def test_stores_are_measured_on_disk_and_in_memory(tmp_path: Path) -> None:
    sizes: list[StoreSize] = []
    properties: list[DatabaseFigures] = []
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
            sizes.extend(
                measure_store_sizes(world.loop.tasks.values(), world.directory.build_store_path)
            )
            reader = DatabaseFigureReader(world.directory.build_store_path, world.clock.monotonic_s)
            properties.extend(reader.read_figures({"t": list(world.loop.tasks.values())}))
            return True

        world.run_until(look)
        # When the loop has ended the stores are closed: there is nothing to measure.
        assert (
            list(measure_store_sizes(world.loop.tasks.values(), world.directory.build_store_path))
            == []
        )
    on_disk, in_memory = sizes
    assert (on_disk.task, on_disk.store) == ("0_0", "c")
    assert on_disk.entries == in_memory.entries == 2
    assert on_disk.disk_bytes > 0
    assert in_memory.disk_bytes == 0
    assert set(properties[0].values) == set(ROCKSDB_PROPERTIES)
    assert properties[0].values["estimate-num-keys"] == 2
    assert properties[1].values == {"num-keys": 2}, "a store in memory has no RocksDB"
    assert properties[1].label == "in_memory_state_id"


def test_statistics_are_read_of_stores_that_collect_them(tmp_path: Path) -> None:
    app = App("a")
    app.stream("in", **TEXT).group_by_key().count(store="c")
    world = World(app.topology(), tmp_path, collect_statistics=True)
    world.load("x", key="k")
    found: list[DatabaseFigures] = []

    def look() -> bool:
        if not world.consumed():
            return False
        reader = DatabaseFigureReader(world.directory.build_store_path, world.clock.monotonic_s)
        found.extend(reader.read_figures({"t": list(world.loop.tasks.values())}))
        return True

    world.run_until(look)
    assert set(found[0].values) == {*ROCKSDB_PROPERTIES, *ROCKSDB_STATISTICS}
    assert 3 < found[0].values["number-open-files"] < 50, "its log, its lock, its manifest"
