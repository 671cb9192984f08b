"""Define the dashboards of an application, of a worker, and of its stores."""

from __future__ import annotations

from ops.generate.dashboards import Dashboard, Panel
from streams.monitoring.definitions.rocksdb import ROCKSDB_LABELS

_APP = 'application=~"$application"'
_WORKER = f'{_APP},instance=~"$instance"'
_VARIABLES = {"application": "millrace_worker_live"}
_STORE = "".join(f"{{{{{each}}}}}" for each in ROCKSDB_LABELS)
"""The name of a store: it is the value of one of these labels, and the others are empty."""
_WORKER_VARIABLES = _VARIABLES | {"instance": "millrace_worker_live"}


def _build_quantile_query(quantile: float, figure: str, selector: str) -> str:
    rate = f"rate({figure}_bucket{{{selector}}}[5m])"
    return f"histogram_quantile({quantile}, sum by (le) ({rate}))"


APPLICATION = Dashboard(
    name="application",
    title="Millrace: an application",
    variables=_VARIABLES,
    panels=(
        Panel(
            title="Workers by state",
            queries={"{{state}}": f"sum by (state) (millrace_worker_state{{{_APP}}})"},
        ),
        Panel(
            title="Unhealthy, not live",
            queries={
                "unhealthy": f"count(millrace_worker_healthy{{{_APP}}} == 0) or vector(0)",
                "not live": f"count(millrace_worker_live{{{_APP}}} == 0) or vector(0)",
            },
        ),
        Panel(
            title="Records a second, by topic",
            unit="rps",
            queries={
                "{{topic}}": f"sum by (topic) (rate(millrace_step_records_total{{{_APP}}}[5m]))"
            },
        ),
        Panel(
            title="Lag by topic",
            description="Normal: about what arrives between two commits.",
            queries={"{{topic}}": f"sum by (topic) (millrace_consumer_lag{{{_APP}}})"},
        ),
        Panel(
            title="The ten partitions with the most lag",
            queries={
                "{{topic}} {{partition}}": "topk(10, sum by (topic, partition) "
                f"(millrace_consumer_lag{{{_APP}}}))"
            },
        ),
        Panel(
            title="From a record's timestamp until its results can be read",
            unit="s",
            description="Of the first record of each slice; old records make it large.",
            queries={
                "p50": _build_quantile_query(0.5, "millrace_end_to_end_latency_seconds", _APP),
                "p99": _build_quantile_query(0.99, "millrace_end_to_end_latency_seconds", _APP),
            },
        ),
        Panel(
            title="From a query over HTTP until its response has left",
            unit="s",
            needs="where queries are served",
            description="With the time that a client takes to read a long range, and with what "
            "workers ask each other.",
            queries={
                "p50": _build_quantile_query(0.5, "millrace_query_latency_seconds", _APP),
                "p99": _build_quantile_query(0.99, "millrace_query_latency_seconds", _APP),
            },
        ),
        Panel(
            title="Commits a second",
            unit="ops",
            queries={
                "commits": f"sum(rate(millrace_thread_commits_total{{{_APP}}}[5m]))",
                "early": f"sum(rate(millrace_thread_early_commits_total{{{_APP}}}[5m]))",
            },
        ),
        Panel(
            title="Dropped, late and dead-letter records a second",
            unit="rps",
            description="Normal: 0.",
            queries={
                "dropped": f"sum(rate(millrace_thread_dropped_total{{{_APP}}}[5m]))",
                "late": f"sum(rate(millrace_thread_late_total{{{_APP}}}[5m]))",
                "dead letters": f"sum(rate(millrace_thread_dead_letters_total{{{_APP}}}[5m]))",
            },
        ),
        Panel(
            title="Recoveries and rebalances in five minutes",
            description="Normal: 0, but for starts and stops of workers.",
            queries={
                "recoveries": f"sum(increase(millrace_thread_recoveries_total{{{_APP}}}[5m]))",
                "tasks migrated": "sum(increase("
                f"millrace_thread_tasks_migrated_total{{{_APP}}}[5m]))",
                "tasks corrupted": "sum(increase("
                f"millrace_thread_tasks_corrupted_total{{{_APP}}}[5m]))",
                "rebalances": f"sum(increase(millrace_thread_rebalances_total{{{_APP}}}[5m]))",
            },
        ),
        Panel(
            title="Time of tasks by part of the topology",
            unit="percentunit",
            description="1 is one CPU.",
            queries={
                "{{subtopology}}": "sum by (subtopology) "
                f"(rate(millrace_task_process_seconds_total{{{_APP}}}[5m]))"
            },
        ),
    ),
)

