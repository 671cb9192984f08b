"""Define series of a healthy application and of faults, for promtool's tests of the alert rules."""

from __future__ import annotations

from dataclasses import dataclass, field

WORKER = 'job="millrace-worker",application="words",instance="w:1"'
BROKER = 'job="millrace-broker",instance="b:1"'
THREAD = f'{WORKER},thread="t"'
_LENGTH = 25

HEALTHY = {
    f"up{{{WORKER}}}": "1",
    f"up{{{BROKER}}}": "1",
    f"millrace_worker_live{{{WORKER}}}": "1",
    f"millrace_worker_healthy{{{WORKER}}}": "1",
    f'millrace_worker_state{{{WORKER},state="RUNNING"}}': "1",
    f'millrace_thread_stuck{{{THREAD},where=""}}': "0",
    f"millrace_thread_replaced_threads_total{{{THREAD}}}": "0",
    f"millrace_thread_tasks_corrupted_total{{{THREAD}}}": "0",
    f"millrace_thread_tasks_migrated_total{{{THREAD}}}": "0",
    f"millrace_thread_recoveries_total{{{THREAD}}}": "0",
    f"millrace_thread_rebalances_total{{{THREAD}}}": "1",
    f"millrace_thread_restored_records_total{{{THREAD}}}": "0",
    f"millrace_thread_dropped_total{{{THREAD}}}": "0",
    f"millrace_thread_dead_letters_total{{{THREAD}}}": "0",
    f"millrace_thread_records_total{{{THREAD}}}": "1000",
    f'kafka_streams_stream_thread_metrics_commit_latency_max{{{WORKER},thread_id="t"}}': "40",
    f'millrace_consumer_lag{{{THREAD},topic="lines",partition="0"}}': "0",
    f'millrace_end_to_end_latency_seconds_bucket{{{THREAD},le="60.0"}}': "1000",
    f'millrace_end_to_end_latency_seconds_bucket{{{THREAD},le="300.0"}}': "1000",
    f'millrace_end_to_end_latency_seconds_bucket{{{THREAD},le="+Inf"}}': "1000",
    f'millrace_task_process_seconds_total{{{THREAD},subtopology="0",task="0_0"}}': "10",
    f'millrace_task_process_seconds_total{{{THREAD},subtopology="0",task="0_1"}}': "10",
    f'millrace_task_process_seconds_total{{{THREAD},subtopology="0",task="0_2"}}': "10",
    f'millrace_task_process_seconds_total{{{THREAD},subtopology="0",task="0_3"}}': "10",
    f'millrace_query_latency_seconds_count{{{WORKER},status="200"}}': "1000",
    f'millrace_query_latency_seconds_count{{{WORKER},status="503"}}': "10",
    f'millrace_query_latency_seconds_bucket{{{WORKER},status="200",le="0.5"}}': "1000",
    f'millrace_query_latency_seconds_bucket{{{WORKER},status="200",le="2.5"}}': "1000",
    f'millrace_query_latency_seconds_bucket{{{WORKER},status="200",le="5.0"}}': "1000",
    f'millrace_query_latency_seconds_bucket{{{WORKER},status="200",le="+Inf"}}': "1000",
    f'millrace_query_requests_refused_total{{{WORKER},limit="requests"}}': "5",
    f'millrace_transactions_ended_total{{{BROKER},outcome="abort",cause="timeout"}}': "0",
    f'millrace_shard_failed{{{BROKER},shard="txn-0"}}': "0",
    f"millrace_partitions_offline{{{BROKER}}}": "0",
    f"millrace_transactions_overdue{{{BROKER}}}": "0",
    f"millrace_event_loop_busy_seconds_total{{{BROKER}}}": "10",
    f'millrace_log_flush_seconds_bucket{{{BROKER},le="1.0"}}': "10",
    f'millrace_log_flush_seconds_bucket{{{BROKER},le="10.0"}}': "10",
    f'millrace_log_flush_seconds_bucket{{{BROKER},le="+Inf"}}': "10",
    f'millrace_requests_waiting{{{BROKER},api="Produce"}}': "0",
    f"millrace_disk_free_bytes{{{BROKER}}}": "5000",
    f"millrace_disk_total_bytes{{{BROKER}}}": "10000",
}
"""The values, constant, of an application that has processed something and has no input."""
# The thread's last commit is ever longer ago where nothing arrives.
IDLE_COMMIT_AGE = f"millrace_thread_commit_age_seconds{{{THREAD}}}"


@dataclass(frozen=True, slots=True)
class RuleCase:
    """Describes a fault by the series that it changes, and the alerts that fire by then.

    Values are in promtool's notation, one for each step of `interval`; `at` is when to look.
    """

    changes: dict[str, str]
    alerts: frozenset[str]
    interval: str = "1m"
    at: str = "25m"
    absent: frozenset[str] = field(default_factory=frozenset)


def _changed(name: str, value: str) -> dict[str, str]:
    """Return a change of each healthy series of a figure."""
    found = [each for each in HEALTHY if each.startswith(name + "{")]
    assert found, name
    return dict.fromkeys(found, value)


