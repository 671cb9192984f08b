"""Test Avro, JSON Schema and Protobuf with an HTTP schema registry and confluent-kafka's client."""

from __future__ import annotations

import importlib.util
import ssl
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from streams import App, TopologyTestDriver, Windowed, serdes
from streams.errors import ConfigError
from streams.serdes import Serde
from streams.serdes.registry_client import RegistryConnection, RegistryUnavailable
from streams.settings.command_line import read_schema_registry_option
from tests import brokers
from tests.kafka.secured.certificates import Authority
from tests.unit.streams.serdes.schema_registry import SchemaRegistry

needs_extra = pytest.mark.skipif(
    importlib.util.find_spec("fastavro") is None and not brokers.in_ci(),
    reason="pip install 'millrace-streams[registry]'",
)
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
    "required": ["id"],
}
QUICK = {"max.retries": 0}
SECRET = "s3cr3t-of-mine"


@dataclass
class Order:
    id: int
    item: str


TEA = Order(1, "tea")


def order_class() -> Any:
    """Build the class that protoc makes of `message Order { int64 id = 1; string item = 2; }`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="item", number=2, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def avro(registry: SchemaRegistry) -> Serde[Any]:
    return serdes.avro(registry=registry.url, schema=AVRO, type=Order)


def json_schema(registry: SchemaRegistry) -> Serde[Any]:
    return serdes.json_schema(registry=registry.url, schema=JSON, type=Order)


@needs_extra
@pytest.mark.parametrize(
    ("make", "message"), [(avro, b"\x02\x06tea"), (json_schema, b'{"id":1,"item":"tea"}')]
)
def test_a_dataclass_goes_through_a_registry(
    registry: SchemaRegistry, make: Callable[[SchemaRegistry], Serde[Any]], message: bytes
) -> None:
    serde = make(registry).for_topic("orders", "value")
    data = serde.serialize(TEA)
    assert data == b"\x00\x00\x00\x00\x01" + message
    assert serde.deserialize(data) == TEA
    assert make(registry).for_topic("orders", "key").deserialize(data) == TEA
    assert registry.subjects == {"orders-value": [1]}


@needs_extra
def test_a_protobuf_message_goes_through_a_registry(registry: SchemaRegistry) -> None:
    message = order_class()
    serde = serdes.protobuf(registry=registry.url, message_type=message)
    assert serde.name == "protobuf(Order)"
    serde = serde.for_topic("orders", "key")
    data = serde.serialize(message(id=5, item="tea"))
    # The second 0 is the message's place in its file.
    assert data == b"\x00\x00\x00\x00\x01\x00\x08\x05\x12\x03tea"
    assert serde.deserialize(data) == message(id=5, item="tea")
    assert registry.subjects == {"orders-key": [1]}


@needs_extra
def test_messages_may_be_dicts_or_what_functions_make_of_them(registry: SchemaRegistry) -> None:
    plain = serdes.avro(registry=registry.url, schema=AVRO).for_topic("t", "value")
    data = plain.serialize({"id": 1, "item": "tea"})
    assert plain.deserialize(data) == {"id": 1, "item": "tea"}
    pairs = serdes.avro(
        registry=registry.url,
        schema=AVRO,
        to_dict=lambda pair: {"id": pair[0], "item": pair[1]},
        from_dict=lambda found: (found["id"], found["item"]),
    ).for_topic("t", "value")
    assert pairs.serialize((1, "tea")) == data
    assert pairs.deserialize(data) == (1, "tea")


@needs_extra
def test_a_message_of_an_older_schema_is_read_as_the_newer_one(registry: SchemaRegistry) -> None:
    newer = {
        **AVRO,
        "fields": [*AVRO["fields"], {"name": "count", "type": "int", "default": 1}],
    }
    data = avro(registry).for_topic("t", "value").serialize(TEA)
    read = serdes.avro(registry=registry.url, schema=newer).for_topic("t", "value")
    assert read.deserialize(data) == {"id": 1, "item": "tea", "count": 1}
    as_written = serdes.avro(registry=registry.url).for_topic("t", "value")
    assert as_written.deserialize(data) == {"id": 1, "item": "tea"}
    with pytest.raises(ValueError, match="no schema=, so it only reads"):
        as_written.serialize({"id": 1})


class Colour(Enum):
    RED = "red"


@dataclass
class Inner:
    at: datetime
    colour: Colour


@dataclass
class Outer:
    name: str
    one: Inner | None = None
    several: list[Inner] = field(default_factory=list)


@needs_extra
def test_nested_dataclasses_with_logical_types(registry: SchemaRegistry) -> None:
    at = {"type": "long", "logicalType": "timestamp-millis"}
    colour = {"type": "enum", "name": "Colour", "symbols": ["red"]}
    inner = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "at", "type": at}, {"name": "colour", "type": colour}],
    }
    fields = [
        {"name": "name", "type": "string"},
        {"name": "one", "type": ["null", inner]},
        {"name": "several", "type": {"type": "array", "items": "Inner"}},
    ]
    schema = {"type": "record", "name": "Outer", "fields": fields}
    serde = serdes.avro(registry=registry.url, schema=schema, type=Outer).for_topic("t", "value")
    found = Inner(datetime(2026, 1, 2, tzinfo=UTC), Colour.RED)
    for outer in (Outer("a"), Outer("b", found, [found, found])):
        assert serde.deserialize(serde.serialize(outer)) == outer


@needs_extra
def test_an_application_asks_the_registry_once_a_topic_and_not_for_a_record(
    registry: SchemaRegistry,
) -> None:
    serde = avro(registry)
    app = App("shop")
    orders = app.stream("orders", key=serdes.string, value=serde)
    by_item = orders.group_by(lambda _, order: order.item, key=serdes.string)
    last = by_item.reduce(lambda old, new: Order(new.id, new.item + "!"), store="last")
    last.to_stream().to("last-orders")
    with TopologyTestDriver(app) as driver:
        driver.topic("orders").pipe("k", TEA)
        asked = len(registry.requests)
        for number in range(2, 5):
            driver.topic("orders").pipe("k", Order(number, "tea"))
        assert driver.topic("last-orders").read_table() == {"tea": Order(4, "tea!")}
        assert driver.store("last").get("tea") == Order(4, "tea!")
    assert len(registry.requests) == asked
    topics = ["orders", "shop-last-repartition", "shop-last-changelog", "last-orders"]
    assert registry.subjects.keys() == {f"{topic}-value" for topic in topics}


@needs_extra
def test_a_windowed_key_with_a_registry_is_bound_to_the_topic(registry: SchemaRegistry) -> None:
    serde = serdes.windowed(avro(registry), 5).for_topic("t", "key")
    data = serde.serialize(Windowed(TEA, 10, 15))
    assert data == b"\x00\x00\x00\x00\x01\x02\x06tea" + (10).to_bytes(8, "big")
    assert serde.deserialize(data) == Windowed(TEA, 10, 15)
    assert list(registry.subjects) == ["t-key"]


@needs_extra
def test_schemas_that_must_not_be_registered_are_looked_up(registry: SchemaRegistry) -> None:
    strict = {"auto.register.schemas": False}
    serde = serdes.avro(registry=registry.url, schema=AVRO, type=Order, serializer=strict)
    with pytest.raises(ValueError, match="Schema not found"):
        serde.for_topic("t", "value").serialize(TEA)
    avro(registry).for_topic("t", "value").serialize(TEA)
    assert serde.for_topic("t", "value").serialize(TEA)[:5] == b"\x00\x00\x00\x00\x01"


@needs_extra
def test_a_registry_within_the_process_serves_tests() -> None:
    def serde() -> Serde[Any]:
        return serdes.avro(registry="mock://of-this-test", schema=AVRO, type=Order)

    data = serde().for_topic("t", "value").serialize(TEA)
    assert serde().for_topic("t", "value").deserialize(data) == TEA


@needs_extra
def test_what_a_schema_refuses_names_topic_type_and_value(registry: SchemaRegistry) -> None:
    by_dict = serdes.avro(registry=registry.url, schema=AVRO).for_topic("t", "value")
    with pytest.raises(ValueError, match=r"for t-value, got dict: {'id': 'x', 'item': 'tea'}"):
        by_dict.serialize({"id": "x", "item": "tea"})
    with pytest.raises(ValueError, match="needs Order; for t-value, got dict: "):
        avro(registry).for_topic("t", "value").serialize({"id": 1})
    json = json_schema(registry).for_topic("t", "key")
    with pytest.raises(ValueError, match=r"value\.id: needs int, got str: 'x'; for t-key, got"):
        json.serialize(Order("x", "tea"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"begins with the byte 123, .*; for t-key"):
        json.deserialize(b"{}")
    protobuf = serdes.protobuf(registry=registry.url, message_type=order_class())
    with pytest.raises(ValueError, match="got int: 7"):
        protobuf.for_topic("t", "value").serialize(7)


@needs_extra
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schema": "{"}, r"serdes\.avro\(\) can't be made: schema='{' is no JSON text"),
        ({"schema": {"type": "recrod"}}, "can't be made"),
        ({"schema": AVRO, "serializer": {"auto.register": True}}, "auto.register"),
        ({"schema": AVRO, "registry": {"max.retries": 0}}, "needs a URL.* got 'max.retries'"),
        ({"schema": AVRO, "registry": "ftp://x"}, "Invalid url ftp://x"),
        ({"schema": AVRO, "registry": {"url": "http://x", "a": SECRET}}, "properties: a$"),
        ({"schema": AVRO, "type": Order, "to_dict": dict}, "not both"),
        ({"schema": AVRO, "type": int}, "takes a dataclass, got <class 'int'>"),
    ],
)
def test_what_cannot_be_used_is_refused_when_the_serde_is_made(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        serdes.avro(**{"registry": "http://127.0.0.1:1", **given})
    with pytest.raises(TypeError, match="protoc has made, got <class 'int'>"):
        serdes.protobuf(registry="http://127.0.0.1:1", message_type=int)


@needs_extra
def test_a_serde_of_no_topic_says_what_to_do(registry: SchemaRegistry) -> None:
    for use in (avro(registry).serialize, avro(registry).deserialize):
        with pytest.raises(RuntimeError, match=r"avro\(Order\) belongs to no topic yet"):
            use(b"")


@needs_extra
def test_an_unreachable_registry_is_an_error_of_the_record() -> None:
    there = {"url": f"http://user:{SECRET}@127.0.0.1:1", **QUICK}
    serde = serdes.avro(registry=there, schema=AVRO, type=Order).for_topic("t", "value")
    with pytest.raises(ValueError, match="Connect") as caught:
        serde.serialize(TEA)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@needs_extra
@pytest.mark.parametrize("where", ["settings", "url"])
def test_secrets_stay_out_of_names_and_messages(where: str) -> None:
    with SchemaRegistry("user", SECRET) as registry:
        there: dict[str, Any] = {"url": registry.url, "basic.auth.user.info": f"user:{SECRET}"}
        if where == "url":
            there = {"url": registry.url.replace("http://", f"http://user:{SECRET}@")}
        serde = serdes.avro(registry={**there, **QUICK}, schema=AVRO, type=Order)
        bound = serde.for_topic("t", "value")
        assert bound.deserialize(bound.serialize(TEA)) == TEA
        registry.password = "changed"
        with pytest.raises(ValueError, match=r"not you: \*\*\*") as caught:
            serde.for_topic("u", "value").serialize(TEA)
    for text in (repr(serde), repr(bound), repr(RegistryConnection(there))):
        assert SECRET not in text
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@needs_extra
def test_a_registry_with_mutual_tls_and_a_password_is_reached(tmp_path: Path) -> None:
    authority = Authority("authority", tmp_path)
    server, client = authority.issue_server(), authority.issue_client("user")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    tls.load_cert_chain(server.certificate_path, server.key_path)
    tls.verify_mode = ssl.CERT_REQUIRED
    with SchemaRegistry("user", SECRET, tls) as registry:
        there = {
            "url": registry.url,
            "ssl.ca.location": str(authority.path),
            "basic.auth.user.info": f"user:{SECRET}",
            **QUICK,
        }
        certificate = {
            "ssl.certificate.location": str(client.certificate_path),
            "ssl.key.location": str(client.key_path),
        }
        serde = serdes.avro(registry={**there, **certificate}, schema=AVRO, type=Order)
        bound = serde.for_topic("t", "value")
        assert bound.deserialize(bound.serialize(TEA)) == TEA
        refused = serdes.avro(registry=there, schema=AVRO, type=Order).for_topic("t", "value")
        with pytest.raises(ValueError, match="for t-value") as caught:
            refused.serialize(TEA)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@needs_extra
@pytest.mark.parametrize(
    "create",
    [
        lambda there: serdes.avro(registry=there, schema=AVRO, type=Order),
        lambda there: serdes.json_schema(registry=there, schema=JSON, type=Order),
    ],
)
def test_the_registry_of_an_application_is_that_of_its_settings(
    registry: SchemaRegistry, tmp_path: Path, create: Callable[[Any], Serde[Any]]
) -> None:
    app = App("shop")
    serde = create(app.schema_registry)
    app.stream("orders", key=serdes.string, value=serde).to(lambda *_: "chosen", value=serde)
    password = tmp_path / "user"
    password.write_text(f"user:{SECRET}\n")
    registry.user, registry.password = "user", SECRET
    file = tmp_path / "registry.toml"
    file.write_text(f'url = "{registry.url}"\n"basic.auth.user.info.file" = "user"\n')
    app.configure(None, **read_schema_registry_option(file))
    app.schema_registry.check_settings()
    assert registry.requests == []
    with TopologyTestDriver(app) as driver:
        driver.topic("orders").pipe("k", TEA)
        assert driver.topic("chosen", value=serde).read_values() == [TEA]
    assert registry.subjects.keys() == {"orders-value", "chosen-value"}
    assert SECRET not in repr(serde) + repr(app.schema_registry)


@needs_extra
def test_an_application_without_the_setting_that_its_serdes_need_does_not_start() -> None:
    app = App("shop")
    serde = serdes.avro(registry=app.schema_registry, schema=AVRO, type=Order)
    app.stream("orders", key=serdes.string, value=serde).to("copies")
    with pytest.raises(ConfigError, match=r"'schema_registry' is needed .* --schema-registry FILE"):
        app.start()
    app.configure(None, schema_registry={"url": "http://a:1", "ssl.ca.location": "/no/ca.pem"})
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location '/no/ca\.pem' doesn't"):
        app.start()
    with pytest.raises(ConfigError, match="'schema_registry' is needed"):
        serdes.avro(registry=App("other").schema_registry, schema=AVRO).for_topic(
            "t", "value"
        ).serialize({})


@needs_extra
def test_a_schema_is_refused_at_once_also_without_the_settings_of_the_registry() -> None:
    with pytest.raises(ValueError, match="can't be made"):
        serdes.avro(registry=App("shop").schema_registry, schema={"type": "recrod"})


@needs_extra
def test_a_refused_user_and_a_certificate_that_is_not_trusted_name_the_settings(
    tmp_path: Path,
) -> None:
    authority = Authority("authority", tmp_path)
    server = authority.issue_server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(server.certificate_path, server.key_path)

    def explain(registry: SchemaRegistry, **settings: str) -> str:
        there = {"url": registry.url, **settings, **QUICK}
        serde = serdes.avro(registry=there, schema=AVRO, type=Order).for_topic("t", "value")
        with pytest.raises(ValueError, match="for t-value") as refused:
            serde.serialize(TEA)
        assert SECRET not in str(refused.value)
        return str(refused.value)

    with SchemaRegistry("user", SECRET) as registry:
        said = explain(registry, **{"basic.auth.user.info": "user:wrong-password"})
        assert (
            f"check basic.auth.user.info, or bearer.auth.*, of Registry('{registry.url}')" in said
        )
    with SchemaRegistry(tls=tls) as registry:
        assert "check ssl.ca.location of Registry" in explain(registry)
        trusted = {"url": registry.url, "ssl.ca.location": str(authority.path)}
        serde = serdes.avro(registry=trusted, schema=AVRO, type=Order).for_topic("t", "value")
        assert serde.deserialize(serde.serialize(TEA)) == TEA


@pytest.mark.parametrize("kind", ["avro", "json_schema", "protobuf"])
def test_without_the_extra_the_message_names_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"confluent_kafka.schema_registry.{kind}", None)
    given = {"message_type": Order} if kind == "protobuf" else {"schema": AVRO}
    with pytest.raises(ImportError, match=rf"serdes\.{kind} .*millrace-streams\[registry\]"):
        getattr(serdes, kind)(registry="http://127.0.0.1:1", **given)


def test_the_client_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    monkeypatch.setitem(sys.modules, "confluent_kafka.serialization", None)
    serdes_of_a_registry = ("avro_serde", "json_schema_serde", "protobuf_serde")
    for name in (*serdes_of_a_registry, "registry_client", "registry_serde"):
        spec = importlib.util.find_spec(f"streams.serdes.{name}")
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


@needs_extra
def test_a_registry_that_does_not_answer_is_told_apart_from_a_message_at_fault(
    registry: SchemaRegistry,
) -> None:
    def read(settings: Any, data: bytes) -> Exception:
        with pytest.raises(ValueError, match="t-value") as caught:
            serdes.avro(registry=settings, schema=AVRO, type=Order).for_topic(
                "t", "value"
            ).deserialize(data)
        return caught.value

    written = b"\x00\x00\x00\x00\x63rest"
    with SchemaRegistry("user", SECRET) as other:
        refusing = {"url": other.url, "basic.auth.user.info": f"user:not-{SECRET}", **QUICK}
        assert isinstance(read(refusing, written), RegistryUnavailable)
    absent = {"url": "http://127.0.0.1:1", **QUICK}
    assert isinstance(read(absent, written), RegistryUnavailable)
    there = {"url": registry.url, **QUICK}
    for of_the_message in (written, b"much", b"\x00"):
        assert not isinstance(read(there, of_the_message), RegistryUnavailable)
