"""Define figures under the names that dashboards for Kafka Streams query.

Prometheus' JMX exporter, with the rules that most installations use, writes the metric `M` of the
group `G` as the gauge `kafka_streams_G_M`, with `_` for `-`. Latencies are in milliseconds here, as
Kafka Streams has them; averages, maxima, rates and ratios are of the last 30 to 60 seconds.
"""

from __future__ import annotations

from streams.monitoring.definitions.client import CLIENT_DEFINITION
from streams.monitoring.definitions.kafka_names import define_figure
from streams.monitoring.definitions.rocksdb import ROCKSDB_DEFINITIONS, TASK_LABELS

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
)

TASK_GROUP = "stream-task-metrics"
_TASKS = (
    define_figure(
        TASK_GROUP, "process-total", "Records that the task has processed", TASK_LABELS, "records"
    ),
    *(
        define_figure(TASK_GROUP, metric, text, TASK_LABELS, unit)
        for metric, text, unit in (
            ("process-latency-avg", "Average milliseconds of slices of the task", "milliseconds"),
            ("process-latency-max", "Longest milliseconds of slices of the task", "milliseconds"),
            ("process-rate", "Records a second that the task has processed", "records"),
            ("active-process-ratio", "Share of the task in its thread's time in slices", ""),
            ("dropped-records-rate", "Records a second that the task has dropped", "records"),
            (
                "dropped-records-total",
                "Records that the task has dropped so far",
                "records",
            ),
        )
    ),
    define_figure(
        TASK_GROUP,
        "restore-remaining-records-total",
        "Changelog records that the stores of a task have left to restore, at most",
        TASK_LABELS,
        "records",
    ),
)

NODE_GROUP = "stream-processor-node-metrics"
_NODES = (
    define_figure(
        NODE_GROUP,
        "process-total",
        "Records that a source step of the task has got; other steps have no such figure",
        (*TASK_LABELS, "processor_node_id"),
        "records",
    ),
)

TOPIC_GROUP = "stream-topic-metrics"
_TOPICS = (
    define_figure(
        TOPIC_GROUP,
        "records-consumed-total",
        "Records that a source step of the task has got, those rolled back later included",
        (*TASK_LABELS, "processor_node_id", "topic"),
        "records",
    ),
)

KAFKA_STREAMS_DEFINITIONS = (
    CLIENT_DEFINITION,
    *_TIMINGS,
    *_BATCHES,
    *_TASKS,
    *_NODES,
    *_TOPICS,
    *ROCKSDB_DEFINITIONS,
)
