"""Define the family that the JMX exporter makes of the metrics of a Kafka Streams client.

Their values are texts, which Prometheus does not keep: each is a label of a sample.
"""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition

CLIENT_GROUP = "stream-metrics"
CLIENT_LABELS = ("state", "application_id", "alive_stream_threads", "failed_stream_threads")
"""The labels of which each sample has one, beside `client_id`."""
CLIENT_DEFINITION = FigureDefinition(
    name="kafka_streams_stream_metrics",
    kind="gauge",
    help="The worker's state, its application, and how many threads are alive or have failed",
    group=CLIENT_GROUP,
    labels=("client_id",),
    one_of=CLIENT_LABELS,
    kafka_name="kafka.streams:type=stream-metrics",
)


def name_kafka_thread(client_id: str, thread: str) -> str:
    """Return the id of a thread in Kafka Streams' manner: it begins with the client's.

    Dashboards select the threads of a client by that. `thread` is its name here, as `thread 0`.
    """
    return f"{client_id}-StreamThread-{int(thread.rpartition(' ')[2]) + 1}"
