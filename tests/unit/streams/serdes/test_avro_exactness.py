"""Test that Avro messages come back as they were given, or are refused with their place."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime, time
from decimal import Context, Decimal
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import pytest

fastavro = pytest.importorskip("fastavro", reason="pip install 'millrace-streams[registry]'")

from hypothesis import assume, example, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from streams.serdes.avro_codec import AvroSchema, create_reader, create_writer  # noqa: E402
from streams.serdes.avro_faults import find_fault  # noqa: E402
from streams.serdes.avro_mismatch import AvroMismatch  # noqa: E402
from streams.serdes.avro_unions import AvroOptions  # noqa: E402
from tests import edge_values as edges  # noqa: E402
from tests.unit.properties import examples  # noqa: E402
from tests.unit.streams.serdes import avro_cases as cases  # noqa: E402

EXACT = AvroOptions()
WIDE = Context(prec=60)
ANY = ["null", "boolean", "int", "long", "float", "double", "string", "bytes"]


def parse(schema: Any) -> AvroSchema:
    return AvroSchema(fastavro.parse_schema(json.loads(json.dumps(schema))))


def write(schema: Any, value: Any, options: AvroOptions = EXACT) -> bytes:
    return create_writer(parse(schema), options)(value)


def read(schema: Any, data: bytes, options: AvroOptions = EXACT) -> Any:
    parsed = parse(schema)
    return create_reader(parsed, parsed, options)(data)


def is_bytes(schema: Any) -> bool:
    """Return whether a message is bytes, which have no length, as in Confluent's serialisers."""
    return schema == "bytes" or (isinstance(schema, dict) and schema["type"] == "bytes")


def write_by_fastavro(schema: Any, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


@examples(300)
@given(st.data())
def test_what_others_write_is_written_again_with_the_same_bytes(data: st.DataObject) -> None:
    schema = data.draw(cases.schemas())
    written = write_by_fastavro(schema, data.draw(cases.explicit_values(schema)))
    if is_bytes(schema):
        return
    value = read(schema, written)
    assert write(schema, value) == written
    assert edges.are_same(read(schema, write(schema, value)), value)


@examples(300)
@given(st.data())
def test_any_value_comes_back_as_it_was_or_is_refused(data: st.DataObject) -> None:
    schema = data.draw(cases.schemas(depth=2))
    value = data.draw(edges.SCALARS | edges.FOREIGN | cases.explicit_values(schema))
    for options in (EXACT, AvroOptions(passes_numbers=True)):
        written, refusal = None, ""
        try:
            written = write(schema, value, options)
        except AvroMismatch as error:
            refusal = str(error)
        if written is None:
            assert refusal.startswith("value")
        else:
            assert edges.are_same(read(schema, written, options), value)


@examples(300)
@given(edges.SCALARS | st.sampled_from(edges.NON_FINITE) | st.binary())
@example(2**31)
@example(2**53)
@example(2**63)
@example(-0.0)
def test_a_union_of_all_numbers_and_texts_gives_back_plain_values(value: Any) -> None:
    try:
        written = write(ANY, value)
    except AvroMismatch:
        assert type(value) is int
        assert not -(2**63) <= value < 2**63
    else:
        assert edges.are_same(read(ANY, written), value)


@examples(100)
@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([t * 1000 for t in edges.TIMES_MS]))
@pytest.mark.parametrize("logical", ["timestamp-millis", "timestamp-micros", "time-micros"])
def test_a_number_that_is_no_time_of_python_is_refused_or_passed_on(
    logical: str, number: int
) -> None:
    schema = {"type": "long", "logicalType": logical}
    data = write("long", number)
    passed_on = read(schema, data, AvroOptions(passes_numbers=True))
    assert write(schema, passed_on, AvroOptions(passes_numbers=True)) == data
    if type(passed_on) is not int:
        assert edges.are_same(read(schema, data), passed_on)
        return
    assert passed_on == number
    with pytest.raises(AvroMismatch, match=f"{logical} {number}: read it by a schema without"):
        read(schema, data)


SHADES = {"type": "enum", "name": "shop.Shade", "symbols": ["A", "B"]}
EVENTS = [
    {"type": "record", "name": name, "namespace": "shop", "fields": [{"name": "id", "type": "int"}]}
    for name in ("Created", "Deleted")
]
PLACED = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "float"}}},
        {"name": "event", "type": ["null", *EVENTS], "default": None},
    ],
}
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


