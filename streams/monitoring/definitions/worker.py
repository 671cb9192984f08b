"""Define a worker's own figures: counters end in `_total`, and times are in seconds."""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition

COUNTER_HELP = {
    "records": "Records that were processed, those that were rolled back later included",
    "dropped": "Records that were passed over: no key or value, skipped by a handler, or late",
    "late": "Dropped records whose window had closed, once for each window that missed one",
    "dead_letters": "Dead letters that were written, repeated ones included",
    "punctuations": "Timers of processors that were called",
    "commits": "Commits that had something to commit",
    "early_commits": "Commits before their interval: requested by a processor, or memory was full",
    "rebalances": "Assignments that the thread took from its group",
    "restored_records": "Changelog records that were read to restore stores",
    "standby_records": "Changelog records that stores of standby and warm-up tasks have got",
    "offsets_out_of_range": "Positions outside of their topic, reset by offset_out_of_range",
    "records_out_of_range": "Records that were skipped by such resets and will never be read",
    "keys_sampled": "Keys of inputs of joins and steps with stores that were compared with murmur2",
    "keys_misplaced": "Those of them that were in another partition than murmur2 chooses",
    "recoveries": "Times that the thread started over from what is committed",
    "outcomes_unknown": "Recoveries since a call of the broker failed with unknown effect",
    "tasks_migrated": "Recoveries since another member has, or will get, the tasks",
    "tasks_corrupted": "Recoveries in which a store was rebuilt from its changelog",
    "values_refused": "Transactions that were repeated to find the value that a serde refuses",
    "writes_refused": "Transactions that were repeated since a broker has refused a record",
    "replaced_threads": "Times that uncaught_exception_handler replaced the thread",
}
"""The help text of each counter of a stream thread."""

