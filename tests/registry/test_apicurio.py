"""Test serdes with Apicurio Registry, which has the API of Confluent's, besides the fake one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)

from streams import App, TopologyTestDriver, serdes
from streams.serdes import Serde
from tests.proto_files import create_classes
from tests.registry.server import ApicurioRegistry
from tests.unit.streams.serdes.schema_registry import SchemaRegistry

TOPICS = (f"orders-{number}" for number in itertools.count())
"""Topics of their own for each test: a subject is for ever."""
QUICK = {"max.retries": 0}

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
ADDRESS = 'syntax = "proto3"; package shop; message Address { string city = 1; }'
PROTOBUF = """
syntax = "proto3"; package shop; import "shop/address.proto";
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; Address to = 2; google.protobuf.Timestamp at = 3; Line line = 4;
message Line { string item = 1; } }
"""
Messages = create_classes(PROTOBUF, {"shop/address.proto": ADDRESS})
CREATE: dict[str, Callable[..., Serde[Any]]] = {
    "avro": lambda on, schema=AVRO, **settings: serdes.avro(registry=on, schema=schema, **settings),
    "json_schema": lambda on, schema=JSON, **settings: serdes.json_schema(
        registry=on, schema=schema, **settings
    ),
    "protobuf": lambda on, schema=Messages["Order"], **settings: serdes.protobuf(
        registry=on, message_type=schema, **settings
    ),
}
ORDERS: dict[str, Any] = {
    "avro": {"id": 2**63 - 1},
    "json_schema": {"id": 2**70, "to": {"city": "Zürich"}},
    "protobuf": Messages["Order"](id=-(2**63), to={"city": "Zürich"}, line={"item": "tea"}),
}
KINDS = sorted(CREATE)


def connect(registry: ApicurioRegistry, timeout_s: float = 10.0) -> dict[str, Any]:
    """Return settings of a client; those of another time-out are a client that knows nothing."""
    return {"url": registry.url, "timeout": timeout_s, **QUICK}


OTHER_TIMEOUTS_S = itertools.count(20.0)


def connect_anew(registry: ApicurioRegistry) -> dict[str, Any]:
    return connect(registry, next(OTHER_TIMEOUTS_S))


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_goes_through_and_another_process_reads_it(
    registry: ApicurioRegistry, kind: str
) -> None:
    topic = next(TOPICS)
    data = CREATE[kind](connect(registry)).for_topic(topic, "value").serialize(ORDERS[kind])
    reader = CREATE[kind](connect_anew(registry)).for_topic(topic, "value")
    assert reader.deserialize(data) == ORDERS[kind]
    lookup = {"auto.register.schemas": False}
    strict = CREATE[kind](connect_anew(registry), serializer=lookup)
    assert strict.for_topic(topic, "value").serialize(ORDERS[kind]) == data
    with pytest.raises(ValueError, match=f"404.*; for {topic}-key"):
        strict.for_topic(topic, "key").serialize(ORDERS[kind])


@pytest.mark.parametrize(
    ("kind", "incompatible", "compatible", "order"),
    [
        (
            "avro",
            {**AVRO, "fields": [*AVRO["fields"], {"name": "count", "type": "int"}]},
            {**AVRO, "fields": [*AVRO["fields"], {"name": "count", "type": "int", "default": 1}]},
            {"id": 7, "count": 1},
        ),
        (
            "json_schema",
            {**JSON, "properties": {"id": {"type": "string"}}},
            {**JSON, "properties": {"id": {"type": "number"}}},
            {"id": 7},
        ),
    ],
)
def test_an_incompatible_schema_is_refused_and_a_compatible_one_reads_older_messages(
    registry: ApicurioRegistry, kind: str, incompatible: Any, compatible: Any, order: Any
) -> None:
    topic, on = next(TOPICS), connect(registry)
    data = CREATE[kind](on).for_topic(topic, "value").serialize({"id": 7})
    demand_compatibility(registry, f"{topic}-value")
    with pytest.raises(ValueError, match=rf"Incompatible.*409.*; for {topic}-value, got dict"):
        CREATE[kind](on, incompatible).for_topic(topic, "value").serialize({**order, "id": "7"})
    newer = CREATE[kind](on, compatible).for_topic(topic, "value")
    assert newer.deserialize(newer.serialize(order)) == order
    assert newer.deserialize(data) == order


def demand_compatibility(registry: ApicurioRegistry, subject: str) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.set_config(subject, ServerConfig(ConfigCompatibilityLevel.BACKWARD))


def test_a_protobuf_schema_that_the_registry_lets_pass_is_refused_where_it_changes_values(
    registry: ApicurioRegistry,
) -> None:
    topic, on = next(TOPICS), connect(registry)
    classes = [
        create_classes(f'syntax = "proto3"; package shop; message Order {{ {field} id = 1; }}')
        for field in ("int64", "int32")
    ]
    writer, reader = (
        CREATE["protobuf"](on, each["Order"]).for_topic(topic, "value") for each in classes
    )
    reader.serialize(classes[1]["Order"](id=7))
    assert reader.deserialize(writer.serialize(classes[0]["Order"](id=7))).id == 7
    with pytest.raises(ValueError, match=rf"value\.id: written as int: {2**40}.*{topic}-value"):
        reader.deserialize(writer.serialize(classes[0]["Order"](id=2**40)))
    # Apicurio 2 does not parse what confluent-kafka registers, the bytes of a descriptor.
    demand_compatibility(registry, f"{topic}-value")
    newest = create_classes('syntax = "proto3"; package shop; message Order { bytes id = 2; }')
    with pytest.raises(ValueError, match=f"Syntax error.*; for {topic}-value, got Order"):
        CREATE["protobuf"](on, newest["Order"]).for_topic(topic, "value").serialize(
            newest["Order"]()
        )


def test_schemas_refer_to_others(registry: ApicurioRegistry) -> None:
    topic = next(TOPICS)
    address = {"type": "object", "properties": {"city": {"type": "string"}}}
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema(f"{topic}-address", Schema(json.dumps(address), "JSON"))
    order = {"title": "Order", "properties": {"to": {"$ref": "address.json"}}}
    reference = SchemaReference("address.json", f"{topic}-address", 1)
    schema = Schema(json.dumps(order), "JSON", [reference])
    serde = CREATE["json_schema"](connect(registry), schema).for_topic(topic, "value")
    value = {"to": {"city": "Bern"}}
    data = serde.serialize(value)
    reader = CREATE["json_schema"](connect_anew(registry), None).for_topic(topic, "value")
    assert reader.deserialize(data) == value
    with pytest.raises(ValueError, match=r"value\.to\.city: 7 is not of type 'string'"):
        serde.serialize({"to": {"city": 7}})


def test_avro_schemas_refer_to_others(registry: ApicurioRegistry) -> None:
    topic = next(TOPICS)
    address = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema(f"{topic}-address", Schema(json.dumps(address), "AVRO"))
    order = {**AVRO, "fields": [*AVRO["fields"], {"name": "to", "type": ["null", "Address"]}]}
    references = [SchemaReference("Address", f"{topic}-address", 1)]
    schema = Schema(json.dumps(order), "AVRO", references)
    serde = CREATE["avro"](connect(registry), schema).for_topic(topic, "value")
    data = serde.serialize({"id": 1, "to": {"city": "Bern"}})
    reader = CREATE["avro"](connect_anew(registry), None).for_topic(topic, "value")
    assert reader.deserialize(data)["to"] == {"city": "Bern"}


@dataclass
class Payment:
    id: int
    at: datetime


def test_an_application_keeps_its_state_with_a_registry(registry: ApicurioRegistry) -> None:
    topic = next(TOPICS)
    app = App(topic, schema_registry={"url": registry.url})
    payment = serdes.json_schema(
        registry=app.schema_registry, schema={**JSON, "title": "Payment"}, type=Payment
    )
    payments = app.stream(f"{topic}-in", key=serdes.string, value=payment)
    latest = payments.group_by_key().reduce(lambda _, new: new, store="latest")
    latest.to_stream().to(f"{topic}-out")
    paid = Payment(2**70, datetime(2026, 1, 2, tzinfo=UTC))
    with TopologyTestDriver(app) as driver:
        driver.topic(f"{topic}-in").pipe("k", paid)
        assert driver.store("latest").get("k") == paid
        assert driver.topic(f"{topic}-out").read_values() == [paid]
    with SchemaRegistryClient({"url": registry.url}) as client:
        subjects = client.get_subjects()
    names = (f"{topic}-in", f"{topic}-latest-changelog", f"{topic}-out")
    assert {f"{name}-value" for name in names} <= set(subjects)


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_of_other_tests_answers_as_a_real_one(
    registry: ApicurioRegistry, kind: str
) -> None:
    answers = []
    topic = next(TOPICS)
    with SchemaRegistry() as fake:
        for on in (connect_anew(registry), {"url": fake.url, **QUICK}):
            serde = CREATE[kind](on)
            first, again = (serde.for_topic(topic, each) for each in ("value", "key"))
            ids = [each.serialize(ORDERS[kind])[:5] for each in (first, again)]
            with SchemaRegistryClient(on) as client:
                schema = client.get_version(f"{topic}-value", 1, fmt="serialized")
                found = client.lookup_schema(f"{topic}-value", schema.schema)
            answers.append((ids[0] == ids[1], schema.version, found.version, found.subject))
            with pytest.raises(ValueError, match="HTTP status code 404"):
                serde.for_topic(topic, "value").deserialize(b"\0\0\x0f\0\0" + b"\0{}")
    assert answers[0] == answers[1] == (True, 1, 1, f"{topic}-value")


def test_ids_survive_a_kill_of_the_registry_and_known_ones_need_it_not(
    registry: ApicurioRegistry,
) -> None:
    topic = next(TOPICS)
    known, written = {}, {}
    for kind in KINDS:
        bound = CREATE[kind](connect(registry)).for_topic(f"{topic}-{kind}", "value")
        known[kind], written[kind] = bound, bound.serialize(ORDERS[kind])
        bound.deserialize(written[kind])
    registry.kill()
    for kind in KINDS:
        assert known[kind].serialize(ORDERS[kind]) == written[kind]
        assert known[kind].deserialize(written[kind]) == ORDERS[kind]
        other = CREATE[kind](connect_anew(registry)).for_topic(f"{topic}-{kind}", "value")
        with pytest.raises(ValueError, match=f"Connect.*; for {topic}-{kind}-value"):
            other.deserialize(written[kind])
    registry.start()
    for kind in KINDS:
        other = CREATE[kind](connect_anew(registry)).for_topic(f"{topic}-{kind}", "value")
        assert other.deserialize(written[kind]) == ORDERS[kind]
        assert other.serialize(ORDERS[kind]) == written[kind]
