"""List the figures that queries and the page of figures may name: a worker's and the broker's."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.metrics.definition import MetricDefinition, MetricKind
from coordinator.metrics.definitions import all_definitions as broker_definitions
from ops.generate.queries import list_samples
from streams.monitoring.health import Health
from streams.monitoring.metrics import COUNTER_HELP, WorkerCollector

_KINDS: dict[str, MetricKind] = {"counter": "counter", "gauge": "gauge", "histogram": "histogram"}
_STREAM = "kafka.streams:type=stream-"
KAFKA_NAMES = {
    "millrace_worker_state": f"{_STREAM}metrics,attribute=client-state",
    "millrace_thread_records_total": f"{_STREAM}thread-metrics,attribute=process-total",
    "millrace_thread_dropped_total": f"{_STREAM}task-metrics,attribute=dropped-records-total",
    "millrace_thread_punctuations_total": f"{_STREAM}thread-metrics,attribute=punctuate-total",
    "millrace_thread_commits_total": f"{_STREAM}thread-metrics,attribute=commit-total",
    "millrace_thread_restored_records_total": f"{_STREAM}task-metrics,attribute=restore-total",
    "millrace_thread_standby_records_total": f"{_STREAM}task-metrics,attribute=update-total",
    "millrace_step_records_total": f"{_STREAM}topic-metrics,attribute=records-consumed-total",
    "millrace_task_process_seconds_total": f"{_STREAM}task-metrics,attribute=process-latency-avg",
    "millrace_end_to_end_latency_seconds": (
        f"{_STREAM}processor-node-metrics,attribute=record-e2e-latency-avg"
    ),
    "millrace_consumer_lag": (
        "kafka.consumer:type=consumer-fetch-manager-metrics,attribute=records-lag"
    ),
    "millrace_store_entries": f"{_STREAM}state-metrics,attribute=estimate-num-keys",
    "millrace_store_disk_bytes": f"{_STREAM}state-metrics,attribute=total-sst-files-size",
    "millrace_restore_records_left": (
        f"{_STREAM}task-metrics,attribute=restore-remaining-records-total"
    ),
    "millrace_restore_records_per_second": f"{_STREAM}task-metrics,attribute=restore-rate",
}
"""What Kafka Streams 4.4 calls the same figure of a worker, or the one nearest to it."""
ANSWERS = {
    "millrace_worker_state": "application state",
    "millrace_thread_dropped_total": "skipped-records-rate",
    "millrace_thread_tasks_corrupted_total": "task-corrupted-rate",
    "millrace_thread_replaced_threads_total": "thread state ERROR; failed-stream-threads",
}
"""Names in older documents that a figure of a worker answers."""


def list_defined_samples() -> set[str]:
    """Return the names of all samples that a worker or a broker can have."""
    return {*list_samples(broker_definitions()), *list_samples(list_worker_definitions())}


def list_worker_definitions() -> Iterator[MetricDefinition]:
    """Yield the definitions of a worker's figures, as its collector describes them."""
    health = Health("RUNNING", healthy=True, live=True, why=(), threads=())
    counters = {"thread": dict.fromkeys(COUNTER_HELP, 0)}
    collector = WorkerCollector(lambda: health, lambda: counters, lambda: 0)
    for family in collector.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield MetricDefinition(
            name=name,
            kind=_KINDS[family.type],
            help=f"{family.documentation}.",
            group="worker",
            labels=tuple(getattr(family, "_labelnames", ())),
            unit=_find_unit(family.name),
            kafka_name=KAFKA_NAMES.get(name, ""),
            answers=ANSWERS.get(name, ""),
        )


def _find_unit(family_name: str) -> str:
    """Return the unit with which Prometheus' convention ends a family's name, or nothing."""
    unit = family_name.rpartition("_")[2]
    return unit if unit in ("seconds", "bytes", "records") else ""
