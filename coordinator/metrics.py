"""Serves the broker's metrics to Prometheus, read from plain counters only when scraped.

`prometheus_client` is imported when the endpoint is started; without it the metrics cost no more
than the integers that are counted anyway. The endpoint is an HTTP server of its own, on this
machine only. It reads on a thread of its own: collections are copied before they are iterated.

    millrace_shard_active                    1 or 0, of each shard of both coordinators
    millrace_shard_failed                    1 or 0: its log is damaged (docs/broker.md, "Repair")
    millrace_shard_load_seconds              how long its log took to replay
    millrace_shard_events_queued             records of its log that aren't replayed yet
    millrace_shard_events_processed_total    records and markers replayed or appended
    millrace_shard_records_unknown_total     replayed ones of a newer broker, which are kept
    millrace_shard_append_seconds            count and sum of its appends
    millrace_shard_append_seconds_max
    millrace_groups                          by shard, type and state
    millrace_group_heartbeats_total          by shard and type, as all that follow
    millrace_group_sessions_expired_total    members that were not heard of in time
    millrace_group_rebalances_total          begun, by cause, too
    millrace_group_rebalance_seconds         count and sum of those that came to their end
    millrace_group_rebalance_seconds_max
    millrace_offsets                         committed ones that are kept, by shard, as what follows
    millrace_offset_commits_total            partitions, in a transaction or not
    millrace_offset_expirations_total
    millrace_offset_deletions_total          by OffsetDelete
    millrace_transactions                    by shard and state
    millrace_transactions_ended_total        by outcome and cause: client, init or timeout
    millrace_markers_queued                  partitions that wait for a marker
    millrace_markers_total                   by outcome: written, retried or given_up
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from coordinator.coordinators import Coordinators
from coordinator.groups.shard import GroupShard
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.shard import Shard
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import STATUS_NAMES

if TYPE_CHECKING:
    from prometheus_client.core import Metric

METRICS_HOST = "127.0.0.1"


class CoordinatorCollector:
    """Collects the metrics of both coordinators, as a collector of prometheus_client."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    def collect(self) -> Iterator[Metric]:
        groups, transactions = self._coordinators.groups, self._coordinators.transactions
        logs: list[Shard[Any]] = [shard.log for shard in groups.shards]
        logs += [shard.log for shard in transactions.shards]
        yield from _collect_shard_metrics(logs)
        yield from _collect_group_metrics(groups.shards)
        yield from _collect_offset_metrics(groups.shards)
        yield from _collect_transaction_metrics(transactions)


def _collect_shard_metrics(shards: Iterable[Shard[Any]]) -> Iterator[Metric]:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        SummaryMetricFamily,
    )

    active = GaugeMetricFamily("millrace_shard_active", "Whether it answers.", labels=["shard"])
    failed = GaugeMetricFamily(
        "millrace_shard_failed", "Whether its log is damaged.", labels=["shard"]
    )
    load = GaugeMetricFamily(
        "millrace_shard_load_seconds", "Time that its log took to replay.", labels=["shard"]
    )
    queued = GaugeMetricFamily(
        "millrace_shard_events_queued", "Records that aren't replayed yet.", labels=["shard"]
    )
    processed = CounterMetricFamily(
        "millrace_shard_events_processed", "Records replayed or appended.", labels=["shard"]
    )
    unknown = CounterMetricFamily(
        "millrace_shard_records_unknown", "Records that can't be read; kept.", labels=["shard"]
    )
    append = SummaryMetricFamily(
        "millrace_shard_append_seconds", "Time that appends took.", labels=["shard"]
    )
    append_max = GaugeMetricFamily(
        "millrace_shard_append_seconds_max", "Time that the longest took.", labels=["shard"]
    )
    for shard in shards:
        labels, counters = [shard.name], shard.counters
        active.add_metric(labels, float(shard.coordinator_state is CoordinatorState.ACTIVE))
        failed.add_metric(labels, float(shard.coordinator_state is CoordinatorState.FAILED))
        load.add_metric(labels, counters.load_ms / 1_000)
        queued.add_metric(labels, shard.unreplayed_offset_count)
        processed.add_metric(labels, counters.loaded + counters.appended)
        unknown.add_metric(labels, counters.unknown)
        append.add_metric(labels, counters.appends, counters.append_ms / 1_000)
        append_max.add_metric(labels, counters.append_ms_max / 1_000)
    yield from (active, failed, load, queued, processed, unknown, append, append_max)


