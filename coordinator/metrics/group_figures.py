"""Collect the figures of groups and of their offsets.

What there is for each shard is by shard, as it has been; what came later is of all shards together,
so that a scrape doesn't grow with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from coordinator.groups.counters import AssignorCounters, GroupCounters
from coordinator.groups.shard import GroupShard
from coordinator.metrics.families import FamilyCollection


def add_group_figures(
    families: FamilyCollection, shards: Sequence[GroupShard], monotonic_ms: int
) -> None:
    """Add the figures of all groups and offsets to those of a scrape."""
    by_kind: dict[str, list[GroupCounters]] = {}
    for shard in shards:
        _add_shard_figures(families, shard, monotonic_ms)
        for kind, counters in shard.counters:
            by_kind.setdefault(kind, []).append(counters)
    for kind, all_counters in by_kind.items():
        _add_kind_figures(families, kind, all_counters)
    _add_assignor_figures(families, shards)
    for kind in ("member", "simple", "transaction"):
        committed = sum(getattr(each.offset_counters, f"{kind}_commits") for each in shards)
        families.add_value("millrace_offset_commits_by_kind_total", committed, kind)


def _add_shard_figures(families: FamilyCollection, shard: GroupShard, monotonic_ms: int) -> None:
    name, add = shard.log.name, families.add_value
    states = Counter((group.kind, group.phase) for group in shard.list_groups())
    for (kind, state), count in sorted(states.items()):
        add("millrace_groups", count, name, kind, state)
    for kind, counters in shard.counters:
        add("millrace_group_heartbeats_total", counters.heartbeats, name, kind)
        add("millrace_group_sessions_expired_total", counters.sessions_expired, name, kind)
        for cause, count in sorted(counters.rebalances.copy().items()):
            add("millrace_group_rebalances_total", count, name, kind, cause)
        times = counters.rebalance_times
        families.add_summary(
            "millrace_group_rebalance_seconds", times.count, times.sum_s, name, kind
        )
        longest_ms = counters.rebalance_max_ms.value_at(monotonic_ms)
        add("millrace_group_rebalance_seconds_max", longest_ms / 1_000, name, kind)
    offsets = shard.offset_counters
    kept = sum(map(len, tuple(shard.state.offsets.committed.values())))
    add("millrace_offsets", kept, name)
    add("millrace_offset_commits_total", offsets.commits, name)
    add("millrace_offset_expirations_total", offsets.expirations, name)
    add("millrace_offset_deletions_total", offsets.deletions, name)


def _add_kind_figures(
    families: FamilyCollection, kind: str, all_counters: Iterable[GroupCounters]
) -> None:
    """Add the figures of the groups of one kind, of all shards together."""
    total, results = GroupCounters(), Counter[str]()
    for counters in all_counters:
        total.created += counters.created
        total.deleted += counters.deleted
        total.joined += counters.joined
        total.left += counters.left
        total.rebalance_times.add_histogram(counters.rebalance_times)
        results.update(counters.results.copy())
    families.add_value("millrace_groups_created_total", total.created, kind)
    families.add_value("millrace_groups_deleted_total", total.deleted, kind)
    families.add_value("millrace_group_members_joined_total", total.joined, kind)
    families.add_value("millrace_group_members_left_total", total.left, kind)
    for result in ("complete", "superseded", "failed", "abandoned"):
        families.add_value("millrace_group_rebalances_ended_total", results[result], kind, result)
    families.add_histogram("millrace_group_rebalance_duration_seconds", total.rebalance_times, kind)


def _add_assignor_figures(families: FamilyCollection, shards: Iterable[GroupShard]) -> None:
    totals: dict[str, AssignorCounters] = {}
    for shard in shards:
        for assignor, counters in shard.assignor_counters.copy().items():
            total = totals.setdefault(assignor, AssignorCounters())
            total.times.add_histogram(counters.times)
            total.partitions_moved += counters.partitions_moved
    for assignor, total in sorted(totals.items()):
        families.add_histogram("millrace_assignor_seconds", total.times, assignor)
        families.add_value(
            "millrace_assignor_partitions_moved_total", total.partitions_moved, assignor
        )
