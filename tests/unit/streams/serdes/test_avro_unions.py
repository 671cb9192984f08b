"""Test which unions Avro has, and that their records keep their names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

fastavro = pytest.importorskip("fastavro", reason="pip install 'millrace-streams[registry]'")

from streams import serdes  # noqa: E402
from streams.serdes.avro_codec import AvroSchema, create_reader, create_writer  # noqa: E402
from streams.serdes.avro_unions import AvroOptions  # noqa: E402

EXACT = AvroOptions()


def logical(kind: str, logical_type: str) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type}


def record(name: str, field: Any = "int", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "v", "type": field}], **more}


def parse(schema: Any) -> AvroSchema:
    return AvroSchema(fastavro.parse_schema(json.loads(json.dumps(schema))))


def read_as(writer: Any, reader: Any, value: Any) -> Any:
    written, wanted = parse(writer), parse(reader)
    return create_reader(written, wanted, EXACT)(create_writer(written, EXACT)(value))


TWICE = [
    (["string", "string"], "string"),
    ([logical("long", "timestamp-millis"), "long"], "long"),
    (["int", logical("int", "date")], "int"),
    ([logical("string", "uuid"), "null", "string"], "string"),
    ([logical("long", "timestamp-millis"), logical("long", "timestamp-micros")], "long"),
    (["null", {"type": "null"}], "null"),
    ([{"type": "array", "items": "int"}, {"type": "array", "items": "string"}], "array"),
    ([{"type": "map", "values": "int"}, {"type": "map", "values": "string"}], "map"),
    ([record("a.C"), "a.C"], "a.C"),
]


@pytest.mark.parametrize(("union", "name"), TWICE)
def test_a_union_with_a_type_twice_is_refused_when_the_serde_is_made(union: Any, name: str) -> None:
    text = rf"schema: a union has 2 branches of type {re.escape(name)}, and Avro allows one"
    with pytest.raises(ValueError, match=text):
        serdes.avro(registry="mock://unions", schema=union)
    text = text.replace("schema:", r"schema\.v:")
    with pytest.raises(ValueError, match=text):
        serdes.avro(registry="mock://unions", schema=record("Outer", union))


@pytest.mark.parametrize("union", [[["int"], "string"], ["string", ["null", "int"]]])
def test_a_union_in_a_union_is_refused_with_its_place(union: Any) -> None:
    for schema, place in (
        (union, ""),
        (record("Outer", {"type": "map", "values": union}), r"\.v\[\]"),
        ({"type": "array", "items": union}, r"\[\]"),
    ):
        with pytest.raises(ValueError, match=rf"schema{place}: a union is a branch of another"):
            serdes.avro(registry="mock://unions", schema=schema)


def test_unions_of_named_types_and_of_one_type_each_are_taken() -> None:
    shades = [{"type": "enum", "name": f"E{n}", "symbols": ["A"]} for n in range(2)]
    hashes = [{"type": "fixed", "name": f"F{n}", "size": 2} for n in range(2)]
    every = ["null", "int", "long", "float", "double", "string", "bytes", "boolean"]
    containers = [{"type": "array", "items": "int"}, {"type": "map", "values": "int"}]
    union = [*every, *containers, record("a.C"), record("b.C"), *shades, *hashes]
    serdes.avro(registry="mock://unions", schema=union)


def test_a_forbidden_union_of_a_message_that_was_written_is_refused_when_it_is_read() -> None:
    name, union = "mock://forbidden", record("Outer", [logical("int", "date"), "int"])
    lossy = serdes.avro(registry=name, schema=union, lossy=True).for_topic("t", "value")
    plain = serdes.avro(registry=name).for_topic("t", "value")
    with pytest.raises(ValueError, match=r"schema\.v: a union has 2 branches of type int"):
        plain.deserialize(lossy.serialize({"v": 5}))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("null", """the type of that name is '"null"'"""),
        ("float", """the type of that name is '"float"'"""),
        ('"klingon"', "is no JSON text of an Avro schema"),
        ("klingon", "is no JSON text of an Avro schema: Expecting value"),
        ("5", "is no JSON text of an Avro schema"),
    ],
)
def test_text_that_is_no_schema_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"schema={text!r} is no JSON text") as raised:
        serdes.avro(registry="mock://texts", schema=text)
    assert reason in str(raised.value)


C, D, E = (record(f"shop.{name}") for name in "CDE")
BOTH = [C, D]


@pytest.mark.parametrize("reader", [D, [D], ["null", D], ["int", D], [D, E]])
def test_a_record_of_a_union_does_not_become_one_of_another_name(reader: Any) -> None:
    has_several = isinstance(reader, list) and len([r for r in reader if isinstance(r, dict)]) > 1
    kept = ("shop.D", {"v": 2}) if has_several else {"v": 2}
    assert read_as(BOTH, reader, ("shop.D", {"v": 2})) == kept
    text = r"value: record shop\.C of a union was written, which is not"
    with pytest.raises(ValueError, match=text):
        read_as(BOTH, reader, ("shop.C", {"v": 1}))
    with pytest.raises(ValueError, match=text.replace("value", r"value\.v")):
        read_as(record("W", BOTH), record("W", reader), {"v": ("shop.C", {"v": 1})})


@pytest.mark.parametrize(
    "reader", [record("shop.Made", aliases=["C"]), record("other.C"), ["null", record("other.C")]]
)
def test_a_record_of_a_union_is_found_by_an_alias_and_without_its_namespace(reader: Any) -> None:
    assert read_as(BOTH, reader, ("shop.C", {"v": 1})) == {"v": 1}


def test_a_name_without_its_namespace_fits_only_where_it_is_one_record_s() -> None:
    writer = [record("a.C"), record("b.C")]
    assert read_as(writer, record("a.C"), ("a.C", {"v": 1})) == {"v": 1}
    with pytest.raises(ValueError, match=r"record b\.C of a union was written, which is not"):
        read_as(writer, record("a.C"), ("b.C", {"v": 1}))


@pytest.mark.parametrize("writer", [C, ["null", C]])
@pytest.mark.parametrize("reader", [D, ["null", D]])
def test_the_only_record_of_both_schemas_may_be_renamed(writer: Any, reader: Any) -> None:
    assert read_as(writer, reader, {"v": 1}) == {"v": 1}
