"""Test that inputs whose keys are partitioned by another hash are pointed out, on both brokers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, serdes
from tests.brokers import Broker
from tests.processes import wait_until

COUNT = 200
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def write(broker: Broker, topic: str, partitioner: str | None) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer(
        settings if partitioner is None else settings | {"partitioner": partitioner}
    )
    for number in range(COUNT):
        producer.produce(topic, b"value", str(number).encode())
    producer.flush(10)


@pytest.mark.parametrize("is_repartitioned", [False, True], ids=["as it is", "repartitioned"])
def test_a_stream_of_librdkafkas_partitioner_joined_with_a_table_is_pointed_out(
    broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    is_repartitioned: bool,
) -> None:
    caplog.set_level(logging.WARNING)
    name = unique("placed")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topics = [NewTopic(f"{name}-{kind}", 4) for kind in ("orders", "customers")]
    for future in admin.create_topics(topics).values():
        future.result(10)
    write(broker, f"{name}-customers", "murmur2_random")
    write(broker, f"{name}-orders", None)
    app = App(name, bootstrap_servers=broker.bootstrap_servers, state_dir=tmp_path)
    joined: list[str] = []
    orders = app.stream(f"{name}-orders", **TEXT)
    if is_repartitioned:
        orders = orders.repartition()
    customers = app.table(f"{name}-customers", **TEXT)
    found = orders.left_join(customers, lambda order, customer: str(customer))
    found.for_each(lambda key, value: joined.append(value))
    with app.start() as running:
        wait_until(lambda: len(joined) >= COUNT, what="all orders")
        wait_until(lambda: running.metrics()["keys_sampled"] >= 8, what="samples")
        counters = running.metrics()
    warned = [each for each in caplog.messages if "murmur2" in each]
    if is_repartitioned:
        assert warned == []
        assert counters["keys_misplaced"] == 0
        return
    (warning,) = warned
    assert f"input '{name}-orders'" in warning
    assert counters["keys_misplaced"] > 0
