"""Collect all figures of a broker: those of requests and the event loop here, and the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from coordinator.api.context import BrokerServices
from coordinator.api.request_counters import ApiCounters
from coordinator.errors import Code
from coordinator.histogram import Histogram
from coordinator.log.cleaner.counters import CleanerCounters
from coordinator.log.flush_times import FlushTimes
from coordinator.metrics.coordinator_figures import CoordinatorCollector
from coordinator.metrics.families import FamilyCollection
from coordinator.metrics.log_figures import add_log_figures, add_topic_figures
from coordinator.wire.connections import ConnectionRegistry

LISTENER = "PLAINTEXT"
# Requests that may wait for others, which are named even if nobody has sent one.
_WAITING_APIS = ("Fetch", "JoinGroup", "Produce", "SyncGroup")
_AUTHENTICATION_APIS = ("SaslAuthenticate", "SaslHandshake")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBroker:
    """Holds the parts of a broker that its figures are read from."""

    services: BrokerServices
    connections: ConnectionRegistry
    cleaner_counters: CleanerCounters
    flush_times: FlushTimes
    loop_delays: Histogram
    read_loop_time_s: Callable[[], float]  # the processor time of the event loop's thread
    count_expired_producers: Callable[[], int]


class BrokerCollector:
    """Collects all figures of a broker, as a collector of prometheus_client."""

    def __init__(self, broker: MeasuredBroker) -> None:
        self._broker = broker
        services = broker.services
        self._coordinators = CoordinatorCollector(services.coordinators, services.clock)

    def collect(self) -> Iterable[Metric]:
        """Return the families of all figures."""
        families, broker = FamilyCollection(), self._broker
        _add_request_figures(families, broker.services)
        _add_connection_figures(families, broker)
        add_topic_figures(families, broker.services.topics)
        _add_process_figures(families, broker)
        add_log_figures(families, broker.services, broker.flush_times, broker.cleaner_counters)
        families.add_value("millrace_producer_ids_expired_total", broker.count_expired_producers())
        self._coordinators.add_figures(families)
        return families.list_families()


def _add_request_figures(families: FamilyCollection, services: BrokerServices) -> None:
    waiting = dict.fromkeys(_WAITING_APIS, 0)
    for counters in services.request_counters.list_counters():
        _add_time_histograms(families, counters)
        for code, count in sorted(counters.errors.copy().items()):
            families.add_value(
                "millrace_request_errors_total", count, counters.name, Code(code).name
            )
        if counters.waiting or counters.name in waiting or counters.wait_times.count:
            waiting[counters.name] = counters.waiting
    for api, count in sorted(waiting.items()):
        families.add_value("millrace_requests_waiting", count, api)
    families.add_value("millrace_fetch_sessions", len(services.fetch_sessions))


def _add_time_histograms(families: FamilyCollection, counters: ApiCounters) -> None:
    """Add the four histograms of an API; a request that only took work didn't queue or wait."""
    plain_count = counters.plain_times.count
    for part, times, adds_plain in (
        ("", counters.total_times, True),
        ("queue_", counters.queue_times, False),
        ("work_", counters.work_times, True),
        ("wait_", counters.wait_times, False),
    ):
        all_times = Histogram()
        all_times.add_histogram(times)
        if adds_plain:
            all_times.add_histogram(counters.plain_times)
        else:
            all_times.add_zeros(plain_count)
        families.add_histogram(f"millrace_request_{part}seconds", all_times, counters.name)


def _add_connection_figures(families: FamilyCollection, broker: MeasuredBroker) -> None:
    connections, add = broker.connections, families.add_value
    add("millrace_connections", len(connections), LISTENER)
    add("millrace_connections_created_total", connections.created_count, LISTENER)
    for cause, count in connections.ended_counts.items():
        add("millrace_connections_ended_total", count, LISTENER, cause)
    failed = sum(
        sum(counters.errors.copy().values())
        for counters in broker.services.request_counters.list_counters()
        if counters.name in _AUTHENTICATION_APIS
    )
    add("millrace_authentications_failed_total", failed, LISTENER)


def _add_process_figures(families: FamilyCollection, broker: MeasuredBroker) -> None:
    services, add = broker.services, families.add_value
    add("millrace_broker_info", 1, services.cluster_id, str(services.endpoint["node_id"]))
    busy_s = broker.read_loop_time_s() + broker.flush_times.blocking.sum_s
    add("millrace_event_loop_busy_seconds_total", busy_s)
    families.add_histogram("millrace_event_loop_delay_seconds", broker.loop_delays)
    total_bytes, free_bytes = services.measure_disk_space()
    add("millrace_disk_total_bytes", total_bytes)
    add("millrace_disk_free_bytes", free_bytes)
