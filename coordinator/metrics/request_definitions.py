"""Define the figures of requests, connections, topics, the event loop and the process."""

from __future__ import annotations

from coordinator.metrics.definition import MetricDefinition

_REQUESTS = "kafka.network:type=RequestMetrics"
_TOPICS = "kafka.server:type=BrokerTopicMetrics"
_SOCKETS = "kafka.server:type=socket-server-metrics"

_REQUEST_DEFINITIONS = (
    MetricDefinition(
        name="millrace_request_seconds",
        kind="histogram",
        help="Time from a request's arrival to its answer, by API.",
        unit="seconds",
        labels=("api",),
        group="requests",
        kafka_name=f"{_REQUESTS},name=TotalTimeMs",
        answers="TotalTimeMs by request; heartbeat-rate, heartbeat-latency; RequestsPerSec;"
        " TotalFetchRequestsPerSec, TotalProduceRequestsPerSec",
    ),
    MetricDefinition(
        name="millrace_request_queue_seconds",
        kind="histogram",
        help="Time that a request waited behind others of its connection, by API.",
        unit="seconds",
        labels=("api",),
        group="requests",
        kafka_name=f"{_REQUESTS},name=RequestQueueTimeMs",
        answers="event-queue-time-ms",
    ),
    MetricDefinition(
        name="millrace_request_work_seconds",
        kind="histogram",
        help="Time that the event loop worked on a request, by API.",
        unit="seconds",
        labels=("api",),
        group="requests",
        kafka_name=f"{_REQUESTS},name=LocalTimeMs",
    ),
    MetricDefinition(
        name="millrace_request_wait_seconds",
        kind="histogram",
        help="Time that a request waited for records, members or slices of work, by API.",
        unit="seconds",
        labels=("api",),
        group="requests",
        kafka_name=f"{_REQUESTS},name=RemoteTimeMs",
        answers="event-purgatory-time-ms",
    ),
    MetricDefinition(
        name="millrace_request_errors_total",
        kind="counter",
        help="Error codes in answers, one for each partition or group that has one, by API.",
        labels=("api", "code"),
        group="requests",
        kafka_name=f"{_REQUESTS},name=ErrorsPerSec",
        answers="FailedProduceRequestsPerSec, FailedFetchRequestsPerSec; fencing",
    ),
    MetricDefinition(
        name="millrace_requests_waiting",
        kind="gauge",
        help="Requests whose answers come later: fetches, joins and others, by API.",
        unit="requests",
        labels=("api",),
        group="requests",
        kafka_name="kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize",
        answers="ProducePurgatorySize, FetchPurgatorySize",
    ),
    MetricDefinition(
        name="millrace_fetch_sessions",
        kind="gauge",
        help="Incremental fetch sessions that are kept.",
        unit="sessions",
        group="requests",
        kafka_name="kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
    ),
)

_CONNECTION_DEFINITIONS = (
    MetricDefinition(
        name="millrace_connections",
        kind="gauge",
        help="Connections of clients that are open, by listener.",
        unit="connections",
        labels=("listener",),
        group="connections",
        kafka_name=f"{_SOCKETS},attribute=connection-count",
    ),
    MetricDefinition(
        name="millrace_connections_created_total",
        kind="counter",
        help="Connections that clients opened, refused ones included, by listener.",
        unit="connections",
        labels=("listener",),
        group="connections",
        kafka_name=f"{_SOCKETS},attribute=connection-creation-total",
    ),
    MetricDefinition(
        name="millrace_connections_ended_total",
        kind="counter",
        help="Connections that the broker ended, by cause: limit, idle, stalled or error.",
        unit="connections",
        labels=("listener", "cause"),
        group="connections",
        kafka_name=f"{_SOCKETS},attribute=connection-close-total",
        answers="expired-connections-killed-count",
    ),
    MetricDefinition(
        name="millrace_authentications_failed_total",
        kind="counter",
        help="SASL handshakes and authentications that were refused: this broker has none.",
        labels=("listener",),
        group="connections",
        kafka_name=f"{_SOCKETS},attribute=failed-authentication-total",
    ),
)