def _collect_group_metrics(shards: Iterable[GroupShard]) -> Iterator[Metric]:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        SummaryMetricFamily,
    )

    labels = ["shard", "type"]
    by_state = GaugeMetricFamily(
        "millrace_groups", "Groups by type and state.", labels=[*labels, "state"]
    )
    heartbeats = CounterMetricFamily("millrace_group_heartbeats", "Heartbeats.", labels=labels)
    expired = CounterMetricFamily(
        "millrace_group_sessions_expired", "Members that fell silent.", labels=labels
    )
    begun = CounterMetricFamily(
        "millrace_group_rebalances", "Rebalances that began.", labels=[*labels, "cause"]
    )
    took = SummaryMetricFamily(
        "millrace_group_rebalance_seconds", "Time that rebalances took.", labels=labels
    )
    took_max = GaugeMetricFamily(
        "millrace_group_rebalance_seconds_max", "Time that the longest took.", labels=labels
    )
    for shard in shards:
        name = shard.log.name
        states = Counter((group.kind, group.phase) for group in shard.list_groups())
        for (kind, state), count in sorted(states.items()):
            by_state.add_metric([name, kind, state], count)
        for kind, counters in shard.counters:
            heartbeats.add_metric([name, kind], counters.heartbeats)
            expired.add_metric([name, kind], counters.sessions_expired)
            for cause, count in sorted(counters.rebalances.copy().items()):
                begun.add_metric([name, kind, cause], count)
            took.add_metric([name, kind], counters.completed, counters.rebalance_ms / 1_000)
            took_max.add_metric([name, kind], counters.rebalance_ms_max / 1_000)
    yield from (by_state, heartbeats, expired, begun, took, took_max)


def _collect_offset_metrics(shards: Iterable[GroupShard]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kept = GaugeMetricFamily("millrace_offsets", "Committed offsets.", labels=["shard"])
    commits, expirations, deletions = (
        CounterMetricFamily(f"millrace_offset_{name}", what, labels=["shard"])
        for name, what in (
            ("commits", "Offsets committed."),
            ("expirations", "Offsets expired."),
            ("deletions", "Offsets deleted on request."),
        )
    )
    for shard in shards:
        labels, counters = [shard.log.name], shard.offset_counters
        kept.add_metric(labels, sum(map(len, tuple(shard.state.offsets.committed.values()))))
        commits.add_metric(labels, counters.commits)
        expirations.add_metric(labels, counters.expirations)
        deletions.add_metric(labels, counters.deletions)
    yield from (kept, commits, expirations, deletions)


def _collect_transaction_metrics(service: TransactionService) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    by_state = GaugeMetricFamily(
        "millrace_transactions", "Transactional ids by state.", labels=["shard", "state"]
    )
    for shard in service.shards:
        found = Counter(known.status for known in tuple(shard.state.transactions.values()))
        for status, count in sorted(found.items()):
            by_state.add_metric([shard.log.name, STATUS_NAMES[status]], count)
    yield by_state
    ended = CounterMetricFamily(
        "millrace_transactions_ended", "Decided transactions.", labels=["outcome", "cause"]
    )
    counters = service.counters
    ended.add_metric(["commit", "client"], counters.commits)
    ended.add_metric(["abort", "client"], counters.aborts_by_client)
    ended.add_metric(["abort", "init"], counters.aborts_by_init)
    ended.add_metric(["abort", "timeout"], counters.aborts_by_timeout)
    yield ended
    yield GaugeMetricFamily(
        "millrace_markers_queued",
        "Partitions waiting for a marker.",
        value=service.markers.unsettled_count,
    )
    markers = CounterMetricFamily("millrace_markers", "Markers by outcome.", labels=["outcome"])
    markers.add_metric(["written"], service.markers.counters.written)
    markers.add_metric(["retried"], service.markers.counters.retried)
    markers.add_metric(["given_up"], service.markers.counters.given_up)
    yield markers


def start_metrics_server(coordinators: Coordinators, port: int) -> tuple[int, Callable[[], None]]:
    """Serve metrics on a port of this machine; return the port and a function that stops it.

    Port 0 stands for any free one.

    Raises: OSError if the port is taken.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry(auto_describe=False)
    registry.register(CoordinatorCollector(coordinators))
    server, thread = start_http_server(port, METRICS_HOST, registry)

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop_server