_KAFKA_NAMES = {
    "records": "kafka.streams:type=stream-thread-metrics,attribute=process-total",
    "dropped": "kafka.streams:type=stream-task-metrics,attribute=dropped-records-total",
    "punctuations": "kafka.streams:type=stream-thread-metrics,attribute=punctuate-total",
    "commits": "kafka.streams:type=stream-thread-metrics,attribute=commit-total",
    "restored_records": "kafka.streams:type=stream-task-metrics,attribute=restore-total",
    "standby_records": "kafka.streams:type=stream-task-metrics,attribute=update-total",
}
_ANSWERS = {
    "dropped": "skipped-records-rate",
    "tasks_corrupted": "task-corrupted-rate",
    "replaced_threads": "thread state ERROR; failed-stream-threads",
}
_COUNTERS = tuple(
    FigureDefinition(
        name=f"millrace_thread_{name}_total",
        kind="counter",
        help=help_text,
        group="thread",
        unit="records" if name.endswith("records") else "",
        labels=("thread",),
        kafka_name=_KAFKA_NAMES.get(name, ""),
        answers=_ANSWERS.get(name, ""),
    )
    for name, help_text in COUNTER_HELP.items()
)
_WORKER = (
    FigureDefinition(
        name="millrace_worker_state",
        kind="gauge",
        help="1 for the state that the worker is in",
        group="worker",
        labels=("state",),
        kafka_name="kafka.streams:type=stream-metrics,attribute=client-state",
        answers="application state",
    ),
    FigureDefinition(
        name="millrace_worker_healthy",
        kind="gauge",
        help="1 if records are processed or could be, as /health says",
        group="worker",
    ),
    FigureDefinition(
        name="millrace_worker_live",
        kind="gauge",
        help="1 if a new process would not help, as /live says",
        group="worker",
    ),
    FigureDefinition(
        name="millrace_worker_commit_interval_seconds",
        kind="gauge",
        help="The setting commit_interval_ms, to compare the ages of commits with",
        group="worker",
        unit="seconds",
    ),
    FigureDefinition(
        name="millrace_state_disk_free_bytes",
        kind="gauge",
        help="Bytes that are free on the disk of the state directory",
        group="worker",
        unit="bytes",
    ),
    FigureDefinition(
        name="millrace_state_disk_total_bytes",
        kind="gauge",
        help="Bytes that the disk of the state directory has",
        group="worker",
        unit="bytes",
    ),
)
_THREADS = (
    FigureDefinition(
        name="millrace_thread_stuck",
        kind="gauge",
        help="1 if the thread has been in a function for stuck_after_ms, with whose code it is",
        group="thread",
        labels=("thread", "where"),
    ),
    FigureDefinition(
        name="millrace_thread_tasks",
        kind="gauge",
        help="Tasks of the thread, standby tasks included, by their state",
        group="thread",
        labels=("thread", "state"),
    ),
    FigureDefinition(
        name="millrace_thread_commit_age_seconds",
        kind="gauge",
        help="Seconds since the thread's last commit",
        group="thread",
        unit="seconds",
        labels=("thread",),
    ),
    FigureDefinition(
        name="millrace_thread_rebalance_age_seconds",
        kind="gauge",
        help="Seconds since the last rebalance of the thread, those of its first minute left out",
        group="thread",
        unit="seconds",
        labels=("thread",),
    ),
    FigureDefinition(
        name="millrace_thread_recovery_age_seconds",
        kind="gauge",
        help="Seconds since the thread last started over from what is committed",
        group="thread",
        unit="seconds",
        labels=("thread",),
    ),
    FigureDefinition(
        name="millrace_step_records_total",
        kind="counter",
        help="Records that a source step has read of its topic",
        group="thread",
        unit="records",
        labels=("thread", "step", "topic"),
        kafka_name="kafka.streams:type=stream-topic-metrics,attribute=records-consumed-total",
    ),
    FigureDefinition(
        name="millrace_task_process_seconds_total",
        kind="counter",
        help="Seconds in which the steps of a task have processed records and called timers",
        group="task",
        unit="seconds",
        labels=("thread", "subtopology", "task"),
        kafka_name="kafka.streams:type=stream-task-metrics,attribute=process-latency-avg",
    ),
    FigureDefinition(
        name="millrace_end_to_end_latency_seconds",
        kind="histogram",
        help="From a record's timestamp until its results can be read, of one record a slice",
        group="thread",
        unit="seconds",
        labels=("thread",),
        kafka_name="kafka.streams:type=stream-processor-node-metrics,attribute=record-e2e-latency-avg",
    ),
    FigureDefinition(
        name="millrace_consumer_lag",
        kind="gauge",
        help="Records of an input partition after what is committed, as of the last fetch",
        group="thread",
        unit="records",
        labels=("thread", "topic", "partition"),
        kafka_name="kafka.consumer:type=consumer-fetch-manager-metrics,attribute=records-lag",
    ),
)
_QUERIES = (
    FigureDefinition(
        name="millrace_query_latency_seconds",
        kind="histogram",
        help="From a request of the query port until its response has left, by HTTP status",
        group="query",
        unit="seconds",
        labels=("status",),
    ),
    FigureDefinition(
        name="millrace_query_requests_running",
        kind="gauge",
        help="Requests of the query port that are being answered; 128 of each scope are the most",
        group="query",
    ),
    FigureDefinition(
        name="millrace_query_requests_refused_total",
        kind="counter",
        help="Connections and requests of the query port that a limit has refused: of connections, "
        "of requests at a time, of reads at a time that may wait, of functions of registered "
        "queries at a time",
        group="query",
        labels=("limit",),
    ),
    FigureDefinition(
        name="millrace_query_functions_overdue",
        kind="gauge",
        help="Functions of registered queries that run on after the time of those who have asked",
        group="query",
        labels=("query",),
    ),
)
_STORES = (
    FigureDefinition(
        name="millrace_store_entries",
        kind="gauge",
        help="About how many entries a store of an active task has",
        group="store",
        labels=("task", "store"),
        kafka_name="kafka.streams:type=stream-state-metrics,attribute=estimate-num-keys",
    ),
    FigureDefinition(
        name="millrace_store_disk_bytes",
        kind="gauge",
        help="Bytes of the files of a store, its write-ahead log included; 0 for one in memory",
        group="store",
        unit="bytes",
        labels=("task", "store"),
        kafka_name="kafka.streams:type=stream-state-metrics,attribute=total-sst-files-size",
    ),
)
_STORE_OF_THREAD = ("thread", "task", "store")
_RESTORES = (
    FigureDefinition(
        name="millrace_restore_records_left",
        kind="gauge",
        help="Changelog records that a store has left to restore, at most",
        group="restore",
        unit="records",
        labels=_STORE_OF_THREAD,
        kafka_name="kafka.streams:type=stream-task-metrics,attribute=restore-remaining-records-total",
    ),
    FigureDefinition(
        name="millrace_restore_records_per_second",
        kind="gauge",
        help="Changelog records that the restore of a store reads in a second",
        group="restore",
        unit="records",
        labels=_STORE_OF_THREAD,
        kafka_name="kafka.streams:type=stream-task-metrics,attribute=restore-rate",
    ),
    FigureDefinition(
        name="millrace_restore_seconds_left",
        kind="gauge",
        help="Seconds that the restore of a store takes at this rate",
        group="restore",
        unit="seconds",
        labels=_STORE_OF_THREAD,
    ),
    FigureDefinition(
        name="millrace_standby_lag",
        kind="gauge",
        help="Offsets of its changelog that a store of a standby or warm-up task is behind",
        group="restore",
        unit="records",
        labels=_STORE_OF_THREAD,
    ),
)
WORKER_DEFINITIONS = (*_WORKER, *_COUNTERS, *_THREADS, *_RESTORES, *_STORES, *_QUERIES)