def _fires(*alerts: str, **changes: str) -> RuleCase:
    series: dict[str, str] = {}
    for name, value in changes.items():
        series |= _changed(name, value)
    return RuleCase(series, frozenset(alerts))


def _rise(per_step: float, start: float = 0, steps: int = _LENGTH) -> str:
    """Return values that rise at each step of the interval."""
    return f"{start}+{per_step}x{steps}"


_LATENCY = "millrace_end_to_end_latency_seconds_bucket"
_QUERY_LATENCY = "millrace_query_latency_seconds_bucket"
_FLUSH = "millrace_log_flush_seconds_bucket"
_TASK_SECONDS = f'millrace_task_process_seconds_total{{{THREAD},subtopology="0",task="0_0"}}'
_WEEK_STEPS = 600

CASES: dict[str, RuleCase] = {
    "no input": RuleCase({}, frozenset(), at="3h"),
    "a worker was killed": RuleCase(
        {f"up{{{WORKER}}}": "0"},
        frozenset({"MillraceWorkerDown"}),
        absent=frozenset({f"{{{WORKER}", f"{{{THREAD}"}),
    ),
    "the broker was killed": RuleCase(
        {f"up{{{BROKER}}}": "0", **_changed("millrace_worker_healthy", "0")},
        frozenset({"MillraceBrokerDown", "MillraceWorkerUnhealthy"}),
        absent=frozenset({f"{{{BROKER}"}),
    ),
    "a worker hangs": _fires(
        "MillraceWorkerNotLive", millrace_worker_live="0", millrace_worker_healthy="0"
    ),
    "the broker is away": _fires("MillraceWorkerUnhealthy", millrace_worker_healthy="0"),
    "a thread fails again and again": _fires(
        "MillraceThreadFailed", millrace_thread_replaced_threads_total=_rise(1)
    ),
    "a changelog is deleted again and again": _fires(
        "MillraceStoresCorrupted",
        "MillraceRecoveries",
        millrace_thread_tasks_corrupted_total=_rise(12),
        millrace_thread_recoveries_total=_rise(12),
    ),
    "one recovery in five minutes": _fires(
        millrace_thread_recoveries_total=_rise(0.2), millrace_thread_tasks_migrated_total=_rise(0.2)
    ),
    "the transactions of one producer time out": _fires(
        "MillraceTransactionsTimeOut", millrace_transactions_ended_total=_rise(6)
    ),
    "a few transactions time out after kills": _fires(
        millrace_transactions_ended_total="0 1 3 3x25"
    ),
    "a shard's log is damaged": _fires("MillraceCoordinatorShardFailed", millrace_shard_failed="1"),
    "a partition is offline": _fires("MillracePartitionsOffline", millrace_partitions_offline="1"),
    "a slow function": RuleCase(
        {
            f'millrace_thread_stuck{{{THREAD},where=""}}': "_",
            f'millrace_thread_stuck{{{THREAD},where="step"}}': "1",
            IDLE_COMMIT_AGE: _rise(60),
            **_changed("millrace_consumer_lag", "5"),
            **_changed("millrace_worker_live", "0"),
            **_changed("millrace_worker_healthy", "0"),
        },
        frozenset({"MillraceThreadStuck", "MillraceCommitsStalled", "MillraceWorkerNotLive"}),
    ),
    "commits are slow": _fires(
        "MillraceCommitsSlow", kafka_streams_stream_thread_metrics_commit_latency_max="12000"
    ),
    "the lag grows": RuleCase(
        {IDLE_COMMIT_AGE: "1", **_changed("millrace_consumer_lag", _rise(1_000, 10_000))},
        frozenset({"MillraceLagGrows"}),
    ),
    "the lag falls": RuleCase(
        {IDLE_COMMIT_AGE: "1", **_changed("millrace_consumer_lag", "1000000-1000x25")}, frozenset()
    ),
    "results are late": RuleCase(
        {
            each: _rise(60) if 'le="60.0"' not in each else "1000"
            for each in HEALTHY
            if each.startswith(_LATENCY)
        },
        frozenset({"MillraceResultsLate"}),
    ),
    "records are dropped": _fires(
        "MillraceRecordsDropped", millrace_thread_dropped_total=_rise(120)
    ),
    "a flood of dead letters": _fires(
        "MillraceDeadLetters",
        millrace_thread_dead_letters_total=_rise(120),
        millrace_thread_dropped_total=_rise(120),
    ),
    "a fencing storm": _fires(
        "MillraceFencing",
        "MillraceRecoveries",
        millrace_thread_tasks_migrated_total=_rise(4),
        millrace_thread_recoveries_total=_rise(4),
    ),
    "a rebalance": RuleCase(
        {
            **_changed("millrace_thread_tasks_migrated_total", "0x10 5x10"),
            **_changed("millrace_thread_recoveries_total", "0x10 5x10"),
            **_changed("millrace_thread_rebalances_total", "1x10 6x10"),
        },
        frozenset(),
        at="13m",
    ),
    "a transaction is overdue": _fires(
        "MillraceTransactionHangs", millrace_transactions_overdue="1"
    ),
    "a transaction hangs in a partition": RuleCase(
        {
            f'millrace_log_open_transaction_seconds{{{BROKER},topic="t",partition="0"}}': _rise(60),
        },
        frozenset({"MillraceTransactionHangs"}),
    ),
    "a transaction is open for a minute": RuleCase(
        {f'millrace_log_open_transaction_seconds{{{BROKER},topic="t",partition="0"}}': "60"},
        frozenset(),
    ),
    "the broker is busy": _fires(
        "MillraceBrokerBusy", millrace_event_loop_busy_seconds_total=_rise(54)
    ),
    "a slow disk": RuleCase(
        {
            each: _rise(60) if 'le="1.0"' not in each else "10"
            for each in HEALTHY
            if each.startswith(_FLUSH)
        },
        frozenset({"MillraceLogFlushSlow"}),
    ),
    "produce requests wait": _fires(
        "MillraceProduceRequestsWait", millrace_requests_waiting="2000"
    ),
    "a full disk": _fires("MillraceBrokerDiskFull", millrace_disk_free_bytes="500"),
    "a standby lags": RuleCase(
        {f'millrace_standby_lag{{{THREAD},task="0_1",store="counts"}}': "20000"},
        frozenset({"MillraceStandbyBehind"}),
    ),
    "a partition is on no worker that answers": RuleCase(
        {
            f'millrace_query_latency_seconds_count{{{WORKER},status="200"}}': _rise(54),
            f'millrace_query_latency_seconds_count{{{WORKER},status="503"}}': _rise(6),
        },
        frozenset({"MillraceQueriesFail"}),
    ),
    "a few queries fail in a rebalance": RuleCase(
        {
            f'millrace_query_latency_seconds_count{{{WORKER},status="200"}}': _rise(60),
            f'millrace_query_latency_seconds_count{{{WORKER},status="503"}}': "0x10 60x15",
        },
        frozenset(),
    ),
    "more is asked than a worker answers": _fires(
        "MillraceQueriesRefused", millrace_query_requests_refused_total=_rise(120)
    ),
    "queries take long": RuleCase(
        {
            f'{_QUERY_LATENCY}{{{WORKER},status="200",le="5.0"}}': _rise(60),
            f'{_QUERY_LATENCY}{{{WORKER},status="200",le="+Inf"}}': _rise(60),
        },
        frozenset({"MillraceQueriesSlow"}),
    ),
    "a short restore": RuleCase(
        {f'millrace_restore_records_left{{{THREAD},task="0_1",store="counts"}}': "1000"},
        frozenset(),
    ),
    "a long restore": RuleCase(
        {f'millrace_restore_records_left{{{THREAD},task="0_1",store="counts"}}': "1000000"},
        frozenset({"MillraceRestoreSlow"}),
        at="45m",
    ),
    "one key has most records": RuleCase(
        {_TASK_SECONDS: _rise(54)}, frozenset({"MillraceTasksSkewed"})
    ),
    "all tasks are busy alike": _fires(millrace_task_process_seconds_total=_rise(54)),
    "less than the week before": RuleCase(
        _changed("millrace_thread_records_total", f"0+600x600 {600 * 600}+10x{_WEEK_STEPS}"),
        frozenset({"MillraceThroughputFell"}),
        interval="10m",
        at=f"{10 * 1_200}m",
    ),
    "later than the week before": RuleCase(
        {
            f'{_LATENCY}{{{THREAD},le="60.0"}}': f"0+600x600 {600 * 600}+0x{_WEEK_STEPS}",
            f'{_LATENCY}{{{THREAD},le="300.0"}}': f"0+600x{_WEEK_STEPS + 600}",
            f'{_LATENCY}{{{THREAD},le="+Inf"}}': f"0+600x{_WEEK_STEPS + 600}",
        },
        frozenset({"MillraceLatencyRose"}),
        interval="10m",
        at=f"{10 * 1_200}m",
    ),
    "rebalances all day": RuleCase(
        {
            **_changed("millrace_thread_rebalances_total", _rise(2, steps=288)),
            **_changed("millrace_thread_restored_records_total", _rise(1_000, steps=288)),
        },
        frozenset({"MillraceRestoresOften"}),
        interval="10m",
        at="2d",
    ),
}


def _count_minutes(duration: str) -> int:
    return int(duration[:-1]) * {"m": 1, "h": 60, "d": 1_440}[duration[-1]]


def list_series(case: RuleCase) -> dict[str, str]:
    """Return all series of a case with their values, those of a target that is away left out."""
    steps = _count_minutes(case.at) // _count_minutes(case.interval)
    idle = {IDLE_COMMIT_AGE: _rise(60, steps=steps)}
    series = {
        name: value if any(mark in value for mark in "x_") else f"{value}x{steps}"
        for name, value in (HEALTHY | idle | case.changes).items()
    }
    return {
        name: value
        for name, value in series.items()
        if name.startswith("up{") or not any(labels in name for labels in case.absent)
    }
