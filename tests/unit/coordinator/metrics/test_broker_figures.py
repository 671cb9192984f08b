"""Test the figures of a broker that clients have used, as Prometheus scrapes them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from coordinator.embedded import EmbeddedBroker
from coordinator.metrics.definitions import all_definitions
from tests.processes import HANG_LIMIT_S, wait_until

Samples = dict[tuple[str, ...], float]


def scrape(broker: EmbeddedBroker) -> tuple[Samples, dict[str, str]]:
    """Return the samples by name and labels, which are sorted, and the kinds of the families."""
    with urlopen(broker.metrics_url, timeout=HANG_LIMIT_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    return samples, {family.name: family.type for family in families}


@contextmanager
def open_transaction(broker: EmbeddedBroker) -> Iterator[Producer]:
    """Yield a producer whose transaction is open, with a record of it in the log of `words`."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "app"})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce("words", b"a" * 100)
    assert producer.flush(HANG_LIMIT_S) == 0
    yield producer
    producer.commit_transaction(HANG_LIMIT_S)
    producer.list_topics(timeout=HANG_LIMIT_S)  # answered once the markers are written


@contextmanager
def consume_all(broker: EmbeddedBroker, count: int) -> Iterator[Consumer]:
    """Yield a consumer that has read so many records of `words` and is still in its group."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    found = 0

    def have_all() -> bool:
        nonlocal found
        found += sum(record.error() is None for record in consumer.consume(count, 1.0))
        return found >= count

    try:
        consumer.subscribe(["words"])
        wait_until(have_all, what=lambda: f"{found} of {count} records are read")
        consumer.commit()
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def measured() -> Iterator[EmbeddedBroker]:
    settings = {
        "metrics.port": 0,
        "log.flush.interval.messages": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    with EmbeddedBroker(topics={"words": 1, "many": 40}, settings=settings) as running:
        yield running


def test_what_is_defined_is_emitted_and_nothing_else(measured: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": measured.bootstrap_servers})
    assert admin.delete_topics(["none"])["none"].exception() is not None
    with open_transaction(measured):
        pass
    with consume_all(measured, 1), open_transaction(measured):
        samples, kinds = scrape(measured)
    assert kinds == {each.family_name: each.kind for each in all_definitions()}
    assert all(value >= 0 for value in samples.values())


def test_requests_are_counted_by_api_and_where_their_time_went(measured: EmbeddedBroker) -> None:
    with open_transaction(measured):
        pass
    with consume_all(measured, 1) as consumer:
        consumer.consume(1, 0.6)  # waits for fetch.wait.max.ms at least once
        samples, _ = scrape(measured)
    assert samples["millrace_request_seconds_count", "Produce"] == 1
    assert samples["millrace_request_seconds_count", "EndTxn"] == 1
    assert samples["millrace_request_wait_seconds_sum", "Fetch"] > 0.1
    for api in ("Produce", "Fetch", "ConsumerGroupHeartbeat"):
        total, *parts = (
            samples[f"millrace_request_{part}seconds_sum", api]
            for part in ("", "queue_", "work_", "wait_")
        )
        assert total == pytest.approx(sum(parts))
        counts = {
            samples[f"millrace_request_{part}seconds_count", api]
            for part in ("", "queue_", "work_", "wait_")
        }
        assert len(counts) == 1
    assert samples["millrace_requests_waiting", "Produce"] == 0
    assert samples["millrace_assignor_seconds_count", "uniform"] >= 1


def test_bytes_and_records_are_counted_in_and_out_by_topic(measured: EmbeddedBroker) -> None:
    with open_transaction(measured):
        pass
    with consume_all(measured, 1):
        samples, _ = scrape(measured)
    assert samples["millrace_topic_records_in_total", "words"] == 2, "a record and a marker"
    assert samples["millrace_topic_records_out_total", "words"] == 2
    bytes_in = samples["millrace_topic_bytes_in_total", "words"]
    assert bytes_in == samples["millrace_topic_bytes_out_total", "words"]
    assert bytes_in == samples["millrace_log_bytes", "0", "words"] > 200
    assert samples["millrace_log_segments", "0", "words"] == 1
    assert ("millrace_topic_bytes_in_total", "many") not in samples
    assert samples["millrace_log_flush_seconds_count",] > 0
    assert samples["millrace_partitions_offline",] == 0


def test_an_open_transaction_shows_in_its_partition(measured: EmbeddedBroker) -> None:
    with open_transaction(measured):
        samples, _ = scrape(measured)
        assert samples["millrace_log_stable_offset_lag", "0", "words"] == 1
        assert 0 <= samples["millrace_log_open_transaction_seconds", "0", "words"] < 60
        assert 0 < samples["millrace_transaction_oldest_open_seconds",] < 60
    samples, _ = scrape(measured)
    assert ("millrace_log_stable_offset_lag", "0", "words") not in samples
    assert samples["millrace_transaction_oldest_open_seconds",] == 0
    assert samples["millrace_transaction_end_seconds_count", "commit"] == 1
    assert samples["millrace_producer_ids",] == 1


def test_of_a_topic_with_many_partitions_there_is_one_sample(measured: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": measured.bootstrap_servers})
    for partition in range(40):
        producer.produce("many", b"a", partition=partition)
    assert producer.flush(HANG_LIMIT_S) == 0
    samples, _ = scrape(measured)
    assert samples["millrace_log_segments", "all", "many"] == 40
    assert ("millrace_log_segments", "0", "many") not in samples


def test_refusals_are_counted_by_their_codes(measured: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": measured.bootstrap_servers})
    for each in admin.delete_topics(["none", "nothing"]).values():
        with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PART"):
            each.result()
    samples, _ = scrape(measured)
    name = "millrace_request_errors_total"
    assert samples[name, "DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"] == 2


def test_connections_are_counted_and_those_that_the_broker_ended(measured: EmbeddedBroker) -> None:
    host, _, port = measured.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), HANG_LIMIT_S) as client:
        client.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\x01\xff\xff")  # ApiVersions
        assert client.recv(4)
        samples, _ = scrape(measured)
        assert samples["millrace_connections", "PLAINTEXT"] == 1
        assert samples["millrace_connections_created_total", "PLAINTEXT"] == 1
        assert samples["millrace_request_seconds_count", "ApiVersions"] == 1
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # a TLS handshake
        while client.recv(4096):
            pass
    samples, _ = scrape(measured)
    assert samples["millrace_connections_ended_total", "error", "PLAINTEXT"] == 1


def test_the_event_loop_is_measured(measured: EmbeddedBroker) -> None:
    samples, _ = scrape(measured)
    assert 0 < samples["millrace_event_loop_busy_seconds_total",] < 60
    assert samples["millrace_disk_free_bytes",] > 0


def test_the_endpoint_listens_at_the_address_that_is_wanted(tmp_path: Path) -> None:
    settings = {"metrics.port": 0, "metrics.host": "127.0.0.2"}
    with EmbeddedBroker(tmp_path, settings=settings) as measured:
        assert measured.metrics_url.startswith("http://127.0.0.2:")
        samples, _ = scrape(measured)
    assert ("millrace_broker_info", "1") in {(key[0], key[-1]) for key in samples}
