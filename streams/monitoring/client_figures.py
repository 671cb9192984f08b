"""Make figures of the statistics of librdkafka's clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from streams.monitoring.definitions.clients import (
    CONNECTION_GROUPS,
    FETCH_GROUP,
    LIBRDKAFKA_COUNTERS,
    PRODUCER_GROUP,
)
from streams.monitoring.definitions.kafka_names import to_scraped_name
from streams.monitoring.families import build_family
from streams.runtime.clients.client_statistics import ClientStatistics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

NowAndPast: TypeAlias = tuple[float, float]
"""A count by the newest statistics, and by those of some time ago."""

_US_PER_MS, _MS_PER_S = 1_000, 1_000


def describe_clients(clients: Iterable[ClientStatistics]) -> Iterator[Metric]:
    """Yield the families of all clients."""
    samples: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for client in clients:
        labels = (client.newest["type"], client.client_id)
        for name, value in list_client_figures(client).items():
            samples.setdefault(name, []).append((labels, value))
    for name, values in samples.items():
        yield build_family(name, values)


def list_client_figures(client: ClientStatistics) -> dict[str, float]:
    """Return the figures of one client, by the names under which they are scraped."""
    kind = client.newest["type"]
    figures = {
        to_scraped_name(CONNECTION_GROUPS[kind], metric): value
        for metric, value in _list_connection_figures(client).items()
    }
    if kind == "consumer":
        own, group = _list_fetch_figures(client), FETCH_GROUP
    else:
        own, group = _list_send_figures(client), PRODUCER_GROUP
    figures |= {to_scraped_name(group, metric): value for metric, value in own.items()}
    for name in LIBRDKAFKA_COUNTERS:
        figures[f"librdkafka_{name}_total"] = _sum_brokers(client.newest, name)
    return figures


def _list_connection_figures(client: ClientStatistics) -> dict[str, float]:
    totals = {
        "incoming-byte": _get_counts(client, "rx_bytes"),
        "outgoing-byte": _get_counts(client, "tx_bytes"),
        "request": _get_counts(client, "tx"),
        "response": _get_counts(client, "rx"),
        "connection-creation": _sum_broker_counts(client, "connects"),
        "connection-close": _sum_broker_counts(client, "disconnects"),
    }
    brokers = client.newest["brokers"].values()
    connected = sum(each["state"] == "UP" for each in brokers)
    return {"connection-count": connected} | _compute_totals_and_rates(client, totals)


def _list_fetch_figures(client: ClientStatistics) -> dict[str, float]:
    records, size = _get_counts(client, "rxmsgs"), _get_counts(client, "rxmsg_bytes")
    fetches = _count_requests(client, "Fetch")
    totals = {"records-consumed": records, "bytes-consumed": size, "fetch": fetches}
    return (
        _compute_totals_and_rates(client, totals)
        | {
            "records-per-request-avg": _divide_increases(records, fetches),
            "fetch-size-avg": _divide_increases(size, fetches),
            "records-lag-max": max(_list_lags(client.newest), default=0),
        }
        | _compute_window_figures("fetch-latency", _list_distributions(client, "rtt"), _US_PER_MS)
        | _compute_window_figures("fetch-throttle-time", _list_distributions(client, "throttle"), 1)
    )


def _list_send_figures(client: ClientStatistics) -> dict[str, float]:
    newest = client.newest
    records, size = _get_counts(client, "txmsgs"), _get_counts(client, "txmsg_bytes")
    topics = newest["topics"].values()
    return (
        _compute_totals_and_rates(client, {"record-send": records})
        | {
            "record-size-avg": _divide_increases(size, records),
            "records-per-request-avg": _divide_increases(
                records, _count_requests(client, "Produce")
            ),
            "requests-in-flight": _sum_brokers(newest, "waitresp_cnt"),
            "buffer-total-bytes": newest["msg_size_max"],
            "buffer-available-bytes": newest["msg_size_max"] - newest["msg_size"],
            "metadata-age": max((each["metadata_age"] for each in topics), default=0) / _MS_PER_S,
        }
        | _compute_window_figures("batch-size", [each["batchsize"] for each in topics], 1)
        | _compute_window_figures(
            "record-queue-time", _list_distributions(client, "int_latency"), _US_PER_MS
        )
        | _compute_window_figures("request-latency", _list_distributions(client, "rtt"), _US_PER_MS)
        | _compute_window_figures(
            "produce-throttle-time", _list_distributions(client, "throttle"), 1
        )
    )


def _compute_totals_and_rates(
    client: ClientStatistics, totals: Mapping[str, NowAndPast]
) -> dict[str, float]:
    """Return `-total` and `-rate` of each pair of counts, now and some time ago."""
    figures: dict[str, float] = {}
    for metric, (now, past) in totals.items():
        figures[f"{metric}-total"] = now
        figures[f"{metric}-rate"] = (now - past) / client.elapsed_s if client.elapsed_s else 0.0
    return figures


def _get_counts(client: ClientStatistics, name: str) -> NowAndPast:
    return client.newest[name], client.past[name]


def _sum_broker_counts(client: ClientStatistics, name: str) -> NowAndPast:
    return _sum_brokers(client.newest, name), _sum_brokers(client.past, name)


def _count_requests(client: ClientStatistics, api: str) -> NowAndPast:
    now, past = (
        sum(broker["req"].get(api, 0) for broker in each["brokers"].values())
        for each in (client.newest, client.past)
    )
    return now, past


def _sum_brokers(statistics: Mapping[str, Any], name: str) -> float:
    total: float = sum(broker[name] for broker in statistics["brokers"].values())
    return total


def _divide_increases(part: NowAndPast, whole: NowAndPast) -> float:
    """Return the quotient of what was counted between the two statistics, 0 for nothing."""
    counted = whole[0] - whole[1]
    return (part[0] - part[1]) / counted if counted else 0.0


def _list_distributions(client: ClientStatistics, name: str) -> list[Mapping[str, Any]]:
    """Return the distributions of this name of all brokers."""
    return [broker[name] for broker in client.newest["brokers"].values()]


def _compute_window_figures(
    metric: str, windows: Iterable[Mapping[str, Any]], units: float
) -> dict[str, float]:
    """Return `-avg` and `-max` of some distributions together; `units` make one of the metric's."""
    found = [each for each in windows if each["cnt"]]
    count = sum(each["cnt"] for each in found)
    return {
        f"{metric}-avg": sum(each["sum"] for each in found) / count / units if count else 0.0,
        f"{metric}-max": max((each["max"] for each in found), default=0) / units,
    }


def _list_lags(statistics: Mapping[str, Any]) -> Iterator[int]:
    """Yield how many offsets of each partition that is read are after those handed over."""
    for topic in statistics["topics"].values():
        for partition in topic["partitions"].values():
            end, position = partition["ls_offset"], partition["app_offset"]
            if partition["fetch_state"] == "active" and end >= 0 and position >= 0:
                yield max(end - position, 0)
