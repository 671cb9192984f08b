"""Collects the figures of both coordinators: their shards, groups, offsets and transactions.

It reads on the endpoint's own thread: collections are copied before they are iterated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from prometheus_client.core import Metric

from coordinator.coordinators import Coordinators
from coordinator.groups.shard import GroupShard
from coordinator.metrics.families import FamilyCollection
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.shard import Shard
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import STATUS_NAMES


class CoordinatorCollector:
    """Collects the figures of both coordinators, as a collector of prometheus_client."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    def collect(self) -> Iterable[Metric]:
        """Return the families of all figures of the coordinators."""
        families = FamilyCollection()
        self.add_figures(families)
        return families.list_families()

    def add_figures(self, families: FamilyCollection) -> None:
        """Add the figures of the coordinators to those of a scrape."""
        groups, transactions = self._coordinators.groups, self._coordinators.transactions
        for group_shard in groups.shards:
            _add_shard_figures(families, group_shard.log)
            _add_group_figures(families, group_shard)
            _add_offset_figures(families, group_shard)
        for transaction_shard in transactions.shards:
            _add_shard_figures(families, transaction_shard.log)
        _add_transaction_figures(families, transactions)


def _add_shard_figures(families: FamilyCollection, shard: Shard[Any]) -> None:
    name, state, counters = shard.name, shard.coordinator_state, shard.counters
    add = families.add_value
    add("millrace_shard_active", float(state is CoordinatorState.ACTIVE), name)
    add("millrace_shard_failed", float(state is CoordinatorState.FAILED), name)
    add("millrace_shard_load_seconds", counters.load_ms / 1_000, name)
    add("millrace_shard_events_queued", shard.unreplayed_offset_count, name)
    add("millrace_shard_events_processed_total", counters.loaded + counters.appended, name)
    add("millrace_shard_records_unknown_total", counters.unknown, name)
    families.add_summary(
        "millrace_shard_append_seconds", counters.appends, counters.append_ms / 1_000, name
    )
    add("millrace_shard_append_seconds_max", counters.append_ms_max / 1_000, name)


def _add_group_figures(families: FamilyCollection, shard: GroupShard) -> None:
    name, add = shard.log.name, families.add_value
    states = Counter((group.kind, group.phase) for group in shard.list_groups())
    for (kind, state), count in sorted(states.items()):
        add("millrace_groups", count, name, kind, state)
    for kind, counters in shard.counters:
        add("millrace_group_heartbeats_total", counters.heartbeats, name, kind)
        add("millrace_group_sessions_expired_total", counters.sessions_expired, name, kind)
        for cause, count in sorted(counters.rebalances.copy().items()):
            add("millrace_group_rebalances_total", count, name, kind, cause)
        families.add_summary(
            "millrace_group_rebalance_seconds",
            counters.completed,
            counters.rebalance_ms / 1_000,
            *(name, kind),
        )
        add("millrace_group_rebalance_seconds_max", counters.rebalance_ms_max / 1_000, name, kind)


def _add_offset_figures(families: FamilyCollection, shard: GroupShard) -> None:
    name, counters, add = shard.log.name, shard.offset_counters, families.add_value
    kept = sum(map(len, tuple(shard.state.offsets.committed.values())))
    add("millrace_offsets", kept, name)
    add("millrace_offset_commits_total", counters.commits, name)
    add("millrace_offset_expirations_total", counters.expirations, name)
    add("millrace_offset_deletions_total", counters.deletions, name)


def _add_transaction_figures(families: FamilyCollection, service: TransactionService) -> None:
    add = families.add_value
    for shard in service.shards:
        found = Counter(known.status for known in tuple(shard.state.transactions.values()))
        for status, count in sorted(found.items()):
            add("millrace_transactions", count, shard.log.name, STATUS_NAMES[status])
    counters, markers = service.counters, service.markers.counters
    ended = "millrace_transactions_ended_total"
    add(ended, counters.commits, "commit", "client")
    add(ended, counters.aborts_by_client, "abort", "client")
    add(ended, counters.aborts_by_init, "abort", "init")
    add(ended, counters.aborts_by_timeout, "abort", "timeout")
    add("millrace_markers_queued", service.markers.unsettled_count)
    add("millrace_markers_total", markers.written, "written")
    add("millrace_markers_total", markers.retried, "retried")
    add("millrace_markers_total", markers.given_up, "given_up")