@pytest.mark.parametrize("name", ["shop.Created", "shop.Deleted"])
def test_a_record_of_a_union_of_equal_records_keeps_its_name(name: str) -> None:
    order = {"lines": [], "event": (name, {"id": 1})}
    assert read(PLACED, write(PLACED, order)) == order


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (ANY, ("long", 5), b"\x06\x0a"),
        (ANY, ("float", 1.5), b"\x08\x00\x00\xc0?"),
        (["string", SHADES], ("shop.Shade", "A"), b"\x02\x00"),
        (["bytes", {"type": "fixed", "name": "F", "size": 1}], ("F", b"x"), b"\x02x"),
        ([{"type": "map", "values": "int"}, EVENTS[0]], ("map", {}), b"\x00\x00"),
        (["null", EVENTS[0]], {"id": 1}, b"\x02\x02"),
        ([EVENTS[0], "null"], {"id": 1}, b"\x00\x02"),
        ([EVENTS[0], "string"], {"id": 1}, b"\x00\x02"),
        (["long"], 5, b"\x00\x0a"),
    ],
)
def test_a_value_whose_branch_does_not_show_is_a_pair(schema: Any, value: Any, data: bytes) -> None:
    assert write(schema, value) == data
    assert edges.are_same(read(schema, data), value)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (PLACED, {"lines": [{"a": 0.1}], "event": None}, r"value\.lines\[0\]\['a'\]: float has 32"),
        (PLACED, {"lines": [{"a": 1}], "event": None}, r"value\.lines\[0\]\['a'\]: float needs"),
        (PLACED, {"lines": [{"\ud800": 1.0}], "event": None}, r"value\.lines\[0\].*surrogates"),
        (PLACED, {"lines": []}, r"value\.event: .* come back as its default None: give it"),
        (PLACED, {"event": None}, r"value\.lines: record Order needs it"),
        (PLACED, {"lines": [], "event": None, "x": 1}, r"value\.x: record Order has no such field"),
        (PLACED, {"lines": (), "event": None}, r"value\.lines: array needs a list, got tuple"),
        (PLACED, {"lines": [], "event": {"id": 1}}, r"value\.event: .* \('shop\.Created', \{"),
        (PLACED, {"lines": [], "event": ("Deleted", {})}, r"value\.event: .*null, shop\.Created,"),
        (PLACED, {"lines": [], "event": ("shop.Deleted", {"id": "1"})}, r"\.event\.id: int needs"),
        (ANY, ("int", 5), "comes back without its name"),
        (ANY, [1], "has no list"),
        (ANY, 2**63, "long has 64 bits"),
        ("int", 2**31, "int has 32 bits"),
        ("int", True, "int needs int, got bool"),
        ("double", 1, r"write float\(x\), got int: 1"),
        ("float", 1e300, "float has 32 bits"),
        ("string", edges.Text("a"), "got Text"),
        ("string", "\ud800", "lone surrogates"),
        ("bytes", bytearray(b"a"), "got bytearray"),
        (SHADES, "C", "has A, B, got 'C'"),
    ],
)
def test_what_would_come_back_changed_is_refused_with_its_place(
    schema: Any, value: Any, message: str
) -> None:
    with pytest.raises(AvroMismatch, match=message):
        write(schema, value)


NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("logical", "value", "message"),
    [
        ("timestamp-millis", NOON.replace(microsecond=1), "would be cut"),
        ("timestamp-micros", NOON.replace(tzinfo=None), "give it a zone"),
        (
            "timestamp-micros",
            NOON.astimezone(ZoneInfo("Europe/Berlin")),
            r"give it as \.astimezone",
        ),
        ("timestamp-micros", NOON.date(), "needs datetime, got date"),
        ("local-timestamp-millis", NOON, "without zone"),
        ("local-timestamp-micros", NOON.replace(tzinfo=None, fold=1), "without zone and fold"),
        ("date", NOON, "needs date, got datetime"),
        ("date", "2026-07-01", "needs date, got str"),
        ("time-millis", time(1, 2, 3, 4), "would be cut"),
        ("time-micros", time(1, tzinfo=UTC), "has no zone"),
        ("uuid", "00000000-0000-0000-0000-000000000001", "needs UUID, got str"),
        ("decimal", Decimal("1.5"), r"scale 2.*\.quantize\(Decimal\('0\.01'\)\)"),
        ("decimal", Decimal("-0.00"), "another Decimal"),
        ("decimal", Decimal("NaN"), "another Decimal"),
        ("decimal", Decimal(10**40).quantize(Decimal("0.01"), context=WIDE), "precision 38"),
        ("decimal", 1, "needs Decimal, got int"),
    ],
)
def test_a_logical_type_refuses_what_would_come_back_changed(
    logical: str, value: Any, message: str
) -> None:
    with pytest.raises(AvroMismatch, match=message):
        write(cases.LOGICAL[logical][0], value)


