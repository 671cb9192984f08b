"""Export a worker's metrics to Prometheus; what they say is read at a scrape.

docs/operations.md lists them. What costs something to know is measured where it happens, a slice of
records at a time (`streams.runtime.threads.measurements`); the rest is read when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from streams.monitoring.health import Health
from streams.monitoring.store_sizes import StoreSize
from streams.runtime.threads.measurements import ThreadMeasurements

if TYPE_CHECKING:
    from prometheus_client.core import Metric

COUNTER_HELP = {
    "records": "Records that were processed, those that were rolled back later included",
    "dropped": "Records that were passed over: no key or value, skipped by a handler, or late",
    "late": "Dropped records whose window had closed, once for each window that missed one",
    "dead_letters": "Dead letters that were written, repeated ones included",
    "punctuations": "Timers of processors that were called",
    "commits": "Commits that had something to commit",
    "early_commits": "Commits before their interval: requested by a processor, or memory was full",
    "rebalances": "Assignments that the thread took from its group",
    "restored_records": "Changelog records that were read to restore stores",
    "standby_records": "Changelog records that stores of standby and warm-up tasks have got",
    "offsets_out_of_range": "Positions outside of their topic, reset by offset_out_of_range",
    "records_out_of_range": "Records that were skipped by such resets and will never be read",
    "keys_sampled": "Keys of inputs of joins and steps with stores that were compared with murmur2",
    "keys_misplaced": "Those of them that were in another partition than murmur2 chooses",
    "recoveries": "Times that the thread started over from what is committed",
    "outcomes_unknown": "Recoveries since a call of the broker failed with unknown effect",
    "tasks_migrated": "Recoveries since another member has, or will get, the tasks",
    "tasks_corrupted": "Recoveries in which a store was rebuilt from its changelog",
    "values_refused": "Transactions that were repeated to find the value that a serde refuses",
    "writes_refused": "Transactions that were repeated since a broker has refused a record",
    "replaced_threads": "Times that uncaught_exception_handler replaced the thread",
}
"""The help text of each counter of a stream thread."""


class WorkerCollector:
    """Collects a worker's metrics for a registry of prometheus_client.

    `get_counters` and `get_measurements` return values by thread; `measure_stores` the sizes of
    stores; `source_steps` is the step that reads a topic.
    """

    def __init__(
        self,
        get_health: Callable[[], Health],
        get_counters: Callable[[], Mapping[str, Mapping[str, int]]],
        now_ms: Callable[[], int],
        *,
        get_measurements: Callable[[], Mapping[str, ThreadMeasurements]] = dict,
        measure_stores: Callable[[], Iterable[StoreSize]] = tuple,
        source_steps: Mapping[str, str] | None = None,
    ) -> None:
        self._health = get_health
        self._counters = get_counters
        self._now_ms = now_ms
        self._measurements = get_measurements
        self._measure_stores = measure_stores
        self._source_steps = source_steps or {}

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of this moment, for prometheus_client's registry."""
        health = self._health()
        yield from self._describe_worker(health)
        yield from self._describe_counters()
        yield from self._describe_threads(health)
        yield from _describe_restores(health)
        yield from self._describe_processing()
        yield from self._describe_stores()

    def _describe_worker(self, health: Health) -> Iterator[Metric]:
        """Yield the state of the worker."""
        yield _gauge(
            "millrace_worker_state",
            "1 for the state that the worker is in",
            ("state",),
            [((health.state,), 1)],
        )
        healthy = "1 if records are processed or could be, as /health says"
        yield _gauge("millrace_worker_healthy", healthy, (), [((), int(health.healthy))])
        live = "1 if a new process would not help, as /live says"
        yield _gauge("millrace_worker_live", live, (), [((), int(health.live))])

    def _describe_counters(self) -> Iterator[Metric]:
        """Yield the counters of the stream threads."""
        from prometheus_client.core import CounterMetricFamily

        by_name: dict[str, CounterMetricFamily] = {}
        for thread, counters in self._counters().items():
            for name, value in counters.items():
                if name not in by_name:
                    by_name[name] = CounterMetricFamily(
                        f"millrace_thread_{name}", COUNTER_HELP[name], labels=["thread"]
                    )
                by_name[name].add_metric([thread], value)
        yield from by_name.values()

    def _describe_threads(self, health: Health) -> Iterator[Metric]:
        """Yield the metrics of the states and activities of the stream threads."""
        threads = health.threads
        yield _gauge(
            "millrace_thread_stuck",
            "1 if the thread has been in one function for stuck_after_ms, with whose code it is in",
            ("thread", "where"),
            [((each.name, each.doing if each.stuck else ""), int(each.stuck)) for each in threads],
        )
        yield _gauge(
            "millrace_thread_tasks",
            "Tasks of the thread, standby tasks included, by their state",
            ("thread", "state"),
            [
                ((each.name, state), count)
                for each in threads
                for state, count in Counter(each.tasks.values()).items()
            ],
        )
        yield _gauge(
            "millrace_thread_commit_age_seconds",
            "Seconds since the thread's last commit",
            ("thread",),
            [
                ((each.name,), (self._now_ms() - each.last_commit_ms) / 1000)
                for each in threads
                if each.last_commit_ms is not None
            ],
        )

    def _describe_processing(self) -> Iterator[Metric]:
        """Yield the metrics of processed records, processing time, lag and latency."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        records = CounterMetricFamily(
            "millrace_step_records",
            "Records that a source step has read of its topic",
            labels=["thread", "step", "topic"],
        )
        seconds = CounterMetricFamily(
            "millrace_task_process_seconds",
            "Seconds in which the steps of a task have processed records and called timers",
            labels=["thread", "subtopology", "task"],
        )
        latency = HistogramMetricFamily(
            "millrace_end_to_end_latency_seconds",
            "From a record's timestamp until its results can be read, of one record a slice",
            labels=["thread"],
        )
        lags = []
        for thread, measured in self._measurements().items():
            for topic, count in list(measured.records_by_topic.items()):
                records.add_metric([thread, self._source_steps.get(topic, ""), topic], count)
            for task, spent_s in list(measured.seconds_by_task.items()):
                seconds.add_metric([thread, task.partition("_")[0], task], spent_s)
            latency.add_metric([thread], measured.latency.cumulate(), measured.latency.sum_s)
            lags += [
                ((thread, partition.topic, str(partition.number)), lag)
                for partition, lag in measured.lags.items()
            ]
        yield from (records, seconds, latency)
        yield _gauge(
            "millrace_consumer_lag",
            "Records of an input partition after what is committed, as of the last fetch",
            ("thread", "topic", "partition"),
            lags,
        )

    def _describe_stores(self) -> Iterator[Metric]:
        """Yield the metrics of the sizes of active tasks' stores."""
        sizes = list(self._measure_stores())
        yield _gauge(
            "millrace_store_entries",
            "About how many entries a store of an active task has",
            ("task", "store"),
            [((each.task, each.store), each.entries) for each in sizes],
        )
        yield _gauge(
            "millrace_store_disk_bytes",
            "Bytes of the files of a store, its write-ahead log included; 0 for one in memory",
            ("task", "store"),
            [((each.task, each.store), each.disk_bytes) for each in sizes],
        )


