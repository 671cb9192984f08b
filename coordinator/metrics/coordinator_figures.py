"""Collect the figures of the transaction coordinator and the group coordinator.

It reads on the endpoint's own thread: collections are copied before they are iterated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from prometheus_client.core import Metric

from coordinator.clock import Clock
from coordinator.coordinators import Coordinators
from coordinator.histogram import Histogram
from coordinator.metrics.families import FamilyCollection
from coordinator.metrics.group_figures import add_group_figures
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.shard import Shard
from coordinator.transactions.open_transactions import measure_open_transactions
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import STATUS_NAMES


class CoordinatorCollector:
    """Collects the figures of both coordinators, as a collector of prometheus_client."""

    def __init__(self, coordinators: Coordinators, clock: Clock) -> None:
        self._coordinators = coordinators
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        """Return the families of all figures of the coordinators."""
        families = FamilyCollection()
        self.add_figures(families)
        return families.list_families()

    def add_figures(self, families: FamilyCollection) -> None:
        """Add the figures of the coordinators to those of a scrape."""
        groups, transactions = self._coordinators.groups, self._coordinators.transactions
        group_logs: list[Shard[Any]] = [shard.log for shard in groups.shards]
        transaction_logs: list[Shard[Any]] = [shard.log for shard in transactions.shards]
        monotonic_ms = self._clock.monotonic_ms()
        for log in group_logs + transaction_logs:
            _add_shard_figures(families, log, monotonic_ms)
        _add_runtime_figures(families, "group", group_logs)
        _add_runtime_figures(families, "transaction", transaction_logs)
        add_group_figures(families, groups.shards, monotonic_ms)
        _add_transaction_figures(families, transactions, self._clock.now_ms())


def _add_runtime_figures(
    families: FamilyCollection, coordinator: str, logs: Sequence[Shard[Any]]
) -> None:
    """Add the figures of all shards of a coordinator together, whatever their number."""
    found = Counter(log.coordinator_state for log in logs)
    for state in CoordinatorState:
        families.add_value(
            "millrace_coordinator_shards", found[state], coordinator, state.name.lower()
        )
    append_times, event_times = Histogram(), Histogram()
    for log in logs:
        append_times.add_histogram(log.counters.append_times)
        event_times.add_histogram(log.counters.event_times)
    families.add_histogram("millrace_coordinator_append_seconds", append_times, coordinator)
    families.add_histogram("millrace_coordinator_event_seconds", event_times, coordinator)


def _add_shard_figures(families: FamilyCollection, shard: Shard[Any], monotonic_ms: int) -> None:
    name, state, counters = shard.name, shard.coordinator_state, shard.counters
    add = families.add_value
    add("millrace_shard_active", float(state is CoordinatorState.ACTIVE), name)
    add("millrace_shard_failed", float(state is CoordinatorState.FAILED), name)
    add("millrace_shard_load_seconds", counters.load_ms / 1_000, name)
    add("millrace_shard_events_queued", shard.unreplayed_offset_count, name)
    add("millrace_shard_events_processed_total", counters.loaded + counters.appended, name)
    add("millrace_shard_records_unknown_total", counters.unknown, name)
    families.add_summary(
        "millrace_shard_append_seconds",
        counters.append_times.count,
        counters.append_times.sum_s,
        name,
    )
    longest_ns = counters.append_max_ns.value_at(monotonic_ms)
    add("millrace_shard_append_seconds_max", longest_ns / 1_000_000_000, name)


def _add_transaction_figures(
    families: FamilyCollection, service: TransactionService, now_ms: int
) -> None:
    add = families.add_value
    oldest_ms = overdue_count = 0
    for shard in service.shards:
        known_transactions = tuple(shard.state.transactions.values())
        found = Counter(known.status for known in known_transactions)
        ages = measure_open_transactions(known_transactions, now_ms)
        oldest_ms, overdue_count = (
            max(oldest_ms, ages.oldest_ms),
            overdue_count + ages.overdue_count,
        )
        for status, count in sorted(found.items()):
            add("millrace_transactions", count, shard.log.name, STATUS_NAMES[status])
    counters, markers = service.counters, service.markers.counters
    ended = "millrace_transactions_ended_total"
    add(ended, counters.commits, "commit", "client")
    add(ended, counters.aborts_by_client, "abort", "client")
    add(ended, counters.aborts_by_init, "abort", "init")
    add(ended, counters.aborts_by_timeout, "abort", "timeout")
    families.add_histogram("millrace_transaction_end_seconds", counters.commit_times, "commit")
    families.add_histogram("millrace_transaction_end_seconds", counters.abort_times, "abort")
    add("millrace_transaction_oldest_open_seconds", oldest_ms / 1_000)
    add("millrace_transactions_overdue", overdue_count)
    add("millrace_transaction_appends_retrying", len(counters.unlogged_ends))
    add("millrace_transactional_ids_expired_total", service.expired_id_count)
    add("millrace_markers_queued", service.markers.unsettled_count)
    add("millrace_markers_retrying", service.markers.retrying_count)
    add("millrace_markers_total", markers.written, "written")
    add("millrace_markers_total", markers.retried, "retried")
    add("millrace_markers_total", markers.given_up, "given_up")
