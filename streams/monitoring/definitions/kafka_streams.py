"""Define figures under the names that dashboards for Kafka Streams query.

Prometheus' JMX exporter, with the rules that most installations use, writes the metric `M` of the
group `G` as the gauge `kafka_streams_G_M`, with `_` for `-`. Latencies are in milliseconds here, as
Kafka Streams has them; averages, maxima, rates and ratios are of the last 30 to 60 seconds.
"""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition

_THREAD_LABELS = ("thread_id",)
_TASK_LABELS = ("thread_id", "task_id")
_STORE_LABELS = (*_TASK_LABELS, "rocksdb_state_id")


def to_scraped_name(group: str, metric: str) -> str:
    """Return the name under which the JMX exporter shows a metric of Kafka Streams."""
    return f"kafka_streams_{group}_{metric}".replace("-", "_")


def _define_figure(
    group: str, metric: str, help_text: str, labels: tuple[str, ...], unit: str = ""
) -> FigureDefinition:
    return FigureDefinition(
        name=to_scraped_name(group, metric),
        kind="gauge",
        help=help_text,
        group=group,
        unit=unit,
        labels=labels,
        kafka_name=f"kafka.streams:type={group},attribute={metric}",
    )


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
_TIMINGS = tuple(
    _define_figure(THREAD_GROUP, f"{call}-{metric}", f"{said} {what}", _THREAD_LABELS, unit)
    for call, what in TIMED_CALLS.items()
    for metric, said, unit in _TIMING_FIGURES
)
_BATCHES = (
    _define_figure(
        THREAD_GROUP,
        "poll-records-avg",
        "Average records that a poll returned",
        _THREAD_LABELS,
        "records",
    ),
    _define_figure(
        THREAD_GROUP,
        "poll-records-max",
        "Most records that a poll returned",
        _THREAD_LABELS,
        "records",
    ),
    _define_figure(
        THREAD_GROUP,
        "process-records-avg",
        "Average records of a slice that a task processed",
        _THREAD_LABELS,
        "records",
    ),
    _define_figure(
        THREAD_GROUP,
        "process-records-max",
        "Most records of a slice that a task processed",
        _THREAD_LABELS,
        "records",
    ),
    _define_figure(
        THREAD_GROUP,
        "thread-start-time",
        "When the thread started, in milliseconds since 1970",
        _THREAD_LABELS,
        "milliseconds",
    ),
)

TASK_GROUP = "stream-task-metrics"
_TASKS = (
    _define_figure(
        TASK_GROUP, "process-total", "Records that the task has processed", _TASK_LABELS, "records"
    ),
)

STATE_GROUP = "stream-state-metrics"
ROCKSDB_PROPERTIES = {
    "num-immutable-mem-table": "Memtables of the store that wait to be flushed",
    "cur-size-active-mem-table": "Bytes of the store's active memtable",
    "cur-size-all-mem-tables": "Bytes of the active and of unflushed memtables of the store",
    "size-all-mem-tables": "Bytes of all memtables of the store, pinned ones included",
    "num-entries-active-mem-table": "Entries in the active memtable of the store",
    "num-deletes-active-mem-table": "Deletions in the active memtable of the store",
    "num-entries-imm-mem-tables": "Entries in the memtables that wait to be flushed",
    "num-deletes-imm-mem-tables": "Deletions in the memtables that wait to be flushed",
    "mem-table-flush-pending": "1 if a memtable of the store waits to be flushed, else 0",
    "num-running-flushes": "Flushes of memtables that run at present",
    "compaction-pending": "1 if a compaction of the store waits to run, else 0",
    "num-running-compactions": "Compactions of the store that run at present",
    "estimate-pending-compaction-bytes": "About how many bytes compactions have to rewrite",
    "total-sst-files-size": "Bytes of all table files of the store",
    "live-sst-files-size": "Bytes of the table files of the store's latest version",
    "num-live-versions": "Versions of the store's files that are still in use",
    "block-cache-capacity": "Bytes that the block cache of the store may take",
    "block-cache-usage": "Bytes of the blocks in the block cache of the store",
    "block-cache-pinned-usage": "Bytes of the blocks that are pinned in the block cache",
    "estimate-num-keys": "About how many keys the store has",
    "estimate-table-readers-mem": "About how many bytes readers of table files take",
    "background-errors": "Errors of flushes and compactions in the background",
}
"""Kafka Streams' metrics that are properties of RocksDB, with their help texts."""
DATABASE_PROPERTIES = {each: f"rocksdb.{each}" for each in ROCKSDB_PROPERTIES}
"""The names that RocksDB has for them."""
_PROPERTIES = tuple(
    _define_figure(STATE_GROUP, metric, help_text, _STORE_LABELS)
    for metric, help_text in ROCKSDB_PROPERTIES.items()
)

KAFKA_STREAMS_DEFINITIONS = (*_TIMINGS, *_BATCHES, *_TASKS, *_PROPERTIES)
