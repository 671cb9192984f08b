"""Define the figures of logs and of the cleaner."""

from __future__ import annotations

from coordinator.metrics.definition import MetricDefinition

_CLEANER = "kafka.log:type=LogCleanerManager"

LOG_DEFINITIONS = (
    MetricDefinition(
        name="millrace_log_flush_seconds",
        kind="histogram",
        help="Time that flushes of log files to the disk took.",
        unit="seconds",
        group="log",
        kafka_name="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
        answers="LogFlushRateAndTimeMs",
    ),
    MetricDefinition(
        name="millrace_log_bytes",
        kind="gauge",
        help="Size of a partition's log; of a topic with many, of all together (all).",
        unit="bytes",
        labels=("topic", "partition"),
        group="log",
        kafka_name="kafka.log:type=Log,name=Size",
    ),
    MetricDefinition(
        name="millrace_log_segments",
        kind="gauge",
        help="Segments of a partition's log; of a topic with many, of all together (all).",
        unit="segments",
        labels=("topic", "partition"),
        group="log",
        kafka_name="kafka.log:type=Log,name=NumLogSegments",
    ),
    MetricDefinition(
        name="millrace_log_stable_offset_lag",
        kind="gauge",
        help="Offsets that read_committed consumers can't read yet, of partitions with an open"
        " transaction; of a topic with many, the most (all).",
        unit="records",
        labels=("topic", "partition"),
        group="log",
        kafka_name="kafka.cluster:type=Partition,name=LastStableOffsetLag",
        answers="last stable offset lag",
    ),
    MetricDefinition(
        name="millrace_log_open_transaction_seconds",
        kind="gauge",
        help="Time since the first batch of the oldest open transaction of a partition came, or"
        " since the broker's start; of a topic with many, the most (all).",
        unit="seconds",
        labels=("topic", "partition"),
        group="log",
        kafka_name="kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
        answers="hanging transactions",
    ),
    MetricDefinition(
        name="millrace_log_segments_expired_total",
        kind="counter",
        help="Segments that retention has removed.",
        unit="segments",
        group="log",
    ),
    MetricDefinition(
        name="millrace_producer_ids",
        kind="gauge",
        help="Producer ids whose state is kept, of all partitions together.",
        group="log",
        kafka_name="kafka.server:type=ReplicaManager,name=ProducerIdCount",
    ),
    MetricDefinition(
        name="millrace_producer_ids_expired_total",
        kind="counter",
        help="Producer ids that were forgotten by partitions, as nothing was written with them.",
        group="log",
    ),
    MetricDefinition(
        name="millrace_cleaner_runs_total",
        kind="counter",
        help="Cleanings of compacted logs, by outcome: cleaned or failed.",
        labels=("outcome",),
        group="cleaner",
    ),
    MetricDefinition(
        name="millrace_cleaner_seconds_total",
        kind="counter",
        help="Time that the event loop has given to the cleaner.",
        unit="seconds",
        group="cleaner",
        kafka_name="kafka.log:type=LogCleaner,name=max-clean-time-secs",
    ),
    MetricDefinition(
        name="millrace_cleaner_bytes_removed_total",
        kind="counter",
        help="Bytes by which cleaned logs have become smaller.",
        unit="bytes",
        group="cleaner",
    ),
    MetricDefinition(
        name="millrace_cleaner_dirty_ratio_max",
        kind="gauge",
        help="The largest dirty share of a log when the cleaner last looked, from 0 to 1.",
        unit="ratio",
        group="cleaner",
        kafka_name=f"{_CLEANER},name=max-dirty-percent",
    ),
    MetricDefinition(
        name="millrace_cleaner_partitions_uncleanable",
        kind="gauge",
        help="Partitions that are left alone, as their logs can't be cleaned.",
        unit="partitions",
        group="cleaner",
        kafka_name=f"{_CLEANER},name=uncleanable-partitions-count",
    ),
)