def test_a_decimal_of_no_bytes_is_refused_and_one_of_a_fixed_size_comes_back() -> None:
    with pytest.raises(AvroMismatch, match="is no decimal"):
        read({"type": "array", "items": cases.LOGICAL["decimal"][0]}, b"\x02\x00\x00")
    money = {"type": "fixed", "name": "M", "size": 2, "logicalType": "decimal", "precision": 4}
    for amount in (Decimal(0), Decimal(-128), Decimal(9999), Decimal(-9999)):
        assert edges.are_same(read(money, write(money, amount)), amount)


def test_a_dict_without_a_name_is_the_only_record_that_it_fits() -> None:
    plain = AvroOptions(names_records=False)
    moved = {"type": "record", "name": "Moved", "fields": [{"name": "to", "type": "int"}]}
    events = [*EVENTS, moved]
    assert write(events, {"to": 1}, plain) == b"\x04\x02"
    assert read(events, b"\x02\x02", plain) == {"id": 1}
    with pytest.raises(AvroMismatch, match=r"fits shop\.Created and shop\.Deleted"):
        write(events, {"id": 1}, plain)
    with pytest.raises(AvroMismatch, match=r"value\.from: record shop\.Created has no such field"):
        write(events, {"from": 1}, plain)


def nest(depth: int) -> Any:
    found: Any = None
    for _ in range(depth):
        found = {"next": found}
    return found


def test_deep_values_come_back_and_deeper_ones_are_refused() -> None:
    assert read(NODE, write(NODE, nest(200))) == nest(200)
    for depth in (201, 100_000):
        with pytest.raises(AvroMismatch, match="value: it is nested more than 200 deep"):
            write(NODE, nest(depth))
    with pytest.raises(AvroMismatch, match="nested more than 200 deep"):
        read(NODE, b"\x02" * 100_000 + b"\x00")  # on which fastavro's reader ends the process


def test_large_values_come_back() -> None:
    large = {"lines": [{str(n): float(n)} for n in range(20_000)], "event": None}
    assert read(PLACED, write(PLACED, large)) == large
    assert read("string", write("string", "x" * 10_000_000)) == "x" * 10_000_000


def test_a_message_that_is_bytes_is_those_bytes_as_in_java() -> None:
    assert write("bytes", b"") == b""
    assert read("bytes", b"\x02a") == b"\x02a"


NUMBERS = {"type": "array", "items": "double"}


