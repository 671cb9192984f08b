"""Provoke faults of records, transactions and queries.

They end as soon as nobody provokes them, except two: a coordinator's log stays damaged until it is
mended, and a record that can't be read until it is no longer in the way.

`make ci-full` runs them. Without a fault in a running application are the alerts that compare with
the week before or count over a day, those of a broker that is overloaded, and of stores that are
rebuilt again and again: `test_alert_rules` judges these.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator.shard.placement import partition_for
from tests.monitoring.monitored import Monitored
from tests.monitoring.prometheus import fetch

SHARDS = 50
"""The default of `offsets.topic.num.partitions`."""
TIMEOUT_S = 1
OPEN_TRANSACTIONS = 8
UNREACHED = ",".join(f"words-in-{partition}:1000000000" for partition in range(6))
"""A position of each input partition that the stores do not reach."""


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    with ExitStack() as exits:
        yield Monitored(
            tmp_path_factory.mktemp("monitored"),
            exits,
            worker_settings=["uncaught_exception_handler=replace_thread"],
        )


@contextmanager
def ask_repeatedly(monitored: Monitored, wait_ms: int, clients: int) -> Iterator[None]:
    """Have clients ask the workers for a position that is not reached, until the block ends."""
    stop = Event()

    def ask(port: int) -> None:
        while not stop.is_set():
            fetch(port, f"/stores/counts/1?at-least={UNREACHED}&wait-ms={wait_ms}")

    ports = [worker.query_port for worker in monitored.workers]
    threads = [Thread(target=ask, args=(ports[n % len(ports)],)) for n in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_records_are_dropped(monitored: Monitored) -> None:
    monitored.wait_for_alerts()
    monitored.provoke_alerts(
        lambda: monitored.produce(*["word"] * 20, without_keys=True), "MillraceRecordsDropped"
    )
    monitored.wait_for_alerts()


def test_results_are_late(monitored: Monitored) -> None:
    monitored.provoke_alerts(
        lambda: monitored.produce(*["word"] * 20, age_s=120), "MillraceResultsLate"
    )
    monitored.wait_for_alerts()


def test_transactions_time_out(monitored: Monitored) -> None:
    opened: list[Producer] = []

    def open_transactions() -> None:
        opened.clear()
        for number in range(OPEN_TRANSACTIONS):
            settings = {
                "bootstrap.servers": monitored.broker.bootstrap_servers,
                "transactional.id": f"slow-{number}",
                "transaction.timeout.ms": TIMEOUT_S * 1_000,
            }
            producer = Producer(settings)
            producer.init_transactions(10)
            producer.begin_transaction()
            producer.produce("words-out", value="never committed")
            producer.flush()
            opened.append(producer)
        time.sleep(TIMEOUT_S)  # as long as the fault takes: the next one would end them sooner

    monitored.provoke_alerts(open_transactions, "MillraceTransactionsTimeOut")
    monitored.wait_for_alerts()


def test_queries_fail(monitored: Monitored) -> None:
    with ask_repeatedly(monitored, wait_ms=100, clients=3):
        monitored.wait_for_alerts("MillraceQueriesFail")
    monitored.wait_for_alerts()


def test_queries_are_slow(monitored: Monitored) -> None:
    with ask_repeatedly(monitored, wait_ms=4_000, clients=12):
        monitored.wait_for_alerts("MillraceQueriesFail", "MillraceQueriesSlow")
    monitored.wait_for_alerts()


def test_more_is_asked_than_a_worker_answers(monitored: Monitored) -> None:
    with ask_repeatedly(monitored, wait_ms=1_000, clients=3 * 40):
        monitored.wait_for_alerts("MillraceQueriesFail", "MillraceQueriesRefused")
    monitored.wait_for_alerts()


def test_the_log_of_a_coordinator_is_damaged(monitored: Monitored) -> None:
    broker = monitored.broker
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    for offset in (1, 2, 3):
        consumer.commit(offsets=[TopicPartition("words-out", 0, offset)], asynchronous=False)
    consumer.close()
    shard = partition_for("readers", SHARDS)
    assert shard != partition_for("words", SHARDS), "the application's own shard is another one"
    (log,) = (broker.data_dir / f"__consumer_offsets-{shard}").glob("*.log")
    monitored.wait_for_alerts()

    broker.end(signal.SIGTERM)
    whole = log.read_bytes()
    damaged_at = whole.index(b"readers")  # in the first batch, so that it can't be a torn write
    log.write_bytes(whole[:damaged_at] + b"R" + whole[damaged_at + 1 :])
    broker.start()
    monitored.wait_for_alerts("MillraceCoordinatorShardFailed", "MillracePartitionsOffline")

    broker.end(signal.SIGTERM)
    log.write_bytes(whole)
    broker.start()
    monitored.wait_for_alerts()


def test_a_record_that_cannot_be_read_ends_its_thread_again_and_again(monitored: Monitored) -> None:
    """It is the last one: the record stays."""
    monitored.wait_for_alerts()
    producer = Producer({"bootstrap.servers": monitored.broker.bootstrap_servers})
    producer.produce("words-in", key=b"\xff is no text", value="word")
    producer.flush()
    monitored.wait_for_alerts("MillraceThreadFailed", "MillraceWorkerUnhealthy")
    assert {"threads", "workers"} <= monitored.list_marked()
