"""Export a worker's metrics to Prometheus; what they say is read at a scrape.

docs/operations.md lists them. What costs something to know is measured where it happens, a slice of
records at a time (`streams.runtime.threads.measurements`); the rest is read when somebody asks.
Each figure is defined in `streams.monitoring.definitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from streams.monitoring.client_figures import describe_clients
from streams.monitoring.database_figures import DatabaseFigures
from streams.monitoring.definitions.catalog import find_family_level
from streams.monitoring.families import build_family, build_histogram
from streams.monitoring.health import Health
from streams.monitoring.kafka_streams_figures import (
    StreamsClient,
    describe_client,
    describe_kafka_streams_figures,
    describe_restores,
    describe_thread_states,
)
from streams.monitoring.state_disk import StateDiskSpace
from streams.monitoring.store_sizes import StoreSize
from streams.runtime.clients.client_statistics import ClientStatistics
from streams.runtime.tasks.task import Task
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.runtime.threads.query_measurements import QUERY_LIMITS, QueryMeasurements

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class WorkerCollector:
    """Collects a worker's metrics for a registry of prometheus_client.

    `get_counters` and `get_measurements` return values by thread; `measure_store_sizes` the sizes
    of stores, `read_database_figures` those of RocksDB; `source_steps` is the step that reads a
    topic. `get_tasks` returns the active tasks by thread. Figures whose level `records_level` does
    not accept are left out.
    `queries` are the measurements of the query port, if the worker has one; `read_disk_space` reads
    the disk of the state directory, and returns None where it can't.
    Without `client`, before the worker has joined, there is nothing under Kafka Streams' names.
    """

    def __init__(
        self,
        get_health: Callable[[], Health],
        get_counters: Callable[[], Mapping[str, Mapping[str, int]]],
        now_ms: Callable[[], int],
        *,
        get_measurements: Callable[[], Mapping[str, ThreadMeasurements]] = dict,
        measure_store_sizes: Callable[[], Iterable[StoreSize]] = tuple,
        read_database_figures: Callable[[], Iterable[DatabaseFigures]] = tuple,
        source_steps: Mapping[str, str] | None = None,
        client: StreamsClient | None = None,
        get_tasks: Callable[[], Mapping[str, list[Task]]] = dict,
        records_level: Callable[[str], bool] = lambda level: True,
        read_client_statistics: Callable[[], Iterable[ClientStatistics]] = tuple,
        queries: QueryMeasurements | None = None,
        commit_interval_s: float | None = None,
        read_disk_space: Callable[[], StateDiskSpace | None] = lambda: None,
    ) -> None:
        self._health = get_health
        self._counters = get_counters
        self._now_ms = now_ms
        self._measurements = get_measurements
        self._measure_stores = measure_store_sizes
        self._read_database_figures = read_database_figures
        self._source_steps = source_steps or {}
        self._client = client
        self._get_tasks = get_tasks
        self._records_level = records_level
        self._read_client_statistics = read_client_statistics
        self._queries = queries
        self._commit_interval_s = commit_interval_s
        self._read_disk_space = read_disk_space

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of this moment, for prometheus_client's registry."""
        for family in self._describe_all():
            if self._records_level(find_family_level(family.name)):
                yield family

    def _describe_all(self) -> Iterator[Metric]:
        """Yield the metric families of all levels."""
        health = self._health()
        yield from self._describe_worker(health)
        yield from self._describe_counters()
        yield from self._describe_threads(health)
        yield from _describe_restores(health)
        yield from self._describe_processing()
        yield from self._describe_stores()
        if self._queries is not None:
            yield build_histogram("millrace_query_latency_seconds", self._queries.latencies.copy())
            yield build_family("millrace_query_requests_running", [((), self._queries.running)])
            refused = self._queries.refused.copy()
            yield build_family(
                "millrace_query_requests_refused_total",
                [((limit,), refused[limit]) for limit in QUERY_LIMITS],
            )
            overdue = self._queries.functions_overdue.copy()
            yield build_family(
                "millrace_query_functions_overdue",
                [((query,), count) for query, count in overdue.items()],
            )
        if self._client is not None:
            yield from self._describe_as_kafka_streams(self._client, health)
        yield from describe_clients(self._read_client_statistics())

    def _describe_as_kafka_streams(self, client: StreamsClient, health: Health) -> Iterator[Metric]:
        """Yield the figures under Kafka Streams' names; a replaced thread counts as failed."""
        alive = sum(each.state != "ENDED" for each in health.threads)
        replaced = sum(each.get("replaced_threads", 0) for each in self._counters().values())
        failed = replaced + (len(health.threads) - alive if health.state == "ERROR" else 0)
        yield from describe_client(client, health.state, alive=alive, failed=failed)
        yield from describe_kafka_streams_figures(
            client,
            self._measurements(),
            self._read_database_figures(),
            self._source_steps,
            self._get_tasks(),
        )
        yield from describe_thread_states(client, health.threads)
        yield from describe_restores(client, health.threads)

    def _describe_worker(self, health: Health) -> Iterator[Metric]:
        """Yield the state of the worker."""
        yield build_family(
            "millrace_worker_state",
            [((health.state,), 1)],
        )
        yield build_family("millrace_worker_healthy", [((), int(health.healthy))])
        yield build_family("millrace_worker_live", [((), int(health.live))])
        if (interval_s := self._commit_interval_s) is not None:
            yield build_family("millrace_worker_commit_interval_seconds", [((), interval_s)])
        if (space := self._read_disk_space()) is not None:
            yield build_family("millrace_state_disk_free_bytes", [((), space.free_bytes)])
            yield build_family("millrace_state_disk_total_bytes", [((), space.total_bytes)])

    def _describe_counters(self) -> Iterator[Metric]:
        """Yield the counters of the stream threads."""
        by_name: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for thread, counters in self._counters().items():
            for name, value in counters.items():
                by_name.setdefault(name, []).append(((thread,), value))
        for name, values in by_name.items():
            yield build_family(f"millrace_thread_{name}_total", values)

    def _describe_threads(self, health: Health) -> Iterator[Metric]:
        """Yield the metrics of the states and activities of the stream threads."""
        threads = health.threads
        yield build_family(
            "millrace_thread_stuck",
            [((each.name, each.doing if each.stuck else ""), int(each.stuck)) for each in threads],
        )
        yield build_family(
            "millrace_thread_tasks",
            [
                ((each.name, state), count)
                for each in threads
                for state, count in Counter(each.tasks.values()).items()
            ],
        )
        yield build_family(
            "millrace_thread_commit_age_seconds",
            [
                ((each.name,), (self._now_ms() - each.last_commit_ms) / 1000)
                for each in threads
                if each.last_commit_ms is not None
            ],
        )

        measurements = self._measurements()
        yield build_family(
            "millrace_thread_rebalance_age_seconds",
            [
                ((thread,), age_s)
                for thread, measured in measurements.items()
                if (age_s := measured.events.rebalance_age_s) is not None
            ],
        )
        yield build_family(
            "millrace_thread_recovery_age_seconds",
            [
                ((thread,), age_s)
                for thread, measured in measurements.items()
                if (age_s := measured.events.recovery_age_s) is not None
            ],
        )

    def _describe_processing(self) -> Iterator[Metric]:
        """Yield the metrics of processed records, processing time, lag and latency."""
        records, seconds, lags, latencies = [], [], [], {}
        measurements, tasks = self._measurements(), self._get_tasks()
        for thread, measured in measurements.items():
            by_topic = Counter[str]()
            for (_, topic), source in measured.sources.copy().items():
                by_topic[topic] += source.records
            for topic, count in by_topic.items():
                records.append(((thread, self._source_steps.get(topic, ""), topic), count))
            # A task that never had a record counts too: beside it another one may be busy.
            spent_by_task = {task.name: 0.0 for task in tasks.get(thread, ())}
            for task, spent_s in (spent_by_task | measured.seconds_by_task.copy()).items():
                seconds.append(((thread, task.partition("_")[0], task), spent_s))
            latencies[thread] = measured.latency
            lags += [
                ((thread, partition.topic, str(partition.number)), lag)
                for partition, lag in measured.lags.items()
            ]
        yield build_family("millrace_step_records_total", records)
        yield build_family("millrace_task_process_seconds_total", seconds)
        yield build_histogram("millrace_end_to_end_latency_seconds", latencies)
        yield build_family(
            "millrace_consumer_lag",
            lags,
        )

    def _describe_stores(self) -> Iterator[Metric]:
        """Yield the metrics of the sizes of active tasks' stores."""
        sizes = list(self._measure_stores())
        yield build_family(
            "millrace_store_entries",
            [((each.task, each.store), each.entries) for each in sizes],
        )
        yield build_family(
            "millrace_store_disk_bytes",
            [((each.task, each.store), each.disk_bytes) for each in sizes],
        )


def _describe_restores(health: Health) -> Iterator[Metric]:
    """Yield the metrics of the progress of restores and standbys."""
    restoring = [
        ((thread.name, each.task, each.store), each)
        for thread in health.threads
        for each in thread.restoring
    ]
    yield build_family(
        "millrace_restore_records_left",
        [(names, each.records_left) for names, each in restoring],
    )
    yield build_family(
        "millrace_restore_records_per_second",
        [(names, each.records_per_s) for names, each in restoring],
    )
    yield build_family(
        "millrace_restore_seconds_left",
        [(names, each.seconds_left) for names, each in restoring if each.seconds_left is not None],
    )
    yield build_family(
        "millrace_standby_lag",
        [
            ((thread.name, each.task, each.store), each.lag)
            for thread in health.threads
            for each in thread.standby
            if each.lag is not None
        ],
    )


def render_prometheus_text(collector: WorkerCollector) -> bytes:
    """Return all metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
