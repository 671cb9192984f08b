"""Define figures under the names that dashboards for Kafka Streams query.

Prometheus' JMX exporter, with the rules that most installations use, writes the metric `M` of the
group `G` as the gauge `kafka_streams_G_M`, with `_` for `-`. Latencies are in milliseconds here, as
Kafka Streams has them; averages, maxima, rates and ratios are of the last 30 to 60 seconds.
"""

from __future__ import annotations

from streams.monitoring.definitions.client import CLIENT_DEFINITION, CLIENT_STATE_DEFINITIONS
from streams.monitoring.definitions.kafka_names import define_figure
from streams.monitoring.definitions.rocksdb import ROCKSDB_DEFINITIONS
from streams.monitoring.definitions.store_operations import STORE_OPERATION_DEFINITIONS
from streams.monitoring.definitions.tasks import TASK_DEFINITIONS

_THREAD_LABELS = ("thread_id",)

THREAD_GROUP = "stream-thread-metrics"
TIMED_CALLS = {
    "commit": "commits that had something to commit",
    "poll": "polls of the consumer for records",
    "process": "slices of records; their rate and total count records",
    "punctuate": "calls of the timers that were due after a slice",
}
"""The calls of a thread that are timed, in words, by the first word of Kafka Streams' names."""
_TIMING_FIGURES = (
    ("latency-avg", "Average milliseconds of", "milliseconds"),
    ("latency-max", "Longest milliseconds of", "milliseconds"),
    ("rate", "Number a second of", ""),
    ("total", "Number since the start of", ""),
    ("ratio", "Share of the thread's time in", ""),
)
_ANSWERS = {"commit-latency-avg": "txn-commit-time-avg, txn-abort-time-avg"}
_TIMINGS = tuple(
    define_figure(
        *(THREAD_GROUP, f"{call}-{metric}", f"{said} {what}", _THREAD_LABELS, unit),
        answers=_ANSWERS.get(f"{call}-{metric}", ""),
    )
    for call, what in TIMED_CALLS.items()
    for metric, said, unit in _TIMING_FIGURES
)
_BATCHES = (
    define_figure(
        THREAD_GROUP,
        "poll-records-avg",
        "Average records that a poll returned",
        _THREAD_LABELS,
        "records",
    ),
    define_figure(
        THREAD_GROUP,
        "poll-records-max",
        "Most records that a poll returned",
        _THREAD_LABELS,
        "records",
    ),
    define_figure(
        THREAD_GROUP,
        "process-records-avg",
        "Average records of a slice that a task processed",
        _THREAD_LABELS,
        "records",
    ),
    define_figure(
        THREAD_GROUP,
        "process-records-max",
        "Most records of a slice that a task processed",
        _THREAD_LABELS,
        "records",
    ),
    define_figure(
        THREAD_GROUP,
        "thread-start-time",
        "When the thread started, in milliseconds since 1970",
        _THREAD_LABELS,
        "milliseconds",
    ),
    define_figure(
        THREAD_GROUP,
        "thread-state",
        "Kafka Streams' number of the thread's state: 0 created, 3 rebalancing, 4 running, 6 ended",
        (*_THREAD_LABELS, "process_id"),
    ),
    define_figure(
        THREAD_GROUP,
        "blocked-time-ns-total",
        "Nanoseconds in which the thread has waited for polls and commits",
        _THREAD_LABELS,
        "nanoseconds",
    ),
    *(
        define_figure(THREAD_GROUP, f"task-{done}-{metric}", text, _THREAD_LABELS, "tasks")
        for done in ("created", "closed")
        for metric, text in (
            ("rate", f"Tasks a second that the thread has {done}, standby tasks included"),
            ("total", f"Tasks that the thread has {done}, standby tasks included"),
        )
    ),
)

UPDATER_GROUP = "stream-state-updater-metrics"
_UPDATER = tuple(
    define_figure(UPDATER_GROUP, metric, text, _THREAD_LABELS, unit)
    for metric, text, unit in (
        ("restore-records-rate", "Changelog records a second for restores and standbys", "records"),
        ("restore-call-rate", "Batches of changelog records a second that were loaded", ""),
        ("active-restore-ratio", "Share of the time in which stores were restored", ""),
        ("standby-update-ratio", "Share of the time in which standby tasks followed", ""),
        ("idle-ratio", "Share of the time in which neither was done", ""),
        ("active-restoring-tasks", "Active tasks whose stores are restored at present", "tasks"),
        ("standby-updating-tasks", "Standby and warm-up tasks that follow changelogs", "tasks"),
    )
)

KAFKA_STREAMS_DEFINITIONS = (
    CLIENT_DEFINITION,
    *CLIENT_STATE_DEFINITIONS,
    *_TIMINGS,
    *_BATCHES,
    *_UPDATER,
    *TASK_DEFINITIONS,
    *ROCKSDB_DEFINITIONS,
    *STORE_OPERATION_DEFINITIONS,
)