@pytest.mark.parametrize(
    ("schema", "data", "message"),
    [
        ("int", b"", "value: its bytes end within int"),
        ("int", b"\x02\x02", "value: 1 bytes are left after a message of int"),
        (SHADES, b"\x08", r"shop\.Shade: number 4 of 2 symbols"),
        (EVENTS, b"\x08\x02", "no union: number 4 of 2 branches"),
        (PLACED, b"\x02\x02\x02a\x00", r"value\.lines\[0\]: .*no map: 1 elements, and 3 bytes"),
        (EVENTS, b"\x01\x02", "value: its bytes are no union: number -1 of 2 branches"),
        (SHADES, b"\x01", r"value: its bytes are no shop\.Shade: number -1 of 2 symbols"),
        ("boolean", b"\x02", "value: its bytes are no boolean: byte 2, and not 0 or 1"),
        ("int", b"\x80\x80\x80\x80\x10", "value: its bytes are no int: .* more than 32 bits"),
        ("int", b"\x80" * 5 + b"\x00", "value: its bytes are no int: .* more than 5 bytes"),
        ("long", b"\xff" * 9 + b"\x02", "value: its bytes are no long: .* more than 64 bits"),
        ("long", b"\xff" * 10 + b"\x01", "value: its bytes are no long: .* more than 10 bytes"),
        ("string", b"\x01a", "value: its bytes are no string: a length of -1 bytes"),
        (NUMBERS, b"\x03\x01\x00", "value: its bytes are no array: a block of -1 bytes"),
        (
            NUMBERS,
            b"\xfe" + b"\xff" * 8 + b"\x01",
            "value: .* 9223372036854775807 elements, and 0 b",
        ),
        (PLACED, b"\x00\x02\xff", r"value\.event\.id: its bytes end within int"),
        (PLACED, b"\x00\x08", r"value\.event: .*no union: number 4 of 3 branches"),
        (PLACED, b"\x01\x00", r"value\.lines: .*no array: 1 elements, and 0 bytes"),
        ({"type": "array", "items": "string"}, b"\x04\x02a\x02\xff\x00", r"value\[1\]: .*no UTF-8"),
        (
            {"type": "array", "items": "string"},
            b"\x03\x08\x02a\x02\xff\x00",
            r"value\[1\]: .*no UTF-8",
        ),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_their_place(
    schema: Any, data: bytes, message: str
) -> None:
    with pytest.raises(AvroMismatch, match=message):
        read(schema, data)


@examples(300)
@given(st.data())
def test_hostile_bytes_are_read_or_refused_by_name(data: st.DataObject) -> None:
    schema = data.draw(cases.schemas(depth=2))
    hostile = data.draw(st.binary(max_size=30))
    with suppress(AvroMismatch):
        read(schema, hostile, AvroOptions(passes_numbers=True))


@examples(100)
@given(st.data())
def test_the_check_of_a_schema_refuses_bytes_in_which_a_fault_is_found(
    data: st.DataObject,
) -> None:
    schema = parse(data.draw(cases.schemas(depth=2)))
    hostile = data.draw(st.binary(max_size=30))
    fault = find_fault(schema.type, hostile)
    if fault is None:
        schema.check(hostile)
    elif "UTF-8" not in fault.reason:
        with pytest.raises(AvroMismatch, match=re.escape(str(fault))):
            schema.check(hostile)


@examples(100)
@given(st.data())
def test_a_message_of_which_a_bit_was_turned_is_refused_or_means_what_it_says(
    data: st.DataObject,
) -> None:
    schema = data.draw(cases.schemas(depth=2))
    written = bytearray(write_by_fastavro(schema, data.draw(cases.explicit_values(schema))))
    assume(written and not is_bytes(schema))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= 1 << data.draw(st.integers(0, 7))
    options = AvroOptions(passes_numbers=True)
    try:
        value = read(schema, bytes(written), options)
    except AvroMismatch:
        return
    assert edges.are_same(read(schema, write(schema, value, options), options), value)


NULLS = {"type": "array", "items": "null"}
NO_FIELDS = {"type": "record", "name": "None", "fields": []}


@pytest.mark.parametrize("items", ["null", NO_FIELDS, {"type": "fixed", "name": "F", "size": 0}])
def test_a_few_bytes_that_stand_for_any_number_of_elements_are_refused(items: Any) -> None:
    bomb = {"type": "array", "items": items}
    with pytest.raises(AvroMismatch, match="more than 1000000 elements that have no bytes"):
        read(bomb, b"\xfe" + b"\xff" * 7 + b"\x1f\x00")  # 2^60
    with pytest.raises(AvroMismatch, match=r"value\[2\]: .*more than 1000000 elements"):
        read({"type": "array", "items": NULLS}, b"\x06" + b"\x80\xea\x30\x00" * 3 + b"\x00")
    with pytest.raises(AvroMismatch, match="more than 1000000 elements"):
        write(NULLS, [None] * 1_000_001)
    assert read(NULLS, write(NULLS, [None] * 1_000)) == [None] * 1_000


@pytest.mark.parametrize("size", ["4; raise SystemExit", "4", 4.5, True, -3, None])
def test_a_fixed_type_whose_size_is_no_number_of_bytes_is_refused(size: Any) -> None:
    """The size stands in a function that is composed as source: a schema must not add to it."""
    parsed = fastavro.parse_schema({"type": "fixed", "name": "digest", "size": size})
    with pytest.raises(ValueError, match=r"schema of 'digest' has the size .* whole number of"):
        AvroSchema(parsed)