_TOPIC_DEFINITIONS = (
    MetricDefinition(
        name="millrace_topic_bytes_in_total",
        kind="counter",
        help="Bytes of batches that were appended to a topic.",
        unit="bytes",
        labels=("topic",),
        group="topics",
        kafka_name=f"{_TOPICS},name=BytesInPerSec",
        answers="BytesInPerSec",
    ),
    MetricDefinition(
        name="millrace_topic_records_in_total",
        kind="counter",
        help="Records and markers that were appended to a topic.",
        unit="records",
        labels=("topic",),
        group="topics",
        kafka_name=f"{_TOPICS},name=MessagesInPerSec",
        answers="MessagesInPerSec",
    ),
    MetricDefinition(
        name="millrace_topic_bytes_out_total",
        kind="counter",
        help="Bytes of batches of a topic that fetches were answered with.",
        unit="bytes",
        labels=("topic",),
        group="topics",
        kafka_name=f"{_TOPICS},name=BytesOutPerSec",
        answers="BytesOutPerSec",
    ),
    MetricDefinition(
        name="millrace_topic_records_out_total",
        kind="counter",
        help="Offsets of a topic that answers to fetches covered, markers and gaps included.",
        unit="records",
        labels=("topic",),
        group="topics",
        answers="records out by topic",
    ),
    MetricDefinition(
        name="millrace_topics",
        kind="gauge",
        help="Topics, internal ones included.",
        unit="topics",
        group="topics",
        kafka_name="kafka.controller:type=KafkaController,name=GlobalTopicCount",
    ),
    MetricDefinition(
        name="millrace_partitions",
        kind="gauge",
        help="Partitions, internal ones included.",
        unit="partitions",
        group="topics",
        kafka_name="kafka.controller:type=KafkaController,name=GlobalPartitionCount",
    ),
    MetricDefinition(
        name="millrace_partitions_offline",
        kind="gauge",
        help="Partitions that take no writes, as their logs are damaged.",
        unit="partitions",
        group="topics",
        kafka_name="kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
        answers="OfflinePartitionsCount, UnderReplicatedPartitions",
    ),
)

_BROKER_DEFINITIONS = (
    MetricDefinition(
        name="millrace_broker_info",
        kind="gauge",
        help="Always 1; which broker this is, the only one and the controller of its cluster.",
        labels=("cluster_id", "node_id"),
        group="broker",
        kafka_name="kafka.server:type=app-info",
        answers="ActiveControllerCount",
    ),
    MetricDefinition(
        name="millrace_event_loop_busy_seconds_total",
        kind="counter",
        help="Processor time of the event loop's thread, and the time that flushes blocked it.",
        unit="seconds",
        group="broker",
        kafka_name="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        answers="RequestHandlerAvgIdlePercent, NetworkProcessorAvgIdlePercent,"
        " thread-idle-ratio-avg: 1 - rate()",
    ),
    MetricDefinition(
        name="millrace_event_loop_delay_seconds",
        kind="histogram",
        help="How much later than planned the event loop called a timer, four times a second.",
        unit="seconds",
        group="broker",
        answers="how long a request waits before the broker reads it",
    ),
    MetricDefinition(
        name="millrace_disk_total_bytes",
        kind="gauge",
        help="Size of the file system that has the data directory.",
        unit="bytes",
        group="broker",
    ),
    MetricDefinition(
        name="millrace_disk_free_bytes",
        kind="gauge",
        help="Bytes of that file system that the broker can still use.",
        unit="bytes",
        group="broker",
    ),
)

REQUEST_DEFINITIONS = (
    *_REQUEST_DEFINITIONS,
    *_CONNECTION_DEFINITIONS,
    *_TOPIC_DEFINITIONS,
    *_BROKER_DEFINITIONS,
)
