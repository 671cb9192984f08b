"""Define the family that the JMX exporter makes of the metrics of a Kafka Streams client.

Their values are texts, which Prometheus does not keep: each is a label of a sample.
"""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition
from streams.monitoring.definitions.kafka_names import define_figure

CLIENT_GROUP = "stream-metrics"
CLIENT_LABELS = (
    *("state", "application_id", "version"),
    *("alive_stream_threads", "failed_stream_threads"),
)
"""The labels of which each sample has one, beside `client_id`."""
CLIENT_DEFINITION = FigureDefinition(
    name="kafka_streams_stream_metrics",
    kind="gauge",
    help="The worker's state, application and version, and its threads alive and failed",
    group=CLIENT_GROUP,
    labels=("client_id",),
    one_of=CLIENT_LABELS,
    kafka_name="kafka.streams:type=stream-metrics",
)


CLIENT_STATE_DEFINITIONS = (
    define_figure(
        CLIENT_GROUP,
        "client-state",
        "Kafka Streams' number of the worker's state: 1 rebalancing, 2 running, 6 failed",
        ("application_id", "client_id", "process_id"),
    ),
    define_figure(
        CLIENT_GROUP,
        "recording-level",
        "Kafka Streams' number of metrics_recording_level: 0 info, 1 debug, 2 trace",
        ("client_id", "process_id"),
    ),
)


def name_kafka_thread(client_id: str, thread: str) -> str:
    """Return the id of a thread in Kafka Streams' manner: it begins with the client's.

    Dashboards select the threads of a client by that. `thread` is its name here, as `thread 0`.
    """
    return f"{client_id}-StreamThread-{int(thread.rpartition(' ')[2]) + 1}"
