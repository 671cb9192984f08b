"""Export a worker's metrics to Prometheus; plain counters are read only at a scrape.

millrace_worker_state              1 for the state that it is in, by state
millrace_worker_healthy            1 or 0, see streams/monitoring/health.py
millrace_worker_live
millrace_thread_records_total      by thread, as all that follow; and the other counters of a
millrace_thread_..._total          loop: commits, rebalances, recoveries, ...
millrace_thread_stuck              1 or 0, by where it is
millrace_thread_tasks              by state
millrace_thread_commit_age_seconds since its last commit
millrace_restore_records_left      at most, of each store that is restored, by task and store
millrace_standby_lag               offsets behind, of each store that follows, by task and store
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from streams.monitoring.health import Health

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class WorkerCollector:
    """Collects a worker's metrics for a registry of prometheus_client.

    `get_counters` returns values by thread and name.
    """

    def __init__(
        self,
        get_health: Callable[[], Health],
        get_counters: Callable[[], Mapping[str, Mapping[str, int]]],
        now_ms: Callable[[], int],
    ) -> None:
        self._health = get_health
        self._counters = get_counters
        self._now_ms = now_ms

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of this moment, for prometheus_client's registry."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        health = self._health()
        state = GaugeMetricFamily("millrace_worker_state", "The worker's state", labels=["state"])
        state.add_metric([health.state], 1)
        yield state
        yield GaugeMetricFamily("millrace_worker_healthy", "Records get on", int(health.healthy))
        yield GaugeMetricFamily("millrace_worker_live", "No new process needed", int(health.live))
        by_name: dict[str, CounterMetricFamily] = {}
        for thread, counters in self._counters().items():
            for name, value in counters.items():
                family = CounterMetricFamily(f"millrace_thread_{name}", name, labels=["thread"])
                by_name.setdefault(name, family).add_metric([thread], value)
        yield from by_name.values()
        stuck = GaugeMetricFamily("millrace_thread_stuck", "Hangs", labels=["thread", "where"])
        tasks = GaugeMetricFamily("millrace_thread_tasks", "Tasks", labels=["thread", "state"])
        age = GaugeMetricFamily(
            "millrace_thread_commit_age_seconds", "Since the last commit", labels=["thread"]
        )
        for each in health.threads:
            stuck.add_metric([each.name, each.doing if each.stuck else ""], int(each.stuck))
            for name, number in Counter(each.tasks.values()).items():
                tasks.add_metric([each.name, name], number)
            if each.last_commit_ms is not None:
                age.add_metric([each.name], (self._now_ms() - each.last_commit_ms) / 1000)
        yield from (stuck, tasks, age, _records_left_metric(health), _standby_lag_metric(health))


def _records_left_metric(report: Health) -> Metric:
    """Return the gauge of the records that each restoring store has left."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(
        "millrace_restore_records_left", "At most", labels=["thread", "task", "store"]
    )
    for thread in report.threads:
        for each in thread.restoring:
            family.add_metric([thread.name, each.task, each.store], each.records_left)
    return family


def _standby_lag_metric(report: Health) -> Metric:
    """Return the gauge of the lag of each store of a standby task, where it is known."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(
        "millrace_standby_lag", "Offsets behind", labels=["thread", "task", "store"]
    )
    for thread in report.threads:
        for each in thread.standby:
            if each.lag is not None:
                family.add_metric([thread.name, each.task, each.store], each.lag)
    return family


def render_prometheus_text(collector: WorkerCollector) -> bytes:
    """Return all metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)
