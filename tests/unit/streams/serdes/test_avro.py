"""Test Avro serdes with a registry: unions, dataclasses, settings, and versions of schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes
from streams.serdes import Serde
from streams.serdes.registry_client import RegistryConnection

pytest.importorskip("fastavro", reason="pip install 'millrace-streams[registry]'")

from confluent_kafka.schema_registry import (
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
)
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.serde import FieldRuleExecutor

HEADER_BYTES = 5
EVENTS = [
    {
        "type": "record",
        "name": name,
        "namespace": "shop",
        "fields": [{"name": "id", "type": "string"}],
    }
    for name in ("Created", "Deleted")
]
HISTORY = {
    "type": "record",
    "name": "History",
    "fields": [{"name": "events", "type": {"type": "array", "items": EVENTS}}],
}
AT = {"type": "long", "logicalType": "timestamp-millis"}
YEAR_294247_MS = 9_223_372_036_854_775


@dataclass
class Created:
    id: str


@dataclass
class Deleted:
    id: str


@dataclass
class History:
    events: list[Created | Deleted] = field(default_factory=list)


@pytest.fixture
def url(unique: Callable[[str], str]) -> str:
    return f"mock://{unique('avro')}"


def bind(serde: Serde[Any], topic: str = "t") -> Serde[Any]:
    return serde.for_topic(topic, "value")


def test_a_filter_and_a_store_keep_which_event_it_was(url: str) -> None:
    serde = serdes.avro(registry=url, schema=EVENTS)
    app = App("audit")
    stream = app.stream("events", key=serdes.string, value=serde)
    stream.filter(lambda _, event: True).to("kept")
    last = stream.group_by_key().reduce(lambda _, new: new, store="last")
    last.to_stream().to("last-events")
    events = [("shop.Created", {"id": "7"}), ("shop.Deleted", {"id": "7"})]
    with TopologyTestDriver(app) as driver:
        for event in events:
            driver.topic("events").pipe("7", event)
        assert driver.topic("kept").read_values() == events
        assert driver.topic("last-events").read_values() == events
        assert driver.store("last").get("7") == events[1]


def test_a_plain_dict_that_fits_several_records_is_refused(url: str) -> None:
    serde = bind(serdes.avro(registry=url, schema=EVENTS))
    with pytest.raises(ValueError, match=r"may be one of shop\.Created, shop\.Deleted.* for t-val"):
        serde.serialize({"id": "7"})
    plain = bind(serdes.avro(registry=url, schema=EVENTS, record_names=False))
    with pytest.raises(ValueError, match=r"fits shop\.Created and shop\.Deleted"):
        plain.serialize({"id": "7"})
    lossy = bind(serdes.avro(registry=url, schema=EVENTS, lossy=True))
    assert lossy.deserialize(lossy.serialize(("shop.Deleted", {"id": "7"}))) == {"id": "7"}


@pytest.mark.parametrize(
    "declared", [Created | Deleted, {"shop.Created": Created, "shop.Deleted": Deleted}]
)
def test_a_union_of_dataclasses_comes_back_as_the_right_one(url: str, declared: Any) -> None:
    serde = serdes.avro(registry=url, schema=EVENTS, type=declared)
    assert serde.name == "avro(Created | Deleted)"
    bound = bind(serde)
    for event in (Created("7"), Deleted("7")):
        assert bound.deserialize(bound.serialize(event)) == event
    with pytest.raises(ValueError, match="needs Created or Deleted"):
        bound.serialize(History())
    with pytest.raises(ValueError, match=r"value\.id: string needs str, got int: 7"):
        bound.serialize(Deleted(7))  # type: ignore[arg-type]


def test_dataclasses_of_other_names_are_found_by_those_of_their_records(url: str) -> None:
    swapped = {"shop.Created": Deleted, "shop.Deleted": Created}
    serde = bind(serdes.avro(registry=url, schema=EVENTS, type=swapped))
    assert serde.deserialize(serde.serialize(Created("7"))) == Created("7")
    plain = bind(serdes.avro(registry=url, schema=EVENTS))
    assert plain.deserialize(serde.serialize(Created("7"))) == ("shop.Deleted", {"id": "7"})


def test_records_of_one_name_in_two_namespaces_need_their_full_names(url: str) -> None:
    other = {**EVENTS[1], "name": "Created", "namespace": "bank"}
    serde = bind(serdes.avro(registry=url, schema=[*EVENTS, other], type=Created | Deleted))
    assert serde.deserialize(serde.serialize(Deleted("1"))) == Deleted("1")
    with pytest.raises(ValueError, match=r"Created may be several of .*bank\.Created: give type="):
        serde.serialize(Created("1"))
    by_name = {"shop.Created": Created, "shop.Deleted": Deleted, "bank.Created": OnlyCreated}
    full = bind(serdes.avro(registry=url, schema=[*EVENTS, other], type=by_name))
    assert full.deserialize(full.serialize(Created("1"))) == Created("1")


def test_a_field_may_be_a_union_of_dataclasses(url: str) -> None:
    serde = bind(serdes.avro(registry=url, schema=HISTORY, type=History))
    history = History([Created("1"), Deleted("1"), Created("2")])
    assert serde.deserialize(serde.serialize(history)) == history
    with pytest.raises(ValueError, match=r"value\.events\[0\]: needs Created or Deleted"):
        serde.serialize(History([History()]))  # type: ignore[list-item]
    plain = bind(serdes.avro(registry=url, schema=HISTORY))
    written = plain.serialize({"events": [("shop.Deleted", {"id": "1"})]})
    created = bind(serdes.avro(registry=url, schema=HISTORY, type={"History": OnlyCreated}))
    with pytest.raises(ValueError, match=r"events\[0\]"):
        created.deserialize(written)


@dataclass
class OnlyCreated:
    events: list[Created]


def test_the_readers_logical_type_counts_and_not_the_writers(url: str) -> None:
    number = bind(serdes.avro(registry=url, schema='"long"'))
    time = bind(serdes.avro(registry=url, schema=AT))
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert time.deserialize(number.serialize(1_767_355_200_000)) == noon
    assert number.deserialize(time.serialize(noon)) == 1_767_355_200_000


def test_a_time_beyond_python_is_a_number_if_the_reader_asks_for_it(url: str) -> None:
    number = bind(serdes.avro(registry=url, schema='"long"'))
    time = bind(serdes.avro(registry=url, schema=AT))
    either = bind(serdes.avro(registry=url, schema=AT, beyond_python="number"))
    data = either.serialize(YEAR_294247_MS)
    assert number.deserialize(data) == either.deserialize(data) == YEAR_294247_MS
    with pytest.raises(ValueError, match=r"no datetime for timestamp-millis 92.* for t-value"):
        time.deserialize(data)
    with pytest.raises(ValueError, match="timestamp-millis needs datetime, got int: 0"):
        either.serialize(0)  # which would come back as a datetime


def test_settings_that_do_not_go_together_are_refused(url: str) -> None:
    with pytest.raises(TypeError, match="without other settings"):
        serdes.avro(registry=url, schema=AT, lossy=True, record_names=False)
    with pytest.raises(ValueError, match='takes "refuse" or "number", got \'text\''):
        serdes.avro(registry=url, schema=AT, beyond_python="text")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="a dataclass once"):
        serdes.avro(registry=url, schema=EVENTS, type={"a": Created, "b": Created})


def test_the_newest_schema_of_the_registry_is_written_if_that_is_set(url: str) -> None:
    bind(serdes.avro(registry=url, schema=EVENTS)).serialize(("shop.Created", {"id": "1"}))
    newest = {"use.latest.version": True, "auto.register.schemas": False}
    serde = bind(serdes.avro(registry=url, serializer=newest))
    data = serde.serialize(("shop.Deleted", {"id": "1"}))
    assert data[HEADER_BYTES:] == b"\x02\x021"
    assert serde.deserialize(data) == ("shop.Deleted", {"id": "1"})
    by_latest = serdes.avro(registry=url, deserializer={"use.latest.version": True})
    assert bind(by_latest).deserialize(data) == ("shop.Deleted", {"id": "1"})


def test_a_schema_may_refer_to_another_one(url: str) -> None:
    client = RegistryConnection(url).get_client()
    client.register_schema("created", Schema(json.dumps(EVENTS[0]), "AVRO"))
    referring = Schema(
        json.dumps(["null", "shop.Created", EVENTS[1]]),
        "AVRO",
        [SchemaReference("shop.Created", "created", 1)],
    )
    client.register_schema("t-value", referring)
    newest = {"use.latest.version": True, "auto.register.schemas": False}
    serde = bind(serdes.avro(registry=url, serializer=newest))
    for event in (("shop.Created", {"id": "1"}), ("shop.Deleted", {"id": "1"})):
        assert serde.deserialize(serde.serialize(event)) == event


class Reversal(FieldRuleExecutor):  # type: ignore[misc]  # confluent-kafka's stubs are partial
    """Reverses texts, so that a rule of a contract can be seen to have run."""

    def type(self) -> str:
        return "REVERSE"

    def new_transform(self, ctx: Any) -> Any:
        return lambda ctx, field, value: value[::-1] if isinstance(value, str) else value


def test_rules_of_a_contract_are_applied_to_records_of_unions(url: str) -> None:
    """Apply a rule both ways; both directions reverse, so that only the bytes show it."""
    RuleRegistry.register_rule_executor(Reversal())
    rule = Rule(
        name="reverse",
        doc="",
        kind=RuleKind.TRANSFORM,
        mode=RuleMode.WRITEREAD,
        type="REVERSE",
        tags=None,
        params=None,
        expr=None,
        on_success=None,
        on_failure=None,
        disabled=False,
    )
    schema = Schema(json.dumps(EVENTS), "AVRO", [], None, RuleSet(None, [rule]))
    RegistryConnection(url).get_client().register_schema("t-value", schema)
    newest = {"use.latest.version": True, "auto.register.schemas": False}
    serde = bind(serdes.avro(registry=url, serializer=newest))
    data = serde.serialize(("shop.Deleted", {"id": "abc"}))
    assert data[HEADER_BYTES:] == b"\x02\x06cba"
    assert serde.deserialize(data) == ("shop.Deleted", {"id": "abc"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are too few for the id of a schema"),
        (b"\x00\x00", "2 bytes are too few for the id of a schema"),
        (b"\x01abc", "4 bytes are too few for the id of a schema"),
        (b"{}", "it begins with the byte 123, and Confluent's serialisers write 0 first"),
    ],
)
def test_bytes_that_are_no_message_are_refused(url: str, data: bytes, message: str) -> None:
    serde = bind(serdes.avro(registry=url, schema=AT))
    with pytest.raises(ValueError, match=f"{message}.* for t-value"):
        serde.deserialize(data)


def test_a_message_of_a_schema_of_another_kind_is_refused(url: str) -> None:
    data = bind(serdes.json_schema(registry=url, schema={"title": "T"}), "json").serialize(1)
    with pytest.raises(ValueError, match="schema 1 is of JSON, and this serde reads AVRO"):
        bind(serdes.avro(registry=url)).deserialize(data)


@pytest.mark.parametrize(
    ("schema", "value"),
    [('"bytes"', b""), ({"type": "record", "name": "Empty", "fields": []}, {})],
)
def test_a_message_of_no_bytes_comes_back(url: str, schema: Any, value: Any) -> None:
    serde = bind(serdes.avro(registry=url, schema=schema))
    assert len(serde.serialize(value)) == HEADER_BYTES
    assert serde.deserialize(serde.serialize(value)) == value