WORKER = Dashboard(
    name="worker",
    title="Millrace: a worker",
    variables=_WORKER_VARIABLES,
    panels=(
        Panel(
            title="Tasks by state",
            queries={
                "{{thread}} {{state}}": "sum by (thread, state) "
                f"(millrace_thread_tasks{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Threads that are stuck",
            description="Normal: 0.",
            queries={"{{thread}} {{where}}": f"millrace_thread_stuck{{{_WORKER}}}"},
        ),
        Panel(
            title="Records a second, by thread",
            unit="rps",
            queries={
                "{{thread}}": "sum by (thread) "
                f"(rate(millrace_thread_records_total{{{_WORKER}}}[5m]))"
            },
        ),
        Panel(
            title="Process ratio: the share of time in the steps of tasks",
            unit="percentunit",
            description="Near 1, the application's functions limit the thread.",
            queries={
                "{{thread}}": "sum by (thread) "
                f"(rate(millrace_task_process_seconds_total{{{_WORKER}}}[5m]))"
            },
        ),
        Panel(
            title="The ten busiest tasks",
            unit="percentunit",
            queries={
                "{{task}}": "topk(10, sum by (task) "
                f"(rate(millrace_task_process_seconds_total{{{_WORKER}}}[5m])))"
            },
        ),
        Panel(
            title="From a record's timestamp until a step had it, at most",
            unit="ms",
            description="Of source steps, and of those that nothing follows; sampled.",
            queries={
                "{{processor_node_id}}": "max by (processor_node_id) "
                f"(kafka_streams_stream_processor_node_metrics_record_e2e_latency_max{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Bytes read and written a second, by topic",
            unit="Bps",
            queries={
                "{{topic}} read": "sum by (topic) "
                f"(rate(kafka_streams_stream_topic_metrics_bytes_consumed_total{{{_WORKER}}}[5m]))",
                "{{topic}} written": "sum by (topic) "
                f"(rate(kafka_streams_stream_topic_metrics_bytes_produced_total{{{_WORKER}}}[5m]))",
            },
        ),
        Panel(
            title="Share of the time in restores and standby tasks",
            unit="percentunit",
            queries={
                f"{{{{thread_id}}}} {said}": "sum by (thread_id) "
                f"(kafka_streams_stream_state_updater_metrics_{metric}_ratio{{{_WORKER}}})"
                for said, metric in (("restores", "active_restore"), ("standby", "standby_update"))
            },
        ),
        Panel(
            title="Records behind stream time, at most",
            unit="ms",
            needs="at the recording level debug",
            queries={
                "{{task_id}}": "max by (task_id) "
                f"(kafka_streams_stream_task_metrics_record_lateness_max{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Seconds since the last commit",
            unit="s",
            description="It rises while there is no input.",
            queries={"{{thread}}": f"millrace_thread_commit_age_seconds{{{_WORKER}}}"},
        ),
        Panel(
            title="Punctuations a second",
            unit="ops",
            queries={
                "{{thread}}": "sum by (thread) "
                f"(rate(millrace_thread_punctuations_total{{{_WORKER}}}[5m]))"
            },
        ),
        Panel(
            title="Queries over HTTP a second, by status",
            unit="reqps",
            needs="where queries are served",
            description="503: not answered in time, or refused. 0: the client had gone.",
            queries={
                "{{status}}": "sum by (status) "
                f"(rate(millrace_query_latency_seconds_count{{{_WORKER}}}[5m]))"
            },
        ),
        Panel(
            title="Queries over HTTP that are being answered, by worker",
            needs="where queries are served",
            description="Beyond 128 a worker refuses them with 503.",
            queries={
                "{{instance}}": f"sum by (instance) (millrace_query_requests_running{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Recoveries in five minutes, by cause",
            description="Normal: 0.",
            queries={
                "all": f"sum(increase(millrace_thread_recoveries_total{{{_WORKER}}}[5m]))",
                "outcome unknown": "sum(increase("
                f"millrace_thread_outcomes_unknown_total{{{_WORKER}}}[5m]))",
                "value refused": "sum(increase("
                f"millrace_thread_values_refused_total{{{_WORKER}}}[5m]))",
                "write refused": "sum(increase("
                f"millrace_thread_writes_refused_total{{{_WORKER}}}[5m]))",
            },
        ),
    ),
)


def _build_query_by_store(metric: str) -> str:
    """Return the query of a property of RocksDB, by store."""
    name = f"kafka_streams_stream_state_metrics_{metric}"
    return f"sum by ({', '.join(ROCKSDB_LABELS)}) ({name}{{{_WORKER}}})"


STORES = Dashboard(
    name="stores",
    title="Millrace: stores and RocksDB",
    variables=_WORKER_VARIABLES,
    panels=(
        Panel(
            title="Entries by store",
            needs="where the topology has stores",
            queries={"{{store}}": f"sum by (store) (millrace_store_entries{{{_WORKER}}})"},
        ),
        Panel(
            title="Bytes on disk by store",
            unit="bytes",
            needs="where the topology has stores",
            queries={"{{store}}": f"sum by (store) (millrace_store_disk_bytes{{{_WORKER}}})"},
        ),
        Panel(
            title="Operations a second of stores",
            unit="ops",
            needs="at the recording level debug",
            queries={
                f"{operation} {_STORE}": _build_query_by_store(f"{operation}_rate")
                for operation in ("put", "get", "flush", "commit")
            },
        ),
        Panel(
            title="Longest operation of stores",
            unit="ns",
            needs="at the recording level debug",
            queries={
                f"{operation} {_STORE}": _build_query_by_store(f"{operation}_latency_max")
                for operation in ("put", "get", "flush", "commit")
            },
        ),
        Panel(
            title="Open iterators by store",
            needs="where the topology has stores",
            description="An iterator that is never closed holds files.",
            queries={_STORE: _build_query_by_store("num_open_iterators")},
        ),
        Panel(
            title="Keys of a commit that the object cache had",
            unit="percentunit",
            needs="at the recording level debug",
            queries={
                "{{record_cache_id}}": "avg by (record_cache_id) "
                f"(kafka_streams_stream_record_cache_metrics_hit_ratio_avg{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Memory of memtables by store",
            unit="bytes",
            needs="where stores are on disk",
            queries={_STORE: _build_query_by_store("size_all_mem_tables")},
        ),
        Panel(
            title="Block cache by store",
            unit="bytes",
            needs="where stores are on disk",
            description="Stores of a worker share one cache: its use counts for each.",
            queries={_STORE: _build_query_by_store("block_cache_usage")},
        ),
        Panel(
            title="Compactions that are pending, bytes",
            unit="bytes",
            needs="where stores are on disk",
            queries={_STORE: _build_query_by_store("estimate_pending_compaction_bytes")},
        ),
        Panel(
            title="Errors in RocksDB's background",
            needs="where stores are on disk",
            description="Normal: 0. A full disk or a failing one is the usual cause.",
            queries={_STORE: _build_query_by_store("background_errors")},
        ),
        Panel(
            title="Records left to restore",
            needs="while stores are restored",
            queries={
                "{{store}} {{task}}": "sum by (store, task) "
                f"(millrace_restore_records_left{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Seconds left to restore",
            unit="s",
            needs="while stores are restored",
            queries={
                "{{store}} {{task}}": "max by (store, task) "
                f"(millrace_restore_seconds_left{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Standby lag",
            description="Above 10 000 a standby counts as not caught up.",
            needs="where there are standby tasks",
            queries={
                "{{store}} {{task}}": f"max by (store, task) (millrace_standby_lag{{{_WORKER}}})"
            },
        ),
        Panel(
            title="Changelog records restored and followed, a second",
            unit="rps",
            queries={
                "restored": f"sum(rate(millrace_thread_restored_records_total{{{_WORKER}}}[5m]))",
                "standby": f"sum(rate(millrace_thread_standby_records_total{{{_WORKER}}}[5m]))",
            },
        ),
    ),
)
