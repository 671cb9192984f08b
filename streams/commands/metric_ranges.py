"""Say of each figure of `millrace metrics` what is normal, and whether it is.

A range holds for any application that is well: what depends on its load is compared with its own
rate and its commit interval. A figure that is not known counts as normal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streams.monitoring.scraped_figures import MetricsOutput

_BYTES_IN_MB = 1_000_000
_LAG_RECORDS = 10_000
"""The most records that a task that has caught up may lag (`acceptable_recovery_lag`)."""
_LAG_S = 10.0
_FEW_RECORDS = 10
"""A lag of fewer records is no delay, however few come in a second."""
_COMMIT_S = 5.0
"""Half of the time after which a broker aborts a transaction (`transaction_timeout_ms`)."""
_COMMIT_INTERVALS = 3
"""A commit may be as many intervals late, and the lag, which is of what is committed, with it."""
_STALLED_S = 5.0
_RECENT_S = 300.0
_BUSY_RATIO = 0.9
_FREE_BYTES, _FREE_RATIO = 100 << 20, 0.02
"""The least room that `millrace doctor` accepts, too."""
_BROKER_FREE_RATIO = 0.1


class MetricRow(NamedTuple):
    """Represents a line of the table: a figure, its normal range, and whether it is in there."""

    name: str
    value: str
    normal: str
    is_normal: bool = True


def list_metric_rows(metrics: MetricsOutput) -> Sequence[MetricRow]:
    """Return the lines of the table.

    Those of queries are there if a worker serves them, those of a broker if one was asked.
    """
    return [
        *_list_worker_rows(metrics),
        *_list_processing_rows(metrics),
        *_list_state_rows(metrics),
        *_list_broker_rows(metrics),
        *_list_query_rows(metrics),
    ]


def _list_worker_rows(metrics: MetricsOutput) -> list[MetricRow]:
    """Return the table rows of workers, threads and tasks, with their recent failures."""
    replaced = metrics.threads_replaced or 0
    return [
        MetricRow(
            "workers",
            _join_counts(metrics.states)
            + (f", {metrics.unhealthy} unhealthy" if metrics.unhealthy else "")
            + (f", {len(metrics.unanswered)} without an answer" if metrics.unanswered else ""),
            "RUNNING, healthy",
            set(metrics.states) <= {"RUNNING"} and not metrics.unanswered and not metrics.unhealthy,
        ),
        MetricRow(
            "threads",
            f"{metrics.threads}, {metrics.threads_stuck} stuck"
            + (f", {replaced:.0f} replaced" if replaced else ""),
            "0 stuck or replaced",
            not metrics.threads_stuck and not replaced,
        ),
        MetricRow("tasks", _join_counts(metrics.tasks), ""),
        _create_event_row("last rebalance", metrics.rebalance_age_s),
        _create_event_row("last recovery", metrics.recovery_age_s),
    ]


def _list_processing_rows(metrics: MetricsOutput) -> list[MetricRow]:
    """Return the lines of records, commits and latencies."""
    interval_s = metrics.commit_interval_s or 0.0
    intervals_s = _COMMIT_INTERVALS * interval_s
    stalled_s = max(_STALLED_S, intervals_s)
    return [
        MetricRow("records in", _format_value(metrics.records_in_rate, "/s"), "as they arrive"),
        _create_lag_row(metrics, max(_LAG_S, intervals_s)),
        _create_row_with_upper_limit(
            "longest commit", metrics.commit_latency_max_s, _COMMIT_S, " s, of the last minute"
        ),
        MetricRow(
            "since the last commit",
            _format_value(metrics.commit_age_max_s, " s"),
            f"≤ {_format_value(stalled_s, ' s')} while records wait",
            (metrics.stalled_commit_age_s or 0.0) <= stalled_s,
        ),
        _create_row_with_upper_limit("latency, p99", metrics.end_to_end_latency_p99_s, 60, " s"),
        _create_row_with_upper_limit(
            "busiest thread", metrics.busiest_thread_ratio, _BUSY_RATIO, ""
        ),
        _create_row_with_upper_limit("dropped", metrics.dropped_rate, 0, "/s"),
        _create_row_with_upper_limit("dead letters", metrics.dead_letters_rate, 0, "/s"),
    ]


def _create_lag_row(metrics: MetricsOutput, most_s: float) -> MetricRow:
    """Return the line of the lag: a few seconds of what comes in, or a few thousand records.

    A lag that becomes less is that of an application which catches up, until it is a small one.
    """
    lag, rate = metrics.lag, metrics.records_in_rate
    is_normal = True
    if lag is not None:
        is_behind = lag > _FEW_RECORDS and lag > most_s * rate if rate else lag > _LAG_RECORDS
        is_falling = metrics.lag_growth is not None and metrics.lag_growth < 0
        is_normal = not is_behind or (is_falling and lag <= _LAG_RECORDS)
    normal = f"≤ {_format_value(most_s, ' s')} of records in"
    return MetricRow("lag", _format_value(lag, " records"), normal, is_normal)


def _list_state_rows(metrics: MetricsOutput) -> list[MetricRow]:
    """Return the lines of restores, standby tasks, and disks."""
    free, total = metrics.state_disk_free_bytes, metrics.state_disk_total_bytes
    # A compaction, or a store that is rebuilt, needs as much again as there is.
    needed = metrics.stores_disk_bytes or 0.0
    least = max(needed, min(_FREE_BYTES, _FREE_RATIO * (total or 0.0)))
    return [
        _create_row_with_upper_limit(
            "left to restore", metrics.restore_records_left, 0, " records"
        ),
        _create_row_with_upper_limit(
            "standby lag", metrics.standby_lag_max, _LAG_RECORDS, " records"
        ),
        MetricRow("stores on disk", _format_megabytes(metrics.stores_disk_bytes), ""),
        MetricRow(
            "free for them",
            _format_megabytes(free),
            f"≥ {_format_megabytes(least)}",
            free is None or free >= least,
        ),
    ]


def _list_broker_rows(metrics: MetricsOutput) -> list[MetricRow]:
    """Return the table rows of a broker, if one publishes metrics."""
    age_s, overdue = metrics.oldest_open_transaction_s, metrics.transactions_overdue or 0
    most_s = max(10.0, 2 * (metrics.commit_interval_s or 0.0))
    rows = [
        MetricRow(
            "oldest transaction",
            _format_value(age_s, " s") + (f", {overdue:.0f} overdue" if overdue else ""),
            f"≤ {_format_value(most_s, ' s')}",
            (age_s or 0.0) <= most_s and not overdue,
        )
    ]
    if (ratio := metrics.broker_disk_free_ratio) is not None:
        is_normal = ratio >= _BROKER_FREE_RATIO
        rows.append(
            MetricRow(
                "broker's disk, free", f"{ratio:.0%}", f"≥ {_BROKER_FREE_RATIO:.0%}", is_normal
            )
        )
    return rows


def _list_query_rows(metrics: MetricsOutput) -> list[MetricRow]:
    if metrics.queries_rate is None:
        return []
    return [
        MetricRow("queries", _format_value(metrics.queries_rate, "/s"), "as they are asked"),
        _create_row_with_upper_limit("failed queries", metrics.queries_failed_rate, 0, "/s"),
        MetricRow(
            "query latency, p99",
            _format_value(metrics.query_latency_p99_s, " s"),
            "short, but for long ranges",
        ),
    ]


def _create_event_row(name: str, age_s: float | None) -> MetricRow:
    """Return the line of what happens now and then, and should not have happened of late."""
    value = "none" if age_s is None else f"{_format_value(age_s, ' s')} ago"
    normal = f"none in {_RECENT_S:.0f} s"
    return MetricRow(name, value, normal, age_s is None or age_s > _RECENT_S)


def _create_row_with_upper_limit(
    name: str, value: float | None, most: float, unit: str
) -> MetricRow:
    normal = f"≤ {_format_value(most, unit)}" if most else "0"
    return MetricRow(name, _format_value(value, unit), normal, value is None or value <= most)


def _format_value(value: float | None, unit: str) -> str:
    if value is None:
        return "not known"
    text = f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.3g}"
    return text + unit


def _format_megabytes(value: float | None) -> str:
    return _format_value(None if value is None else value / _BYTES_IN_MB, " MB")


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "not known"
