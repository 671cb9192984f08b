"""Test which figures come of the statistics of librdkafka's clients."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from streams.monitoring.client_figures import list_client_figures
from streams.monitoring.definitions.clients import CLIENT_DEFINITIONS
from streams.runtime.clients.client_statistics import ClientStatisticsRecorder
from streams.runtime.clients.factory import KafkaClientSupplier
from streams.settings.config import StreamsConfig
from tests.processes import wait_until
from tests.unit.streams.monitoring.client_texts import (
    make_broker,
    make_partition,
    make_statistics,
    make_window,
    tell,
)

FETCHES = "kafka_consumer_consumer_fetch_manager_metrics_"
PRODUCER = "kafka_producer_producer_metrics_"


def test_rates_of_a_consumer_are_those_since_the_oldest_statistics_that_are_kept() -> None:
    (client,) = tell(
        *(
            make_statistics(
                "consumer",
                at_s,
                rxmsgs=at_s * 100,
                rxmsg_bytes=at_s * 1_000,
                brokers={"b": make_broker(req={"Fetch": at_s * 2})},
            )
            for at_s in (0, 10, 20, 30, 40)
        )
    )
    assert client.elapsed_s == 30
    figures = list_client_figures(client)
    assert figures[FETCHES + "records_consumed_total"] == 4_000
    assert figures[FETCHES + "records_consumed_rate"] == 100
    assert figures[FETCHES + "bytes_consumed_rate"] == 1_000
    assert figures[FETCHES + "fetch_rate"] == 2
    assert figures[FETCHES + "records_per_request_avg"] == 50
    assert figures[FETCHES + "fetch_size_avg"] == 500


def test_lag_is_that_of_the_partition_that_is_furthest_behind() -> None:
    partitions = {
        "0": make_partition(ls_offset=50, app_offset=20),
        "1": make_partition(ls_offset=7, app_offset=7),
        "2": make_partition(),
        "3": make_partition(fetch_state="stopped", ls_offset=900, app_offset=0),
    }
    (client,) = tell(make_statistics("consumer", topics={"t": {"partitions": partitions}}))
    assert list_client_figures(client)[FETCHES + "records_lag_max"] == 30


def test_latencies_are_of_all_brokers_and_in_milliseconds() -> None:
    brokers = {
        "a": make_broker(rtt=make_window(1_000, 3_000), int_latency=make_window(500)),
        "b": make_broker(rtt=make_window(8_000), waitresp_cnt=2, state="DOWN"),
    }
    topics = {"t": {"batchsize": make_window(100, 300), "metadata_age": 5_000}}
    (client,) = tell(
        make_statistics("producer", brokers=brokers, topics=topics, msg_size_max=10, msg_size=4)
    )
    figures = list_client_figures(client)
    assert figures[PRODUCER + "request_latency_avg"] == 4
    assert figures[PRODUCER + "request_latency_max"] == 8
    assert figures[PRODUCER + "record_queue_time_avg"] == 0.5
    assert figures[PRODUCER + "batch_size_avg"] == 200
    assert figures[PRODUCER + "metadata_age"] == 5
    assert figures[PRODUCER + "requests_in_flight"] == 2
    assert figures[PRODUCER + "connection_count"] == 1
    assert figures[PRODUCER + "buffer_available_bytes"] == 6


def test_a_client_that_replaces_another_one_is_compared_with_itself() -> None:
    (client,) = tell(
        make_statistics("producer", 0, txmsgs=900),
        make_statistics("producer", 10, txmsgs=5, name="c#2"),
    )
    figures = list_client_figures(client)
    assert figures[PRODUCER + "record_send_rate"] == 0
    assert figures[PRODUCER + "record_send_total"] == 5


def test_a_client_that_is_silent_for_a_minute_is_forgotten() -> None:
    recorder = ClientStatisticsRecorder()
    closed, running = (
        recorder.create_client_settings(name)["stats_cb"] for name in ("closed", "running")
    )
    closed(json.dumps(make_statistics("producer", 0)))
    for at_s, expected in ((60, {"closed", "running"}), (61, {"running"})):
        running(json.dumps(make_statistics("producer", at_s)))
        assert {each.client_id for each in recorder.read_statistics()} == expected


@pytest.mark.parametrize(("kind", "client_class"), [("consumer", Consumer), ("producer", Producer)])
def test_a_real_client_tells_all_that_figures_are_made_of(kind: str, client_class: Any) -> None:
    recorder = ClientStatisticsRecorder()
    settings = recorder.create_client_settings("c") | {"statistics.interval.ms": 50}
    # The address answers nobody: a broker that is down has statistics, too.
    client = client_class(settings | {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})

    def has_told() -> bool:
        client.poll(0.05)
        return any(True for _ in recorder.read_statistics())

    wait_until(has_told, what="statistics")
    (found,) = recorder.read_statistics()
    prefixes = (f"kafka_{kind}_", "librdkafka_")
    expected = {each.name for each in CLIENT_DEFINITIONS if each.name.startswith(prefixes)}
    assert list_client_figures(found).keys() == expected
    if kind == "consumer":
        client.close()


def test_clients_tell_statistics_to_a_worker_with_a_port_only() -> None:
    told = []
    ports: list[dict[str, Any]] = [{}, {"metrics_port": 0}, {"health_port": 0}]
    for settings in ports:
        config = StreamsConfig(bootstrap_servers="127.0.0.1:1", **settings)
        supplier = KafkaClientSupplier("a", config, "127.0.0.1:1")
        told.append("stats_cb" in supplier._producer_settings("p", transactional=False))
    assert told == [False, True, True]


def test_own_settings_of_a_client_alter_the_interval() -> None:
    config = StreamsConfig(
        bootstrap_servers="127.0.0.1:1",
        metrics_port=0,
        producer={"statistics.interval.ms": 0},
    )
    supplier = KafkaClientSupplier("a", config, "127.0.0.1:1")
    settings = supplier._producer_settings("p", transactional=False)
    assert settings["statistics.interval.ms"] == 0
