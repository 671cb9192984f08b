"""Define the figures of librdkafka's clients.

Those that mean the same as a metric of Kafka's Java clients have the name that the JMX exporter
gives it; the others have librdkafka's. Rates and averages of requests are of the last half minute,
latencies and batch sizes of the last ten seconds (`statistics.interval.ms`).
"""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition
from streams.monitoring.definitions.kafka_names import define_figure

CLIENT_LABELS = ("client_type", "client_id")

FETCH_GROUP = "consumer-fetch-manager-metrics"
CONNECTION_GROUPS = {"consumer": "consumer-metrics", "producer": "producer-metrics"}
PRODUCER_GROUP = CONNECTION_GROUPS["producer"]

_CONNECTIONS = {
    "incoming-byte-rate": "Bytes a second that the client has received",
    "incoming-byte-total": "Bytes that the client has received since it was made",
    "outgoing-byte-rate": "Bytes a second that the client has sent",
    "outgoing-byte-total": "Bytes that the client has sent since it was made",
    "request-rate": "Requests a second that the client has sent",
    "request-total": "Requests that the client has sent since it was made",
    "response-rate": "Responses a second that the client has received",
    "response-total": "Responses that the client has received since it was made",
    "connection-count": "Connections of the client that are open",
    "connection-creation-rate": "Connections a second that the client has opened",
    "connection-creation-total": "Connections that the client has opened since it was made",
    "connection-close-rate": "Connections a second that ended",
    "connection-close-total": "Connections that ended since the client was made",
}
_FETCHES = {
    "records-consumed-rate": "Records a second that the consumer has fetched",
    "records-consumed-total": "Records that the consumer has fetched since it was made",
    "bytes-consumed-rate": "Bytes a second of the records that the consumer has fetched",
    "bytes-consumed-total": "Bytes of the records that the consumer has fetched",
    "fetch-rate": "Fetch requests a second that the consumer has sent",
    "fetch-total": "Fetch requests that the consumer has sent since it was made",
    "fetch-size-avg": "Average bytes of records for a fetch request",
    "records-per-request-avg": "Average records for a fetch request",
    "records-lag-max": "Most records of a partition after those handed to the worker",
    "fetch-latency-avg": "Average milliseconds until a response, the wait for records included",
    "fetch-latency-max": "Most milliseconds until a response, the wait for records included",
    "fetch-throttle-time-avg": "Average milliseconds that a broker has throttled fetches",
    "fetch-throttle-time-max": "Most milliseconds that a broker has throttled fetches",
}
_SENDS = {
    "record-send-rate": "Records a second that the producer has sent",
    "record-send-total": "Records that the producer has sent since it was made",
    "record-size-avg": "Average bytes of a record that was sent",
    "records-per-request-avg": "Average records for a Produce request",
    "batch-size-avg": "Average bytes of a batch of records for a partition",
    "batch-size-max": "Most bytes of a batch of records for a partition",
    "record-queue-time-avg": "Average milliseconds that a record waited for its batch to be sent",
    "record-queue-time-max": "Most milliseconds that a record waited for its batch to be sent",
    "request-latency-avg": "Average milliseconds until the response to a request",
    "request-latency-max": "Most milliseconds until the response to a request",
    "requests-in-flight": "Requests that wait for their responses",
    "produce-throttle-time-avg": "Average milliseconds that a broker has throttled requests",
    "produce-throttle-time-max": "Most milliseconds that a broker has throttled requests",
    "buffer-total-bytes": "Bytes of records that may wait in the producer",
    "buffer-available-bytes": "Bytes of records that the producer has room for",
    "metadata-age": "Seconds since the producer has last fetched a topic's metadata",
}
LIBRDKAFKA_COUNTERS = {
    "txerrs": "Requests that could not be sent",
    "txretries": "Requests that were sent once more",
    "req_timeouts": "Requests that no broker answered in time",
    "rxerrs": "Responses that could not be received or read",
}
"""librdkafka's counts of a broker that the Java clients lack, which are added up."""


_ANSWERS = {
    "record-send-rate": "record-send-rate",
    "outgoing-byte-rate": "byte-rate",
    "batch-size-avg": "batch-size-avg",
    "records-per-request-avg": "records-per-request-avg",
}
"""Names in older documents of figures of a producer."""


def _define_client_figures(group: str, metrics: dict[str, str]) -> tuple[FigureDefinition, ...]:
    answers = _ANSWERS if group == PRODUCER_GROUP else {}
    return tuple(
        define_figure(group, metric, text, CLIENT_LABELS, answers=answers.get(metric, ""))
        for metric, text in metrics.items()
    )


CLIENT_DEFINITIONS = (
    *_define_client_figures(FETCH_GROUP, _FETCHES),
    *_define_client_figures(CONNECTION_GROUPS["consumer"], _CONNECTIONS),
    *_define_client_figures(PRODUCER_GROUP, _SENDS | _CONNECTIONS),
    *(
        FigureDefinition(
            name=f"librdkafka_{name}_total",
            kind="counter",
            help=f"{text}, of all brokers (librdkafka)",
            group="librdkafka",
            labels=CLIENT_LABELS,
            answers="record-error-rate" if name == "txerrs" else "",
        )
        for name, text in LIBRDKAFKA_COUNTERS.items()
    ),
)
