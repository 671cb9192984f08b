"""Test that Protobuf messages come back as they were, or are refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from streams import App, TopologyTestDriver, serdes
from streams.serdes import Serde
from tests import edge_values as edges
from tests.proto_files import create_classes
from tests.protobuf_cases import CASES, Case
from tests.unit.properties import examples
from tests.unit.streams.serdes.schema_registry import SchemaRegistry

ADDRESS = 'syntax = "proto3"; package shop; message Address { string city = 1; }'
ORDER = """
syntax = "proto3"; package shop;
import "shop/address.proto"; import "google/protobuf/timestamp.proto";
message Zebra { int32 stripes = 1; }
message Order {
  enum State { OPEN = 0; SHIPPED = 1; }
  message Line {
    message Tax { double rate = 1; }
    string item = 1; int64 cents = 2; Tax tax = 3;
  }
  int64 id = 1; uint64 wei = 2; sint32 change = 3; double rate = 4; float weight = 5; bool paid = 6;
  string note = 7; bytes seal = 8; State state = 9; optional int32 count = 10;
  repeated Line lines = 11; map<string, Line> by_item = 12; map<int64, double> rates = 13;
  oneof payment { string card = 14; int64 voucher = 15; Zebra zebra = 16; }
  Address address = 17; repeated sint64 numbers = 18; google.protobuf.Timestamp at = 19;
  Order previous = 20;
}
"""
CLASSES = create_classes(ORDER, {"shop/address.proto": ADDRESS})
Order = CLASSES["Order"]


def bind(message_type: Any, *, on: str = "mock://protobuf", **settings: Any) -> Serde[Any]:
    serde = serdes.protobuf(registry=on, message_type=message_type, **settings)
    return serde.for_topic("t", "value")


OF_ORDER = bind(Order)


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near = [each for each in (*edges.INTEGER_EDGES, low, high) if low <= each <= high]
    return st.sampled_from(near) | st.integers(low, high)


DOUBLES = edges.floats | st.sampled_from(edges.NON_FINITE)
LINES = st.fixed_dictionaries(
    {}, optional={"item": edges.texts, "cents": integers(64), "tax": st.builds(dict, rate=DOUBLES)}
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": integers(64),
    "wei": integers(64, signed=False),
    "change": integers(32),
    "rate": DOUBLES,
    "weight": st.floats(width=32),
    "paid": st.booleans(),
    "note": edges.texts,
    "seal": st.binary(max_size=20),
    "state": integers(32),
    "count": integers(32),
    "lines": st.lists(LINES, max_size=3),
    "by_item": st.dictionaries(edges.texts, LINES, max_size=3),
    "rates": st.dictionaries(integers(64), DOUBLES, max_size=3),
    "address": st.builds(dict, city=edges.texts),
    "numbers": st.lists(integers(64), max_size=3),
    "at": st.builds(
        dict,
        seconds=st.sampled_from([-62135596800, 253402300799]) | integers(64),
        nanos=integers(32),
    ),
}
PAYMENTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.builds(dict, card=edges.texts),
    st.builds(dict, voucher=integers(64)),
    st.builds(dict, zebra=st.builds(dict, stripes=integers(32))),
)
ORDERS = st.builds(
    lambda fields, payment, previous: {**fields, **payment, **previous},
    st.fixed_dictionaries({}, optional=FIELDS),
    PAYMENTS,
    st.just({}) | st.builds(dict, previous=st.fixed_dictionaries({}, optional=FIELDS)),
)


def show(message: Any) -> str:
    """Return all that is in a message, NaN and unknown fields too, with what is present."""
    return str(text_format.MessageToString(message, print_unknown_fields=True))


@examples(300)
@given(ORDERS)
def test_a_message_comes_back_as_it_was(fields: dict[str, Any]) -> None:
    order = Order(**fields)
    found = OF_ORDER.deserialize(OF_ORDER.serialize(order))
    assert show(found) == show(order)
    assert type(found) is Order
    assert found.SerializeToString(deterministic=True) == order.SerializeToString(
        deterministic=True
    )
    assert found.WhichOneof("payment") == order.WhichOneof("payment")
    assert [field.name for field, _ in found.ListFields()] == [
        field.name for field, _ in order.ListFields()
    ]


@examples(100)
@given(st.dictionaries(edges.texts, integers(64), min_size=2), st.randoms())
def test_equal_messages_have_equal_bytes(entries: dict[str, int], random: Any) -> None:
    other = list(entries.items())
    random.shuffle(other)
    one, two = Order(), Order()
    for message, pairs in ((one, entries.items()), (two, other)):
        for item, cents in pairs:
            message.by_item[item].cents = cents
    assert one == two
    assert OF_ORDER.serialize(one) == OF_ORDER.serialize(two)


def test_a_message_with_a_map_is_one_key_however_it_was_filled() -> None:
    names = [f"item {number}" for number in range(20)]
    app = App("shop")
    key = serdes.protobuf(registry="mock://keys", message_type=Order)
    orders = app.stream("orders", key=key, value=serdes.string)
    orders.group_by_key().count(store="counts").to_stream().to("counts")
    with TopologyTestDriver(app) as driver:
        for order_of_names in (names, names[::-1]):
            order = Order()
            for name in order_of_names:
                order.by_item[name].cents = 1
            driver.topic("orders").pipe(order, "x")
        assert driver.topic("counts").read_values() == [1, 2]


@pytest.mark.parametrize("fields", [{"id": 2**63}, {"change": -(2**31) - 1}, {"note": "\ud800"}])
def test_what_a_field_does_not_hold_is_refused_by_protobuf_itself(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"out of range|surrogates"):
        Order(**fields)


@pytest.mark.parametrize(
    ("name", "indexes"),
    [("Zebra", "00"), ("Order", "0202"), ("Order.Line", "040200"), ("Order.Line.Tax", "06020000")],
)
def test_a_message_names_its_place_in_its_file(name: str, indexes: str) -> None:
    serde = bind(CLASSES[name])
    data = serde.serialize(CLASSES[name]())
    assert data[5:].hex() == indexes, "as Java: how many, and each of them, zigzag; 00 is the first"
    assert serde.deserialize(data) == CLASSES[name]()


@pytest.mark.parametrize("name", ["Order", "Order.Line", "Order.Line.Tax"])
def test_a_message_of_another_type_is_refused(name: str) -> None:
    zebra = bind(CLASSES["Zebra"])
    other = bind(CLASSES[name])
    with pytest.raises(
        ValueError, match=rf"is a shop\.{name}, and shop\.Zebra is read.*for t-value"
    ):
        zebra.deserialize(other.serialize(CLASSES[name]()))
    with pytest.raises(ValueError, match=rf"is a shop\.Zebra, and shop\.{name} is read"):
        other.deserialize(zebra.serialize(CLASSES["Zebra"](stripes=3)))


def test_a_message_that_was_renamed_is_read_if_its_name_is_given() -> None:
    (before,) = create_classes("package shop; message Purchase { optional int32 id = 1; }").values()
    (after,) = create_classes("package shop; message Order { optional int32 id = 1; }").values()
    (moved,) = create_classes("package mall; message Order { optional int32 id = 1; }").values()
    data = bind(before).serialize(before(id=7))
    with pytest.raises(ValueError, match=r"renamed, name it in former_names="):
        bind(after).deserialize(data)
    assert bind(after, former_names=["shop.Purchase"]).deserialize(data) == after(id=7)
    assert bind(moved).deserialize(bind(after).serialize(after(id=7))) == moved(id=7)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_message_of_another_version_is_read_as_it_was_meant_or_refused(case: Case) -> None:
    writer_class, reader_class = (create_classes(text)["Order"] for text in case.files())
    writer, reader = bind(writer_class), bind(reader_class)
    message = writer_class(**case.message)
    data = writer.serialize(message)
    if case.refused:
        with pytest.raises(ValueError, match=f"{case.refused}.*; for t-value"):
            reader.deserialize(data)
        return
    found = reader.deserialize(data)
    assert re.sub(r"\s+", " ", show(found)).strip() == case.read
    if case.again:
        with pytest.raises(ValueError, match=case.again):
            writer.deserialize(reader.serialize(found))
    else:
        kept = "" if case.again == "" else show(message)
        assert show(writer.deserialize(reader.serialize(found))) == kept, "no field is lost"


def test_unknown_fields_of_parts_are_written_again() -> None:
    newer = CLASSES["Order"](id=1, lines=[{"item": "tea", "tax": {"rate": 0.5}}])
    text = "message Order { message Line { string item = 1; } repeated Line lines = 11; }"
    older_class = create_classes(f'syntax = "proto3"; package shop; {text}')["Order"]
    older = bind(older_class)
    seen = older.deserialize(OF_ORDER.serialize(newer))
    seen.lines[0].item = "mint tea"
    found = OF_ORDER.deserialize(older.serialize(seen))
    assert found == CLASSES["Order"](id=1, lines=[{"item": "mint tea", "tax": {"rate": 0.5}}])


def test_ten_megabytes_come_back() -> None:
    order = Order(note="ä" * 5_000_000, seal=b"\0" * 10, numbers=range(-5, 5))
    assert OF_ORDER.deserialize(OF_ORDER.serialize(order)) == order


@pytest.mark.parametrize("depth", [99, 100, 101, 2000])
def test_deep_messages_come_back_or_are_refused(depth: int) -> None:
    order = inner = Order(id=1)
    for _ in range(depth):
        inner.previous.SetInParent()
        inner = inner.previous
    if depth <= 100:
        assert OF_ORDER.deserialize(OF_ORDER.serialize(order)) == order
    else:
        with pytest.raises(ValueError, match=r"nested more than 100 deep.*; for t-value"):
            OF_ORDER.serialize(order)


def test_what_is_required_must_be_there_when_it_is_read_too() -> None:
    (strict,) = create_classes("package shop; message Order { required int32 id = 1; }").values()
    (loose,) = create_classes("package shop; message Order { optional int32 id = 1; }").values()
    with pytest.raises(ValueError, match="missing required fields: id"):
        bind(strict).serialize(strict())
    with pytest.raises(ValueError, match=r"shop\.Order requires id, which is missing; for t-value"):
        bind(strict).deserialize(bind(loose).serialize(loose()))


@pytest.mark.parametrize(
    "change_bytes",
    [
        lambda data: b"",
        lambda data: data[:3],
        lambda data: b"{}" + data,
        lambda data: data[:6],
        lambda data: data[:5] + b"\x02\x08" + data[7:],
        lambda data: data[:5] + b"\x04\x02\x09",
        lambda data: data[:-1],
        lambda data: data[:7] + b"\x3a\x01\xff",
    ],
    ids=[
        "nothing",
        "no id",
        "JSON",
        "no index",
        "no message there",
        "no part there",
        "cut",
        "no UTF-8",
    ],
)
def test_bytes_of_no_message_are_refused(change_bytes: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="; for t-value"):
        OF_ORDER.deserialize(change_bytes(OF_ORDER.serialize(Order(id=1, note="a"))))


def test_what_is_no_class_of_a_message_is_refused_when_the_serde_is_made() -> None:
    from google.protobuf import timestamp_pb2

    for given_type in (timestamp_pb2, Order(), Order.DESCRIPTOR, dict):
        with pytest.raises(TypeError, match="needs a class that protoc has made"):
            serdes.protobuf(registry="mock://x", message_type=given_type)
    latest = {"use.latest.version": True, "auto.register.schemas": False}
    with pytest.raises(ValueError, match=r"protobuf\(Line\).*only messages of the top level"):
        bind(CLASSES["Order.Line"], serializer=latest)


def test_a_message_of_another_class_is_refused() -> None:
    expected = r"needs a message shop\.Order, got Zebra: .*; for t-value, got Zebra: stripes: 1"
    with pytest.raises(ValueError, match=re.compile(expected, re.DOTALL)):
        OF_ORDER.serialize(CLASSES["Zebra"](stripes=1))
    again = create_classes(ORDER, {"shop/address.proto": ADDRESS})["Order"]
    with pytest.raises(ValueError, match=r"got one of another class of that name.*one module"):
        OF_ORDER.serialize(again(id=1))


def test_a_message_of_protobuf_itself_is_refused_when_the_serde_is_made() -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    with pytest.raises(TypeError, match=r"can't read them again: put it into a message of your"):
        serdes.protobuf(registry="mock://x", message_type=Timestamp)


LOOSE = """
package shop;
message Note {
  optional string text = 1; repeated string words = 2; map<string, string> by_name = 3;
  repeated Note parts = 4; map<int32, Note> by_number = 5;
}
"""


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"\x0a\x01\xff", "value.text"),
        (b"\x12\x01a\x12\x01\xff", "value.words[1]"),
        (b"\x1a\x06\x0a\x01a\x12\x01\xff", "value.by_name['a']"),
        (b"\x1a\x06\x0a\x01\xff\x12\x01a", "value.by_name"),
        (b"\x22\x00\x22\x03\x0a\x01\xff", "value.parts[1].text"),
        (b"\x2a\x07\x08\x07\x12\x03\x0a\x01\xff", "value.by_number[7].text"),
    ],
)
def test_a_text_of_proto2_that_is_no_utf8_is_refused_both_ways(content: bytes, path: str) -> None:
    note = create_classes(LOOSE)["Note"]
    notes = bind(note)
    start = notes.serialize(note())
    expected = rf"{re.escape(path)}: .*no UTF-8.*0?xff.*: declare bytes"
    with pytest.raises(ValueError, match=expected):
        notes.deserialize(start + content)
    with pytest.raises(ValueError, match=expected):
        notes.serialize(note.FromString(content))
    good = note(text="ä", words=["ö"], by_name={"ü": "ß"}, parts=[{"text": "é"}])
    assert notes.deserialize(notes.serialize(good)) == good


def test_the_registry_has_the_file_and_its_imports_and_is_asked_once(
    registry: SchemaRegistry,
) -> None:
    written = bind(Order, on=registry.url).serialize(Order(id=1, address={"city": "Bern"}))
    assert registry.subjects.keys() == {"shop/address.proto", "t-value"}
    reader = bind(Order, on=f"{registry.url}/")
    asked = len(registry.requests)
    for _ in range(3):
        assert reader.deserialize(written).address.city == "Bern"
    fetched = [request.partition("?")[0] for request in registry.requests[asked:]]
    assert fetched == ["GET /schemas/ids/2", "GET /subjects/shop/address.proto/versions/1"]
