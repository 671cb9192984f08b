"""Name the metrics of Kafka Streams that a worker does not show, each with the reason.

docs/metrics.md has them as a table. A test sees that each metric of a running Kafka Streams is
either defined for a worker or named here, and none is both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from re import Pattern


@dataclass(frozen=True, slots=True)
class Gap:
    """Names metrics that are not shown: by patterns of the whole group and of the whole name.

    `instead` is the figure of a worker that answers the question, "" if there is none.
    """

    group: Pattern[str]
    name: Pattern[str]
    reason: str
    instead: str = ""


def _create_gap(group: str, name: str, reason: str, instead: str = "") -> Gap:
    return Gap(re.compile(group), re.compile(name), reason, instead)


JAVA_ONLY = "Java only"

GAPS = (
    _create_gap(
        "admin-client(-\\w+)*-metrics|app-info|kafka-metrics-count",
        ".*",
        f"{JAVA_ONLY}: of its registry and its admin client",
    ),
    _create_gap(
        "consumer-coordinator-metrics",
        ".*",
        "a thread joins its group without the consumer",
        "millrace_thread_rebalances_total",
    ),
    _create_gap("(consumer|producer)-node-metrics", ".*", "added up over the brokers"),
    _create_gap(
        "(consumer|producer)-metrics",
        "(io|network-io|select|reauthentication|failed-.*|successful-.*)-.*|request-size-.*",
        f"{JAVA_ONLY}: librdkafka does not tell it",
    ),
    _create_gap(
        "consumer-metrics",
        "commit-sync-.*|committed-.*|last-poll-.*|poll-idle-.*|time-between-.*",
        "measured by thread",
        "kafka_streams_stream_thread_metrics_poll_latency_max",
    ),
    _create_gap(
        "consumer-fetch-manager-metrics",
        "fetch-size-max|preferred-read-replica|records-(lag|lag-avg|lead|lead-avg|lead-min)",
        f"{JAVA_ONLY}: librdkafka does not tell it",
        "millrace_consumer_lag",
    ),
    _create_gap(
        "producer-metrics",
        "(batch-split|buffer-exhausted|bufferpool|metadata-wait|flush-time|compression-rate"
        "|record-error)-.*|record-size-max|waiting-threads",
        f"{JAVA_ONLY}: librdkafka does not tell it",
    ),
    _create_gap(
        "producer-metrics",
        "record-retry-(rate|total)",
        "librdkafka counts the requests that are sent again",
        "librdkafka_txretries_total",
    ),
    _create_gap(
        "producer-metrics",
        "txn-.*",
        "measured as a whole",
        "kafka_streams_stream_thread_metrics_commit_latency_avg",
    ),
    _create_gap("stream-metrics", "commit-id", f"{JAVA_ONLY}: of Kafka Streams' jar"),
    _create_gap("stream-metrics", "topology-description", "a text: `millrace plan` has it"),
    _create_gap(
        "stream-thread-metrics",
        "state",
        "a text, which the JMX exporter leaves out",
        "kafka_streams_stream_thread_metrics_thread_state",
    ),
    _create_gap(
        "stream-state-updater-metrics",
        "(active|standby)-paused-tasks",
        "restores and standbys are never paused",
    ),
    _create_gap(
        "stream-state-updater-metrics",
        "checkpoint-ratio",
        "checkpoints are written with the batches",
        "kafka_streams_stream_state_updater_metrics_active_restore_ratio",
    ),
    _create_gap(
        "stream-state-metrics",
        "put-all-(latency-avg|latency-max|rate)",
        "stores have no such method",
        "kafka_streams_stream_state_metrics_put_rate",
    ),
    _create_gap(
        "stream-state-metrics",
        "record-e2e-latency-.*",
        "a store's writes of a record are not told from its step",
        "kafka_streams_stream_processor_node_metrics_record_e2e_latency_avg",
    ),
    _create_gap(
        "stream-state-metrics",
        "(memtable-flush|compaction)-time-min",
        "rocksdict shows percentiles of RocksDB's times, and no minimum",
    ),
)
"""Each metric is named by one of these; the first that matches tells the reason."""


def find_gap(group: str, name: str) -> Gap | None:
    """Return why a metric of Kafka Streams is not shown, None if nothing says so."""
    return next(
        (each for each in GAPS if each.group.fullmatch(group) and each.name.fullmatch(name)), None
    )