def _describe_restores(health: Health) -> Iterator[Metric]:
    """Yield the metrics of the progress of restores and standbys."""
    labels = ("thread", "task", "store")
    restoring = [
        ((thread.name, each.task, each.store), each)
        for thread in health.threads
        for each in thread.restoring
    ]
    yield _gauge(
        "millrace_restore_records_left",
        "Changelog records that a store has left to restore, at most",
        labels,
        [(names, each.records_left) for names, each in restoring],
    )
    yield _gauge(
        "millrace_restore_records_per_second",
        "Changelog records that the restore of a store reads in a second",
        labels,
        [(names, each.records_per_s) for names, each in restoring],
    )
    yield _gauge(
        "millrace_restore_seconds_left",
        "Seconds that the restore of a store takes at this rate",
        labels,
        [(names, each.seconds_left) for names, each in restoring if each.seconds_left is not None],
    )
    yield _gauge(
        "millrace_standby_lag",
        "Offsets of its changelog that a store of a standby or warm-up task is behind",
        labels,
        [
            ((thread.name, each.task, each.store), each.lag)
            for thread in health.threads
            for each in thread.standby
            if each.lag is not None
        ],
    )


def _gauge(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    """Return a gauge with a value for each combination of labels."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, documentation, labels=labels)
    for names, value in values:
        family.add_metric(names, value)
    return family


def render_prometheus_text(collector: WorkerCollector) -> bytes:
    """Return all metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
