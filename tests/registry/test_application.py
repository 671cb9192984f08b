"""Test an application on a broker whose registry is killed while it works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, StreamsError, serdes
from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S, wait_until
from tests.proto_files import create_classes
from tests.reading import records
from tests.registry.server import ApicurioRegistry

PAID = {"title": "Paid", "type": "object", "properties": {"cents": {"type": "integer"}}}
WITH_NOTE = {**PAID, "properties": {**PAID["properties"], "note": {"type": "string"}}}  # type: ignore[dict-item]
Total = create_classes('syntax = "proto3"; message Total { int64 cents = 1; }')["Total"]


def create_application(
    name: str, registry: ApicurioRegistry, broker: Broker, state_dir: Path, timeout_s: float
) -> App:
    """Return an application that adds JSON into Protobuf, and writes the sums as Avro.

    Another time-out is another client, which knows no schema yet, as in a new process.
    """
    app = App(
        name,
        bootstrap_servers=broker.bootstrap_servers,
        state_dir=state_dir,
        processing_guarantee="exactly_once_v2",
        schema_registry={"url": registry.url, "max.retries": 0, "timeout": timeout_s},
    )
    on = app.schema_registry
    paid = serdes.json_schema(registry=on, schema=PAID)
    payments = app.stream(f"{name}-paid", key=serdes.string, value=paid)
    totals = payments.group_by_key().aggregate(
        Total,
        lambda _, payment, total: Total(cents=total.cents + payment["cents"]),
        value=serdes.protobuf(registry=on, message_type=Total),
        store="totals",
    )
    sums = serdes.avro(registry=on, schema='"long"')
    totals.to_stream().map_values(lambda total: total.cents, value=sums).to(f"{name}-sums")
    return app


@pytest.mark.sampled(1, by="broker")
def test_nothing_is_lost_or_counted_twice_when_the_registry_is_killed(
    registry: ApicurioRegistry, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("payments")
    paid, sums = f"{name}-paid", f"{name}-sums"
    create_topics(broker.bootstrap_servers, paid, sums)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    on = {"url": registry.url, "timeout": 31.0}
    first, second = (
        serdes.json_schema(registry=on, schema=schema).for_topic(paid, "value")
        for schema in (PAID, WITH_NOTE)
    )
    with_note = second.serialize({"cents": 100, "note": "of a new version"})

    def pay(*values: bytes) -> None:
        for value in values:
            producer.produce(paid, value, b"ann")
        producer.flush(30)

    def read_last_sum() -> int:
        serde = serdes.avro(registry=on, schema='"long"').for_topic(sums, "value")
        found = [each.value() for each in records(broker.bootstrap_servers, sums, 1)]
        return int(serde.deserialize(found[-1])) if found else 0

    pay(*map(first.serialize, ({"cents": 1}, {"cents": 10})))
    running = create_application(name, registry, broker, tmp_path / "state", 32.0).start()
    try:
        wait_until(lambda: read_last_sum() == 11, what="the first sum")
        registry.kill()
        pay(with_note)
        running.wait_for("ERROR")
    finally:
        with pytest.raises(StreamsError, match=rf"{paid}\[0\]@2.*Connect.*for {paid}-value"):
            running.close()
    registry.start()
    shutil.rmtree(tmp_path / "state")
    running = create_application(name, registry, broker, tmp_path / "state", 33.0).start()
    try:
        wait_until(lambda: read_last_sum() == 111, what="the sum with the new version")
    finally:
        running.close()
    assert read_last_sum() == 111


def create_topics(servers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        created.result(HANG_LIMIT_S)
